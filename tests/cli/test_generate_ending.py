"""The end of generate: harmless, as wide as the terminal, with commands that work."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.cli.commands.generate import ending_lines, preview_lines
from pytest_upskill.reports.terminal.layout import text_width
from pytest_upskill.teach.drafts import Draft
from pytest_upskill.teach.outcome import Attempt, Taught
from pytest_upskill.teach.teach_settings import TeachSettings
from support.made import made_run


def taught(folder: str | None = "skills/gate", **more: Any) -> Taught:
    draft = Draft(
        "gate", "Opens gates.", "\n".join(f"line {number}" for number in range(30))
    )
    path = Path.cwd() / folder if folder else None
    return Taught(draft.name, (Attempt(1, draft),), 1, folder=path, seconds=8.4, **more)


def end(of: Taught, width: int = 80, **settings: Any) -> list[str]:
    return list(ending_lines(of, TeachSettings("open gates", **settings), width))


def commands(lines: list[str]) -> dict[str, list[str]]:
    told = [line.strip().partition(":") for line in lines[lines.index("Next:") + 1 :]]
    return {what: shlex.split(command) for what, _, command in told}


def test_a_preview_then_the_time_then_the_next_commands() -> None:
    lines = end(taught())
    assert lines[:5] == [
        "",
        "SKILL.md, 57 tokens:",
        "  | ---",
        "  | name: gate",
        "  | description: Opens gates.",
    ]
    assert lines[13:17] == ["  | line 6", "  [… 23 more lines]", "Took 8.4 s.", "Next:"]
    assert commands(lines) == {
        "test it": ["pytest", "--skill", "skills/gate", "--model", "haiku"],
        "improve it": ["pytest-upskill", "refine", "skills/gate"],
    }


def test_the_commands_name_the_models_and_servers_of_the_run() -> None:
    told = commands(
        end(
            taught("skills/gate (new)"),
            students=("a b", "c"),
            teacher="big",
            teacher_url="http://h:1/v1",
            student_url="http://h:2/v1?x=1&y",
            agents=("loop",),
        )
    )
    assert told["test it"] == [
        *("pytest", "--skill", "skills/gate (new)", "--model", "a b", "--model", "c"),
        *("--skill-agent", "loop", "--skill-base-url", "http://h:2/v1?x=1&y"),
    ]
    parsed = make_parser().parse_args(told["improve it"][1:])
    assert (parsed.teacher, parsed.students, parsed.agents) == (
        "big",
        ["a b", "c"],
        ["loop"],
    )
    assert (parsed.teacher_url, parsed.student_url) == (
        "http://h:1/v1",
        "http://h:2/v1?x=1&y",
    )


def test_a_skill_that_was_not_shown_to_help_is_improved_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poor = taught()
    attempt = replace(poor.attempts[0], learning=made_run())
    monkeypatch.setattr(Taught, "helps", False)
    assert list(commands(end(replace(poor, attempts=(attempt,))))) == [
        "improve it",
        "test it",
    ]
    monkeypatch.setattr(Taught, "helps", True)
    assert list(commands(end(replace(poor, attempts=(attempt,))))) == [
        "test it",
        "improve it",
    ]


def test_what_was_not_saved_has_no_end() -> None:
    assert end(taught(None, unsaved="Not saved: full disk.")) == []


@pytest.mark.parametrize("width", [20, 80, 120])
def test_a_preview_is_harmless_and_fits(width: int) -> None:
    text = (
        "\x1b[2J\x07hi\n::error::x\n"
        + "界" * 500
        + "\n\tdeep\n\u202eevil\r\nx\n"
        + "y\n" * 5000
    )
    lines = list(preview_lines(text, width))
    assert len(lines) == 13
    assert all(text_width(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)
    assert not any(line.strip().startswith("::") for line in lines)
    assert lines[3] == "  |     deep"


def test_a_short_skill_is_shown_whole() -> None:
    assert list(preview_lines("\n".join("abc"), 80)) == ["  | a", "  | b", "  | c"]
    assert len(list(preview_lines("\n".join("x" * 14), 80))) == 14


def test_a_password_in_the_address_of_a_server_is_not_printed() -> None:
    lines = end(
        taught(),
        teacher_url="http://me:hunter22@h:1/v1",
        student_url="http://u:pw99@h/v1",
    )
    assert "h:1/v1" in "\n".join(lines)
    assert not {"hunter22", "pw99"} & set(re.findall(r"\w+", "\n".join(lines)))
