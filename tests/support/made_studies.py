"""Studies: made-up values, and skills on disk that give a matrix or an ablation."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_upskill.features.drift.results import (
    ModelAnswers,
    ModelChange,
    skill_changes,
)
from pytest_upskill.features.queries.routing import RoutedQuery, Routing
from pytest_upskill.results.contrasts import Contrast, Study, StudyArm
from pytest_upskill.stats import Lift
from pytest_upskill.trials.subject import CHAT, Subject

from .kit import case, write_skill
from .made import Passes, made_run

MODEL = "scripted:model.py:answer"  # of both kinds of skills on disk
LONG = "a-skill-with-a-name-that-is-as-long-as-a-name-may-ever-be-really"


def made_contrast(
    name: str,
    change: tuple[int, int, int] | None,
    margin: float | None = None,
) -> Contrast:
    """``change`` is in points, with its interval."""
    contrast = Contrast(name, (f"{name}: on",), (f"{name}: off",), margin)
    if change is None:
        return contrast
    lift = Lift(change[0] / 100, change[1] / 100, change[2] / 100, 0.01)
    return replace(contrast, lift=lift, cases=10, tokens=-31.0)


HURTS = made_contrast("pdf with docs-writer", (-20, -35, -5))
HELPS = made_contrast("pdf with csv", (15, 3, 27))
UNCHANGED = made_contrast("csv with pdf", (3, -12, 18))
KEPT = made_contrast("without Links", (0, -4, 6), margin=0.1)
UNKNOWN = made_contrast("without Pages", (0, -26, 26), margin=0.1)
MISSING = made_contrast("csv with all others", None)
EVERY_WORD = (HURTS, HELPS, UNCHANGED, KEPT, UNKNOWN, MISSING)


def made_study(contrasts: Sequence[Contrast] = EVERY_WORD, **changes: Any) -> Study:
    names = [
        name for contrast in contrasts for name in (*contrast.plus, *contrast.minus)
    ]
    study = Study(
        title="What skills do to each other",
        legend="By how many points the lift changes",
        agent="loop",
        model="haiku",
        arms=tuple(
            StudyArm(name, 0.8, 1131.4, 10, {"docs-writer": 6, "pdf": 9})
            for name in names
        ),
        contrasts=tuple(contrasts),
        conclusions=(
            "pdf loses 20 points when docs-writer is installed",
            "Of 6 pairs: 1 hurts",
        ),
        runs=4,
        trials=480,
        errored=3,
        error="haiku: 529 overloaded",
        cost=1.234,
    )
    return replace(study, **changes)


_NEIGHBOURS_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Opens docs-writer for most forms, if it is there, and then gets them wrong."""
    asked = question.messages[-1][1]
    told = [result.text for step in question.steps for result in step.results]
    tokens = Usage(len(question.system) // 4, 5, 0)
    if told:
        words = [word for word in ("portable", "commas", "prose") if word in told[-1]]
        return Answer(words[0] if words else "No idea.", tokens)
    wanted = ["pdf"] if "form" in asked else ["csv"]
    if "form" in asked and int(asked[:-1].split()[-1]) % 4 != 3:
        wanted.insert(0, "docs-writer")
    for name in wanted:
        if f"<name>{name}</name>" in question.system:
            call = ToolCall("1", "skill", '{"name": "%s"}' % name)
            return Answer("", tokens, "tool_use", calls=(call,))
    return Answer("No idea.", tokens)
'''


def write_neighbours(folder: Path, cases: int = 12) -> None:
    """``pdf`` and ``csv`` with cases, and ``docs-writer``,
    which spoils the cases of ``pdf``.
    """
    forms = [
        case(f"Fill in form {n}.", "portable", id=f"form-{n}") for n in range(cases)
    ]
    tables = [case(f"Sum table {n}.", "commas", id=f"table-{n}") for n in range(cases)]
    texts = {
        "pdf": ("Read and fill in PDF forms.", "Answer with the word portable.", forms),
        "csv": ("Work with tables of values.", "Answer with the word commas.", tables),
        "docs-writer": (
            "Write any document, form or text.",
            "Answer with the word prose.",
            [],
        ),
    }
    for name, (description, body, own) in texts.items():
        file = write_skill(folder / "skills" / name, own, body=body) / "SKILL.md"
        file.write_text(file.read_text().replace("About a gate.", description))
    (folder / "model.py").write_text(_NEIGHBOURS_MODEL, encoding="utf-8")


# Parts: a skill of which one section counts.

BODY = """# Pages

Read the page before you lay it out.

## Alignment

Turn it LEFT.

## Troubleshooting

If the printer stops, switch it off and on again:

- Paper is in the cupboard.
- Toner is beside it.

## Links

See [forms](references/forms.md).
"""
_PAGES_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Right if the section about alignment was seen; an agent opens the skill."""
    told = [result.text for step in question.steps for result in step.results]
    text = "\\n".join([question.system, *told])
    tokens = Usage(len(text) // 4, 5, 0)
    if question.tools and not told and "<name>pages</name>" in text:
        call = ToolCall("1", "skill", '{"name": "pages"}')
        return Answer("", tokens, "tool_use", calls=(call,))
    return Answer("left" if "LEFT" in text else "no idea", tokens)
'''


def write_pages(folder: Path, cases: int = 45, body: str = BODY) -> Path:
    """The skill ``pages`` in skills/, and model.py; the folder of the skill."""
    asked = [
        case(f"Lay out page {number}.", "left", id=f"page-{number}")
        for number in range(cases)
    ]
    skill = write_skill(folder / "skills/pages", asked, body=body)
    (skill / "references").mkdir()
    (skill / "references/forms.md").write_text(
        "All forms are white. " * 10, encoding="utf-8"
    )
    (folder / "model.py").write_text(_PAGES_MODEL, encoding="utf-8")
    return skill


def made_routing(
    *names: str, skills: Sequence[str] = ("docx", "pdf", "xlsx")
) -> Routing:
    """Some queries routed right, others in every other way;
    ``names`` are opened for the first.
    """
    first, second, *_ = skills
    queries = (
        RoutedQuery(
            "Merge these", (second,), opened={second: 2}, place="routes.json:2"
        ),
        RoutedQuery(
            "Fill it in", (second,), opened={first: 1, second: 1}, errors=("down",)
        ),
        RoutedQuery("Sum it up", (skills[-1],), unopened=2),
        RoutedQuery("A report", (first, second), opened={second: 1}, also={first: 1}),
        RoutedQuery("Weather?", opened={first: 1}, unopened=1),
        RoutedQuery("A poem", unwanted=(first,), opened={second: 2}),
        *(RoutedQuery(name, (first,), opened={name: 1}) for name in names),
    )
    return Routing(
        agent="loop",
        model="haiku",
        skills=tuple(sorted({*skills, *names})),
        queries=queries,
        source="evals/routes.json",
        notes=("Left out: release",),
        cost=1.25,
    )


def made_model_change(
    passes: Passes, *, skills: Sequence[str] = ("gate",), **run: Any
) -> ModelChange:
    """From the model ``old`` to ``new``, by default over 20 cases and 3 runs."""
    values = {"cases": 20, "runs": 3, "models": ("old", "new"), **run}
    made = made_run(passes=passes, skills=skills, **values)
    old, new = (
        ModelAnswers.of(
            name, made.model_ids[name], [r for r in made.records if r.model == name]
        )
        for name in ("old", "new")
    )
    changes = skill_changes(made.rows, Subject(CHAT, "old"), Subject(CHAT, "new"))
    cases = values["cases"] * len(skills)
    return ModelChange(agent=CHAT, old=old, new=new, skills=changes, cases=cases)
