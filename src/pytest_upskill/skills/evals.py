"""evals/evals.json, as skill-creator and the guide at agentskills.io write it, read as cases.

It describes answers in words, so every check is one for the judge.
"""

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, Tag, TypeAdapter, model_validator

from .._util.json_forms import FormError, Problem, Strict, read_form
from .._util.texts import slug
from .case_forms import CaseId, Text, either
from .skill import read_skill_file

TRIGGERS_ARE_NO_CASES: Final = (
    "a trigger set (queries that should or should not activate the skill), not cases; "
    'write evals with a "prompt" and an "expected_output"'
)
_NOTHING_EXPECTED: Final = 'nothing expected; add "expected_output" or "assertions"'


class AssertionForm(BaseModel):
    """An assertion written as an object; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    text: Text | None = None
    description: Text | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "AssertionForm":
        if not (self.text or self.description):
            raise ValueError('needs a "text" or a "description"')
        return self


Assertion = Annotated[
    Annotated[Text, Tag("text")] | Annotated[AssertionForm, Tag("object")],
    either({str: "text", dict: "object"}, 'must be a string or an object with "text"'),
]


class EvalForm(Strict):
    id: CaseId | None = None
    prompt: Text
    expected_output: str | None = None
    files: list[Text] | None = None
    assertions: list[Assertion] | None = None
    expectations: list[Assertion] | None = None
    # Ignored here: for people and other programs.
    name: str | None = None
    eval_name: str | None = None
    description: Any = None
    category: Any = None
    notes: Any = None


class EvalsForm(Strict):
    evals: list[EvalForm]
    # Ignored here: for people and other programs.
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
    """The evals in the form of skill_meta.json; ``folder`` is the skill's."""
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
    """The criteria for the judge: each assertion, then the expected output."""
    items = [*(one.assertions or ()), *(one.expectations or ())]
    texts = [item if isinstance(item, str) else item.text or item.description for item in items]
    if one.expected_output and one.expected_output.strip():
        texts.append(f"The answer is as expected: {one.expected_output}")
    return list(dict.fromkeys(texts))


def _read(folder: Path, name: str) -> str:
    """skill-creator writes paths relative to the skill's folder, others relative to evals/."""
    beside = Path("evals", name)
    inside_evals = not (folder / name).exists() and (folder / beside).exists()
    return read_skill_file(folder, str(beside) if inside_evals else name)
