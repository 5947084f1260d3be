"""Fake models for tests of teach/: one server plays teacher,
author of cases and students.

The task is about an invented tool: ``lamp`` has a command for each colour, which no
model can guess. A student knows only those that the skill in its system text names.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.loopback import Asked, LoopbackServer, Reply

TASK = "answer questions about the tool lamp"
COLOURS = (
    *("red", "green", "blue", "amber", "violet", "black"),
    *("white", "pink", "cyan", "olive", "brown", "grey"),
)
SECRETS = dict(
    zip(
        COLOURS,
        (
            "zorp",
            "quib",
            "flen",
            "dask",
            "murt",
            "vixo",
            "halp",
            "jorn",
            "kest",
            "plim",
            "roff",
            "tund",
        ),
        strict=True,
    )
)
QUESTIONS = (
    "Which lamp command makes it {}?",
    "I want {} light in my room now, so what do I type?",
    "Name the subcommand for {}.",
    "Somebody asked me to set this thing to {}: how is that done?",
    "What is the one word that turns everything {}?",
    "For a {} kitchen, which command do people use?",
    "My friend says that lamp can shine {}. Tell me how, please.",
    "Switch over to {}: give the whole line.",
    "Before the party starts I need {}; what must be entered?",
    "Is there a way to get {}, and what is it called?",
    "A script should end with {} light. What is its last line?",
    "Complete this for {}: lamp, and then?",
)


def body(*colours: str) -> str:
    lines = [f"- {colour}: `lamp {SECRETS[colour]}`" for colour in colours]
    return "\n".join(["Each colour of lamp has its command.", *lines])


def draft(*colours: str, **more: Any) -> str:
    """A teacher's reply: a skill that knows these colours."""
    return json.dumps(
        {
            "name": "lamp-colours",
            "description": "The commands of lamp. Use it for questions about lamp.",
            "body": body(*colours),
            "files": [],
            **more,
        }
    )


def case(colour: str, **more: Any) -> dict[str, Any]:
    number = COLOURS.index(colour)
    return {
        "id": f"colour-{colour}",
        "input": QUESTIONS[number % len(QUESTIONS)].format(colour),
        "files": [],
        "expected": {"contains": [SECRETS[colour]], "not_contains": ["sudo"]},
        "tags": ["colour"],
        "reference": f"Type lamp {SECRETS[colour]}.",
        "wrong": f"Type lamp {colour}.",
        **more,
    }


def cases(*written: dict[str, Any]) -> str:
    return json.dumps({"cases": list(written)})


ALL_CASES = cases(*map(case, COLOURS))


def knows(asked: Asked) -> str:
    """What a student says: the command, if the skill has it."""
    for colour in COLOURS:
        if re.search(rf"\b{colour}\b", asked.question):
            word = SECRETS[colour]
            if f"lamp {word}" in asked.system or f"lamp {word}" in asked.question:
                return f"Type lamp {word}."
    return "I do not know."


@dataclass
class FakeModels:
    """Replies by role, each list in its order; the last one stands for all that
    follow.
    """

    drafts: Sequence[str] = (draft(*COLOURS),)
    cases: Sequence[str] = (ALL_CASES,)
    attacks: Sequence[str] = ()
    queries: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    student: Callable[[Asked], str | Reply] = knows
    output_tokens: int = 5  # of a teacher's reply
    asked: list[tuple[str, Asked]] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Reply:
        role = self.role(asked)
        before = len(self.of(role))
        self.asked.append((role, asked))
        if role == "student":
            said = self.student(asked)
            return Reply(said) if isinstance(said, str) else said
        replies = {
            "teacher": self.drafts,
            "author": self.cases,
            "adversary": self.attacks,
            "query author": self.queries,
            "describer": self.descriptions,
        }[role]
        text = replies[min(before, len(replies) - 1)]
        return Reply(text, output_tokens=self.output_tokens)

    @staticmethod
    def role(asked: Asked) -> str:
        begins = {
            "You write Agent Skills": "teacher",
            "You write test cases": "author",
            "You look for what": "adversary",
            "You write queries": "query author",
            "You write descriptions": "describer",
        }
        found = [role for text, role in begins.items() if asked.system.startswith(text)]
        return found[0] if found else "student"

    def of(self, role: str) -> list[Asked]:
        return [asked for known, asked in self.asked if known == role]

    def keys(self) -> list[tuple[str, str]]:
        """What makes each request the same as another."""
        return [
            (asked.model, json.dumps(asked.body["messages"])) for _, asked in self.asked
        ]


@contextmanager
def served(fake: FakeModels) -> Iterator[str]:
    """The address of a server that answers as the fake models."""
    with LoopbackServer(fake) as server:
        yield f"{server.url}/v1"


@dataclass
class Project:
    """A folder where commands are called in this process,
    beside a home that must stay empty.
    """

    folder: Path
    home: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        status = main(words)
        shown = self.capsys.readouterr()
        return status, shown.out, shown.err

    def generate(self, fake: FakeModels, *words: str) -> tuple[int, str, str]:
        with served(fake) as url:
            return self.run(*generate_words(url), *words)

    def taught(self, fake: FakeModels, *words: str) -> tuple[int, dict[str, Any]]:
        """Exit status and what ``--json`` has of it."""
        status, shown, error = self.generate(fake, *words, "--json")
        assert shown, error
        return status, json.loads(shown)

    @property
    def skill(self) -> Path:
        return self.folder / "skills/lamp-colours"

    @property
    def workspace(self) -> Path:
        return self.folder / ".upskill/teach/lamp-colours"

    def files(self) -> list[str]:
        """All that was written, but for the workspace and the stored answers."""
        found = (
            file.relative_to(self.folder)
            for file in self.folder.rglob("*")
            if file.is_file()
        )
        return sorted(file.as_posix() for file in found if file.parts[0] != ".upskill")


def make_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    project = Project(tmp_path / "project", tmp_path / "home", capsys)
    project.folder.mkdir()
    project.home.mkdir()
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("HOME", str(project.home))
    return project


def generate_words(url: str) -> list[str]:
    models = ["--model", "big", "--eval-model", "small", "--base-url", url]
    return ["generate", TASK, *models, "--yes"]


def lines(text: str) -> list[str]:
    """A screen with single spaces, so that tests are of what it says."""
    return [" ".join(line.split()) for line in text.splitlines()]
