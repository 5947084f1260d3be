"""Budgets, prices, and asking before anything is spent."""

import json
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_upskill.skills.skill import load_skill
from support.fake_models import (
    COLOURS,
    SECRETS,
    TASK,
    FakeModels,
    Project,
    body,
    case,
    draft,
    generate_words,
    lines,
    served,
)
from support.kit import write_skill
from support.shell import COMMAND
from support.terminal import run_on_terminal


def priced(project: Project, fake: FakeModels, *words: str) -> tuple[int, str, str]:
    """With models whose price is known, at the fake's address."""
    with served(fake) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "none")
        models = ["--model", "openai:gpt-4o", "--eval-model", "openai:gpt-4o-mini"]
        return project.run("generate", TASK, *models, *words)


def test_the_best_version_is_saved_when_the_budget_ends(project: Project) -> None:
    # Each reply of the teacher costs $0.08, so that a third one
    # could exceed the budget.
    fake = FakeModels([draft(*COLOURS[:6]), draft(*COLOURS)], output_tokens=8000)
    status, shown, _ = priced(project, fake, "--yes", "--max-cost", "0.2", "--json")
    data = json.loads(shown)
    assert (status, data["folder"]) == (0, str(project.skill))
    assert data["cost"] == pytest.approx(0.16, abs=0.005)
    assert "budget" in data["stop"]
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:6])
    assert (project.skill / "skill_meta.json").is_file()
    assert len(fake.of("teacher")) == 1


def test_a_last_step_beyond_the_budget_is_reported(project: Project) -> None:
    # Two replies cost $0.16. Each answer of the student can cost $0.0012 at the most,
    # and does not.
    fake = FakeModels(output_tokens=8000)
    (project.folder / "trace.md").write_text(
        "# User\n\nlamp\n\n# Assistant\n\nlamp zorp\n"
    )
    words = ("--yes", "--max-cost", "0.18", "--from", "trace.md", "--json")
    status, shown, _ = priced(project, fake, *words)
    assert status == 0
    assert [
        one
        for one in json.loads(shown)["sentences"]
        if "exceed the budget ($0.16" in one
    ]


def test_prices_of_the_ini_file_apply_to_own_servers(project: Project) -> None:
    prices = "skill_prices =\n    big 2.50 10\n    small 0.15 0.60"
    (project.folder / "pytest.ini").write_text(f"[pytest]\n{prices}\n")
    fake = FakeModels([draft(*COLOURS[:6]), draft(*COLOURS)], output_tokens=8000)
    status, shown, error = project.generate(fake, "--max-cost", "0.2")
    assert (status, error) == (0, "")
    assert re.match(
        r"This takes up to about \d+ calls, [\d,]+ tokens, about \$0\.\d+\.", shown
    )
    assert "Saved to ./skills/lamp-colours (cost $0.16)" in lines(shown)
    (project.folder / "pytest.ini").write_text("[pytest]\nskill_prices = big much\n")
    status, _, error = project.generate(fake)
    assert (
        status,
        "pytest.ini: skill_prices: 'big much': not a name with two" in error,
    ) == (
        2,
        True,
    )
    (project.folder / "pytest.ini").write_text("[pytest]\nskill_prices = big 1 1\n")
    status, _, error = project.generate(fake, "--max-cost", "1")
    assert (status, "the price of small is not known" in error) == (2, True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "change", [[], ["--from", "gate", "-o", "skills/lamp-colours"]]
)
def test_a_skill_beyond_the_budget_is_saved_unmeasured(
    project: Project, change: list[str]
) -> None:
    (write_skill(project.folder / "gate") / "skill_meta.json").unlink()
    fake = FakeModels([draft("red")], output_tokens=8000)
    words = ("--yes", "--max-cost", "0.169", "--runs", "90", *change)
    status, shown, _ = priced(project, fake, *words)
    assert status == 1
    assert "The skill was not measured" in shown
    assert load_skill(project.skill / "SKILL.md").body == body("red")


def test_a_budget_too_small_for_a_draft_is_an_error(project: Project) -> None:
    status, _, error = priced(project, FakeModels(), "--yes", "--max-cost", "0.000001")
    assert status == 1
    assert (
        "this call could exceed the budget ($0 of $0.000001 spent): raise --max-cost"
        in error
    )
    assert project.files() == []


def test_without_a_terminal_spending_needs_yes(project: Project) -> None:
    fake = FakeModels()
    with served(fake) as url:
        words = [word for word in generate_words(url) if word != "--yes"]
        status, shown, error = project.run(*words)
    assert status == 2
    assert shown.startswith("This takes up to about ")
    assert "cost not known" in shown
    assert re.search(
        r"not a terminal: add --yes to make up to about \d+ calls \(cost not known\)",
        error,
    )
    assert fake.asked == []


@pytest.mark.nightly
def test_on_a_terminal_it_asks_and_shows_steps_live(project: Project) -> None:
    fake = FakeModels()
    environ = {**os.environ, "TERM": "xterm"}
    with served(fake) as url:
        words = [COMMAND, *(word for word in generate_words(url) if word != "--yes")]
        written = run_on_terminal(words, project.folder, environ, 24, typed=b"y\n")
    assert "Continue? [y/N]" in written
    assert "Generating skill with big…\r\x1b[KGenerating skill with big…  " in written
    assert "Saved to ./skills/lamp-colours" in written


@dataclass(frozen=True)
class Keyboard:
    """Standard input: a user who types this, or presses Ctrl-C."""

    typed: str

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        if self.typed == "^C":
            raise KeyboardInterrupt
        return self.typed


@pytest.mark.parametrize(
    ("typed", "wanted", "end", "told"),
    [
        # The terminal shows what is typed
        ("n\n", 1, "Continue? [y/N] Nothing was asked.\n", ""),
        ("", 1, "Continue? [y/N] \nNothing was asked.\n", ""),
        ("^C", 130, "Continue? [y/N] \n", "pytest-upskill: interrupted\n"),
    ],
)
def test_declining_asks_no_model(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    wanted: int,
    end: str,
    told: str,
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    fake = FakeModels()
    with served(fake) as url:
        status, shown, error = project.run(*generate_words(url)[:-1])
    assert (status, error) == (wanted, told)
    assert shown.endswith(end)
    assert fake.asked == []


def write_scripts(folder: Path) -> tuple[str, str]:
    """A teacher and a student that are free."""
    (folder / "teacher.py").write_text(
        f"import re\nDRAFT = {draft(*COLOURS)!r}\nCASES ="
        f" {json.dumps({'cases': [case(c) for c in COLOURS]})!r}\ndef"
        " teacher(question):\n    return DRAFT if question.system.startswith('You"
        f" write Agent') else CASES\nSECRETS = {SECRETS!r}\ndef student(question):\n   "
        " asked = question.messages[-1][1]\n    for colour, word in SECRETS.items():\n"
        "        if re.search(r'\\b' + colour, asked) and 'lamp ' + word in"
        " question.system:\n            return 'Type lamp ' + word + '.'\n    return"
        " 'I do not know.'\n"
    )
    return "scripted:teacher.py:teacher", "scripted:teacher.py:student"


def test_a_free_run_needs_no_consent_and_json_is_alone_on_stdout(
    project: Project,
) -> None:
    teacher, student = write_scripts(project.folder)
    status, shown, error = project.run(
        "generate", TASK, "--model", teacher, "--eval-model", student, "--json"
    )
    assert status == 0
    data = json.loads(shown)
    assert (data["name"], data["chosen"], data["cost"]) == ("lamp-colours", 1, 0.0)
    assert [row["lift"] for row in data["attempts"][0]["held_out"]] == [1.0]
    assert Counter(data["cases"].values()) == {"learn": 8, "holdout": 4}
    assert "This takes up to" in error
    assert "free." in error
    assert "Saved to ./skills/lamp-colours" in error
