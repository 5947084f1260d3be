"""Whatever a file of cases holds: it is read, or refused with one clear error."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.case_forms import CaseForm, DefaultsForm, MetaForm
from pytest_upskill.checks import load_checked_cases
from pytest_upskill.errors import InputError
from pytest_upskill.evals import EvalForm, EvalsForm

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
NAMES = ["contains", "not_contains", "files", "file", "role", "content", "user", "text", "a.txt"]
FORMS = (CaseForm, DefaultsForm, MetaForm, EvalForm, EvalsForm)
KEYS = sorted({field.alias or name for form in FORMS for name, field in form.model_fields.items()})
WORDS = st.text(st.characters()) | st.sampled_from([*NAMES, *KEYS])
VALUES = st.recursive(
    LEAVES | WORDS, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner), max_leaves=12
)


def like(form: Any, **better: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with keys of a form, most of them with a value that could be right."""
    keys = {field.alias or name: VALUES for name, field in form.model_fields.items()}
    return st.fixed_dictionaries({}, optional={**keys, **better})


TEXT = st.text(min_size=1) | VALUES
TEXTS = st.lists(TEXT, max_size=3) | VALUES
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXT})
FILES = st.lists(st.just("a.txt") | TEXT) | st.dictionaries(
    st.text(), TEXT | st.fixed_dictionaries({"file": st.just("a.txt") | TEXT})
)
COMMON = {
    "context": st.fixed_dictionaries({"files": FILES}),
    "expected": st.fixed_dictionaries({"contains": TEXTS}),
    "tags": TEXTS,
    "models": TEXTS,
}
CASE = like(CaseForm, **COMMON, input=TEXT | st.lists(MESSAGE, max_size=3))
CASES = st.lists(CASE, max_size=3)
META = like(MetaForm, cases=CASES, tests=st.none() | CASES, defaults=like(DefaultsForm, **COMMON))
EVAL = like(EvalForm, prompt=TEXT, expected_output=TEXT, assertions=TEXTS, files=FILES)
EVALS = like(EvalsForm, evals=st.lists(EVAL, max_size=3))


def is_read_or_refused(folder: Path, data: bytes) -> bool:
    (folder / "a.txt").write_text("a")
    file = folder / "skill_meta.json"
    file.write_bytes(data)
    try:
        return bool(load_checked_cases(file))
    except InputError as error:
        return "skill_meta.json" in str(error) and "\x1b" not in str(error)


@settings(deadline=None, max_examples=300)
@given(data=VALUES | CASES | META | EVALS)
def test_any_json_is_cases_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    assert is_read_or_refused(tmp_path_factory.mktemp("any"), json.dumps(data).encode())


@settings(deadline=None)
@given(data=st.text().map(str.encode) | st.binary())
def test_any_content_is_cases_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    assert is_read_or_refused(tmp_path_factory.mktemp("any"), data)
