"""No line of ours is wider than the terminal."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.reports.terminal.layout import text_width
from support.kit import case, write_skill
from support.shell import Shell

GOLDEN = Path(__file__).parents[1] / "golden"
# Golden runs of pytest that start quickly and between them show every kind of line.
RUNS = ("accepted", "against", "errors", "several_models", "triggers")
NAME = "a-skill-with-a-name-that-is-as-long-as-any-name-should-be"
# pytest's own lines, which are as long as node ids and paths are, and links.
OTHERS = re.compile(
    r"(?:platform|rootdir|configfile|plugins|cachedir|hypothesis|collected|collecting)\b"
    r"|_+ .* _+$|FAILED |ERROR |XFAIL |\S+::\S+ |\S+/\S+ [.FEx]+|page: |In the page:"
    r" |\S+\.html#|::"
)


def too_wide(screen: str, width: int) -> Iterator[str]:
    return (
        line
        for line in screen.splitlines()
        if text_width(line) > width and not OTHERS.match(line.strip())
    )


def test_screens_of_golden_runs_fit() -> None:
    for file in GOLDEN.glob("*/screen.txt"):
        for part in file.read_text(encoding="utf-8").removeprefix("$ ").split("\n$ "):
            command, _, screen = part.partition("\n")
            if command.startswith("pytest "):
                assert list(too_wide(screen, 80)) == [], file


@pytest.mark.parametrize("width", [60, pytest.param(120, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.usefixtures("short_pauses")
def test_lines_of_golden_runs_fit(
    name: str,
    width: int,
    shell: Shell,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for variable, value in {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }.items():
        monkeypatch.setenv(variable, value)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.org")
    for source in (GOLDEN / "shared", GOLDEN / name / "input"):
        if source.exists():
            shutil.copytree(source, pytester.path, dirs_exist_ok=True)
    for command in (
        (GOLDEN / name / "commands").read_text(encoding="utf-8").splitlines()
    ):
        words = shlex.split(command)
        finished = shell.run(words, pytester.path)
        if words[0] == "pytest" and finished.status < 2:
            assert list(too_wide(finished.out, width)) == [], command


def write_long_names(folder: Path) -> str:
    """Skills, cases and models with long names; the name of a model."""
    for letter in "abcdefghijklm":
        cases = [
            case(
                f"Which command opens gate number {n} in the yard behind the house?",
                "up",
                id=i,
            )
            for n, i in enumerate(
                ("x" * 70, "the-case-of-" + "a-very-" * 12 + "long-name")
            )
        ]
        write_skill(folder / "skills" / f"{NAME}-{letter}", cases)
    model = folder / f"a-file-of-answers-{'with-a-long-name-' * 3}.json"
    model.write_text(json.dumps([{"answer": "I can't tell. " * 30}]), encoding="utf-8")
    return f"scripted:{model.name}"


@pytest.mark.parametrize(
    ("width", "options"),
    [
        (60, []),
        (80, ["-v"]),
        *(
            pytest.param(width, options, marks=pytest.mark.nightly)
            for width, options in (
                *((60, ["-q"]), (80, []), (80, ["--skill-html", "p.html"]), (120, [])),
            )
        ),
    ],
)
def test_long_names_fit(
    options: list[str],
    width: int,
    shell: Shell,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    model = write_long_names(pytester.path)
    words = [
        "pytest",
        "--skill",
        "skills",
        "--model",
        model,
        "--skill-runs",
        "2",
        *options,
    ]
    finished = shell.run(words, pytester.path)
    assert finished.status == 1
    wide = too_wide(finished.out, width)
    # A word of a command is never broken.
    assert [line for line in wide if not line.startswith("  --model ")] == []
    assert re.sub(r"\s", "", f"{NAME}-a") in re.sub(r"\s", "", finished.out)
