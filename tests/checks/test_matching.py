"""Where in an answer is what checks look for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks import grade, parse_checks, places, spans
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.trials.answer import Answer


def found(answer: str, expected: Any) -> list[str]:
    checks = parse_checks(expected, KINDS, ())
    located = spans(places(checks, [1] * len(checks), answer))
    return [answer[start:stop] for start, stop in located]


@pytest.mark.parametrize(
    ("answer", "expected", "parts"),
    [
        ("Gate UP, gate up", {"contains": "gate up"}, ["Gate UP", "gate up"]),
        (
            "Gate UP, gate up",
            {"contains": "gate up", "case_sensitive": True},
            ["gate up"],
        ),
        ("no", {"contains": "gate"}, []),
        ("push it", {"not_contains": ["push", "pull"]}, ["push"]),
        ("a or b", {"contains_any": ["b", "c"]}, ["b"]),
        ("upper up", {"words": "up"}, ["up"]),
        ("gate\n  up", {"words": "gate up"}, ["gate\n  up"]),
        ("sm_90 and SM_89", {"regex": r"sm_\d+"}, ["sm_90", "SM_89"]),
        ("sm_90", {"not_regex": "9."}, ["90"]),
        ("abc", {"regex": "x*"}, []),
        ("  Yes, no", {"starts_with": "yes"}, ["Yes"]),
        ("no, Yes", {"starts_with": "yes"}, []),
        ("so, Yes \n", {"ends_with": " yes "}, ["Yes"]),
        ("Yes, so", {"ends_with": "yes"}, []),
        ("abcd", {"contains": ["ab", "bc"]}, ["abc"]),
        ("ab", {"any_of": [{"contains": "a"}, {"not": {"contains": "b"}}]}, ["ab"]),
        ("Die STRASSE dort", {"contains": "straße"}, ["STRASSE"]),
        # Ss takes two places
        ("Die Straße dort", {"contains": ["STRASSE", "DORT"]}, ["dort"]),
        ("één ei", {"words": "ei"}, ["ei"]),
        ("ﬁne, é", {"regex": "é"}, ["é"]),
        ("words", {"max_words": 3, "json": True}, []),
    ],
)
def test_spans_of_what_checks_look_for(
    answer: str, expected: Any, parts: list[str]
) -> None:
    assert found(answer, expected) == parts


def test_number_of_spans_is_limited() -> None:
    assert len(found("a " * 500, {"contains": "a"})) == 20
    assert len(found("a " * 500, {"regex": "a"})) == 20


def test_only_the_start_of_a_very_long_answer_is_searched() -> None:
    assert (
        found("é" * 300_000 + "gate", {"contains": "gate", "ends_with": "gate"}) == []
    )


@pytest.mark.usefixtures("short_timeouts")
def test_slow_pattern_finds_nothing() -> None:
    assert found("a" * 40 + "b", {"regex": "(a|aa)+$"}) == []


letters = st.text(alphabet="abAßée\u0301İıﬀ \n각ᄀ", max_size=12)


@given(letters, letters.filter(str.strip))
def test_spans_are_ordered_and_agree_with_the_check(answer: str, part: str) -> None:
    checks = parse_checks({"contains": part}, KINDS, ())
    found = spans(grade(checks, Answer(answer)))
    assert [place for span in found for place in span] == sorted(
        {place for span in found for place in span}
    )
    assert all(0 <= start < stop <= len(answer) for start, stop in found)
    (inside,) = grade(checks, Answer(answer))
    if answer.isascii() and not Answer(answer).is_empty:
        assert inside.passed is bool(found)


@pytest.mark.parametrize(
    ("answer", "expected", "parts"),
    [
        ("a b", {"contains": ["b", "a", "c"]}, [(["b"], []), (["a"], []), ([], [])]),
        ("a b", {"contains_any": ["b", "a"]}, [(["b", "a"], [])]),
        ("a b", {"not_contains": ["b", "c"]}, [([], ["b"]), ([], [])]),
        ("a b", {"not": {"contains": "a"}}, [([], ["a"])]),
        ("a b", {"not": {"not_contains": "a"}}, [(["a"], [])]),
        ("a b", {"any_of": [{"contains": "a"}, {"not_regex": "b"}]}, [(["a"], ["b"])]),
        (
            "a b",
            {"max_words": 3, "regex": ["a", "."]},
            [([], []), (["a"], []), (["a", " ", "b"], [])],
        ),
        ("", {"contains": "a"}, [([], [])]),
    ],
)
def test_each_grade_has_its_places(answer: str, expected: Any, parts: Any) -> None:
    def texts(found: Any) -> list[str]:
        return [answer[start:stop] for start, stop in found]

    grades = grade(parse_checks(expected, KINDS, ()), Answer(answer))
    assert [(texts(one.found), texts(one.unwanted)) for one in grades] == parts


def test_an_answer_has_a_limited_number_of_places() -> None:
    checks = parse_checks({"contains": [f"{n}" for n in range(200)]}, KINDS, ())
    grades = grade(checks, Answer(" ".join(f"{n}" for n in range(200)) * 10))
    assert len(grades) == 200
    assert sum(len(one.found) for one in grades) == 500
