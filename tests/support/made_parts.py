"""A skill of which one section counts, and models that show it."""

from pathlib import Path

from pytest_upskill.results.effects import Effect, State
from pytest_upskill.results.parts import PartEffect, Parts, Saved
from pytest_upskill.stats import Lift

from .kit import case, write_skill

MODEL = "scripted:model.py:answer"
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
_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Right if the section about alignment was seen; it opens the skill, if it is an agent."""
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
        case(f"Lay out page {number}.", "left", id=f"page-{number}") for number in range(cases)
    ]
    skill = write_skill(folder / "skills/pages", asked, body=body)
    (skill / "references").mkdir()
    (skill / "references/forms.md").write_text("All forms are white. " * 10, encoding="utf-8")
    (folder / "model.py").write_text(_MODEL, encoding="utf-8")
    return skill


def part(
    name: str,
    tokens: int,
    change: Lift | None,
    state: State = "none shown",
    needed: int | None = None,
    *,
    could_go: bool = False,
) -> PartEffect:
    cases = 20 if change else 0
    saved = Saved(float(tokens), tokens - 2.0, tokens + 2.5)
    effect = Effect(name, change, cases, 2, state, needed)
    return PartEffect(name, "section", 6, tokens, effect, could_go, saved)


def made_parts(*parts: PartEffect) -> Parts:
    return Parts("pages", "m", 100, Lift(0.6, 0.4, 0.8, 0.0), parts, trials=120)
