"""Hypothesis strategies for files of cases, and for the values of trials."""

from typing import Any, get_args

from hypothesis import strategies as st

from pytest_upskill._util.json_forms import MOST
from pytest_upskill.skills.case_forms import CaseForm, DefaultsForm, MetaForm
from pytest_upskill.skills.suites import eval_checks, evals, skill_checks
from pytest_upskill.trials.answer import Answer, AnswerFile, Change, Usage
from pytest_upskill.trials.transcript import Activity, Turn, TurnKind

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
)
NAMES = [
    "contains",
    "not_contains",
    "files",
    "file",
    "role",
    "content",
    "user",
    "text",
    "a.txt",
]
FORMS = (CaseForm, DefaultsForm, MetaForm)
OWN = {
    field.alias or name for form in FORMS for name, field in form.model_fields.items()
}
FOREIGN = {*evals.QUESTIONS, *evals.NAMES, *eval_checks.EXPECTING, *evals.SILENT}
FOREIGN |= skill_checks.OF_SKILL | {
    "context",
    "expected",
    "files",
    "id",
    "tags",
    "verifiers",
}
KEYS = sorted(OWN | FOREIGN)
WORDS = st.text(st.characters()) | st.sampled_from([*NAMES, *KEYS])
VALUES = st.recursive(
    LEAVES | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
    ),
    max_leaves=5,
)


def like(form: Any, **better: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some keys of a form, most with a plausible value."""
    keys = {field.alias or name: VALUES for name, field in form.model_fields.items()}
    return st.fixed_dictionaries({}, optional={**keys, **better})


TEXT = st.text(min_size=1) | VALUES
TEXTS = st.lists(TEXT, max_size=3) | VALUES
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": TEXT}
)
FILES = st.lists(st.just("a.txt") | TEXT, max_size=3) | st.dictionaries(
    st.text(),
    TEXT | st.fixed_dictionaries({"file": st.just("a.txt") | TEXT}),
    max_size=3,
)
COMMON = {
    "context": st.fixed_dictionaries({"files": FILES}),
    "expected": st.fixed_dictionaries({"contains": TEXTS}),
    "tags": TEXTS,
    "models": TEXTS,
}
CASE = like(CaseForm, **COMMON, input=TEXT | st.lists(MESSAGE, max_size=3))
CASES = st.lists(CASE, max_size=3)
META = like(
    MetaForm,
    cases=CASES,
    tests=st.none() | CASES,
    defaults=like(DefaultsForm, **COMMON),
)
ASSERTION = TEXT | st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["contains", "regex", "x"]),
        "value": TEXTS,
        "text": TEXT,
    },
)
ASSERTIONS = st.lists(ASSERTION, max_size=3) | TEXT
FILE = st.just("a.txt") | st.fixed_dictionaries(
    {"path": TEXT}, optional={"content": TEXT}
)
LOOSE = {
    **dict.fromkeys(sorted(FOREIGN), VALUES),
    "files": st.lists(FILE, max_size=2) | FILES,
}
EVAL = st.fixed_dictionaries(
    {},
    optional={
        **LOOSE,
        "prompt": TEXT,
        "expected_output": TEXT,
        "assertions": ASSERTIONS,
    },
)
EVALS = (
    st.fixed_dictionaries(
        {"evals": st.lists(EVAL, max_size=3)}, optional={"version": VALUES}
    )
    | st.fixed_dictionaries({"cases": st.lists(EVAL, max_size=3)})
    | st.lists(EVAL, max_size=3)
    | EVAL
)

ANY_TEXT = st.text(st.characters())  # lone surrogates too
TURNS = st.builds(
    Turn,
    st.sampled_from(get_args(TurnKind)),
    ANY_TEXT,
    tool=ANY_TEXT,
    failed=st.booleans(),
)
TRANSCRIPTS = st.lists(TURNS, max_size=3).map(tuple)
ANSWER_FILES = st.lists(
    st.builds(
        AnswerFile,
        ANY_TEXT,
        st.none() | ANY_TEXT,
        st.integers(0, MOST),
        ANY_TEXT,
        st.sampled_from(get_args(Change)),
        st.sampled_from(["", "aGk="]),
    )
    | st.builds(AnswerFile.of, ANY_TEXT, st.binary() | st.text().map(str.encode)),
    max_size=3,
).map(tuple)
COUNTS = st.none() | st.integers(min_value=0)
PATHS = st.lists(ANY_TEXT, max_size=2).map(tuple)
ACTIVITIES = st.builds(
    Activity,
    st.integers(0, MOST),
    st.integers(0, MOST),
    st.sampled_from([None, True, False]),
    PATHS,
    PATHS,
    PATHS,
    PATHS,
)
ANSWERS = st.builds(
    Answer,
    ANY_TEXT,
    st.builds(Usage, COUNTS, COUNTS, COUNTS),
    stop=st.sampled_from(["end", "length", "refusal"]),
    seconds=st.floats(0, 1e6),
    files=ANSWER_FILES,
    transcript=TRANSCRIPTS,
    activity=st.none() | ACTIVITIES,
    workspace=st.binary(max_size=9),
)
