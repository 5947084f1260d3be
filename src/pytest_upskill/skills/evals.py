"""evals/evals.json, as skill-creator and the guide of agentskills.io have it, read as cases.

What an answer should be is told there in words, so all of it is for the judge.
"""

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, Tag, TypeAdapter, model_validator

from .._util.json_forms import FormError, Problem, Strict, read_form
from .._util.texts import slug
from .case_forms import CaseId, Text, either
from .skill import read_skill_file

TRIGGERS_ARE_NO_CASES: Final = (
    "this is a trigger set (queries that should or should not make an agent take up the skill), "
    'and not cases; write evals with a "prompt" and an "expected_output"'
)
_NOTHING_EXPECTED: Final = (
    'nothing is said of the answer; write an "expected_output" or "assertions"'
)


class AssertionForm(BaseModel):
    """An assertion that has more to it than its text: what more there is, is left alone."""

    model_config = ConfigDict(strict=True)

    text: Text | None = None
    description: Text | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "AssertionForm":
        if not (self.text or self.description):
            raise ValueError("there is neither a 'text' nor a 'description' that says what holds")
        return self


Assertion = Annotated[
    Annotated[Text, Tag("text")] | Annotated[AssertionForm, Tag("object")],
    either({str: "text", dict: "object"}, "this is neither a text nor an object with a 'text'"),
]


class EvalForm(Strict):
    id: CaseId | None = None
    prompt: Text
    expected_output: str | None = None
    files: list[Text] | None = None
    assertions: list[Assertion] | None = None
    expectations: list[Assertion] | None = None
    # For people and for other programs.
    name: str | None = None
    eval_name: str | None = None
    description: Any = None
    category: Any = None
    notes: Any = None


class EvalsForm(Strict):
    evals: list[EvalForm]
    # For people and for other programs.
    schema_: Any = Field(None, alias="$schema")
    comment: Any = Field(None, alias="_comment")
    skill_name: Any = None
    version: Any = None
    description: Any = None
    metadata: Any = None
    notes: Any = None


_FORM: Final = TypeAdapter(EvalsForm)


def is_trigger_set(data: Any) -> bool:
    entries = data.get("evals") if isinstance(data, dict) else data
    first = entries[0] if isinstance(entries, list) and entries else None
    return isinstance(first, dict) and "should_trigger" in first


def cases_of_evals(data: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The evals as they would stand in skill_meta.json; ``folder`` is the skill's."""
    form: EvalsForm = read_form(_FORM, data)
    cases, problems = list[dict[str, Any]](), list[Problem]()
    for number, one in enumerate(form.evals):
        rubric = _rubric(one)
        if not rubric:
            problems.append((("evals", number), _NOTHING_EXPECTED))
        files = {}
        for place, name in enumerate(one.files or ()):
            try:
                files[name] = _read(folder, name)
            except ValueError as error:
                problems.append((("evals", number, "files", place), str(error)))
        cases.append(
            {
                "id": one.id or slug(one.name or one.eval_name or "") or None,
                "input": one.prompt,
                "context": {"files": files},
                "expected": {"judge": rubric},
            }
        )
    if problems:
        raise FormError(problems)
    return cases


def _rubric(one: EvalForm) -> list[str]:
    """What the judge is asked about: each assertion, and that the answer is as expected."""
    items = [*(one.assertions or ()), *(one.expectations or ())]
    texts = [item if isinstance(item, str) else item.text or item.description for item in items]
    if one.expected_output and one.expected_output.strip():
        texts.append(f"The answer is as expected: {one.expected_output}")
    return list(dict.fromkeys(texts))


def _read(folder: Path, name: str) -> str:
    """skill-creator names files from the skill's folder on, others from evals/ on."""
    beside = Path("evals", name)
    inside_evals = not (folder / name).exists() and (folder / beside).exists()
    return read_skill_file(folder, str(beside) if inside_evals else name)
