"""Accepted results: the file, and the digests of cases in it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.errors import AcceptedError
from pytest_upskill.features.accepted.results import (
    RESULTS_NAME,
    Accepted,
    read_results,
    write_results,
)
from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.plan import Count

B = Accepted(Count(1, 5), "2026-01-02", case="b", skill_digest="cd", setup="ef")
A = replace(B, case="a", baseline=Count(0, 5), model_id="claude")
TAIL = '"skill_digest": "cd", "setup": "ef"}'


def test_the_file_is_sorted_with_a_line_for_each_case(tmp_path: Path) -> None:
    write_results(tmp_path, {"haiku": {"1": B, "2": A}, "none": {}, "fable": {"1": B}})
    was = '"was": {"passes": 1, "runs": 5}, "date": "2026-01-02"'
    baseline = '"baseline": {"passes": 0, "runs": 5}, "model_id": "claude"'
    b = f'"1": {{"case": "b", {was}, {TAIL}'
    a = f'"2": {{"case": "a", {was}, {baseline}, {TAIL}'
    assert (tmp_path / RESULTS_NAME).read_text() == (
        f'{{\n "fable": {{\n  {b}\n }},\n "haiku": {{\n  {a},\n  {b}\n }}\n}}\n'
    )


texts = st.text(min_size=1)
counts = st.integers(1, 20).flatmap(
    lambda runs: st.builds(Count, st.integers(0, runs), st.just(runs))
)
accepted = st.builds(
    Accepted,
    counts,
    texts,
    baseline=st.none() | counts,
    case=texts,
    skill_digest=texts,
    setup=texts,
)
by_model = st.dictionaries(
    texts, st.dictionaries(texts, accepted, min_size=1, max_size=4), max_size=3
)


@given(by_model)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, models: dict[str, dict[str, Accepted]]
) -> None:
    folder = tmp_path_factory.mktemp("skill")
    write_results(folder, models)
    assert read_results(folder) == models
    assert [file.name for file in folder.iterdir()] == [RESULTS_NAME]


GOOD = {
    "was": {"passes": 5, "runs": 5},
    "date": "2026-01-02",
    "case": "a",
    "skill_digest": "cd",
    "setup": "ef",
}
TEXT = json.dumps({"haiku": {"a1": GOOD}}, indent=1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ":1:1: invalid JSON: expecting value"),
        ("[]", ":1: the file: must be an object"),
        ('{"haiku": {"a1": {}}}', ":1: haiku.a1.was: missing"),
        (TEXT.replace('"ef"', '"ef", "more": 1'), "haiku.a1.more: unknown key"),
        (TEXT.replace("5,", "9,", 1), "haiku.a1.was: more passes"),
        (TEXT.replace("5,", "-1,", 1), "haiku.a1.was: more passes"),
        (TEXT.replace(": 5", ": 9" + 9 * "0"), "haiku.a1.was: must be of 1 to"),
        ("[" * 100_000, "invalid JSON: nested too deeply"),
    ],
)
def test_a_broken_file_is_one_clear_message(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / RESULTS_NAME).write_text(text)
    with pytest.raises(AcceptedError) as caught:
        read_results(tmp_path)
    assert problem in str(caught.value)
    assert "run pytest with accept" in caught.value.hint


CASE = Case("a", "How?", expected={"contains": ["x"], "lang": "en"}, line=3)


def test_the_digest_of_a_case_changes_with_its_question_and_checks() -> None:
    same = replace(
        CASE, expected={"lang": "en", "contains": ["x"]}, line=9, tags=("t",), runs=3
    )
    assert case_digest(same) == case_digest(CASE)
    others = [
        replace(CASE, input="Why?"),
        replace(CASE, expected={"contains": ["y"]}),
        replace(CASE, system="Be brief."),
        replace(CASE, files=(("a.txt", "text"),)),
        replace(CASE, earlier=(("user", "Hi"), ("assistant", "Hello"))),
        replace(CASE, validator=("lines", {})),
    ]
    assert len({case_digest(case) for case in [CASE, *others]}) == len(others) + 1


def test_the_digest_of_a_case_changes_with_the_code_of_its_checks(
    tmp_path: Path,
) -> None:
    checks = [{"any_of": [{"python": "checks.py:good"}, {"contains": ["x"]}]}]
    coded = replace(
        CASE, expected={"all_of": checks, "json_schema": {"python": "no-file"}}
    )
    digests = set()
    for code in ("def good(context): return False", "def good(context): return True"):
        (tmp_path / "checks.py").write_text(code)
        digests.add(case_digest(coded, tmp_path))
    assert len(digests | {case_digest(coded)}) == 3
    assert case_digest(CASE, tmp_path) == case_digest(CASE)
    assert case_digest(replace(CASE, expected=None), tmp_path)
    assert case_digest(replace(CASE, expected=["x"]), tmp_path)
