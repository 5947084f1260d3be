"""Checks of an answer's text, its length, its time and how it ended."""

from typing import Any

import pytest

from pytest_upskill.errors import CheckError
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.records import Grade
from support.checking import graded, passes, reason, refused

E_ACUTE, E_AND_ACUTE = "\u00e9", "e\u0301"


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ({"contains_any": ["cat", "dog"]}, "A DOG.", "A bird."),
        ({"words": "api"}, "The API, say", "capitalize"),
        ({"words": "gate up"}, "type gate\nup now", "gate upper"),
        ({"words": "C++"}, "in c++, say", "c++x"),
        ({"words": "-v"}, "use -v", "use x-v"),
        ({"words": "नमस्ते"}, "नमस्ते!", "नमस्तेि"),
        ({"equals": "Yes."}, " yes.\n", "yes. sir"),
        ({"starts_with": "feat("}, "\nFeat(x): y", "a feat("),
        ({"ends_with": "done"}, "It is DONE\n", "done it"),
        ({"regex": r"\bv\d+\b"}, "It is V12.", "vx"),
        ({"regex": ["a", "b"]}, "ab", "a"),
        ({"regex": "^b"}, "b", "a\nb"),
        ({"regex": "(?m)^b"}, "a\nb", "ab"),
        (
            {"regex": r"([0-9a-f]{8}-){2}[)(}]{200}\({0}"},
            f"{8 * 'a'}-{8 * 'b'}-{200 * ')'}",
            "a",
        ),
        ({"not_regex": r"TODO|FIXME"}, "done", "todo: it"),
        ({"min_words": 2}, "a b", "a"),
        ({"max_words": 2}, "a\n b", "a b c"),
        ({"max_chars": 3}, " abc\n", "abcd"),
        ({"contains": "Gate", "case_sensitive": True}, "Gate", "gate"),
        ({"words": "Gate", "case_sensitive": True}, "Gate", "gate"),
        ({"equals": "Gate", "case_sensitive": True}, "Gate", "gate"),
        ({"regex": "Gate", "case_sensitive": True}, "Gate", "gate"),
        ({"not_regex": "Gate", "case_sensitive": True}, "gate", "Gate"),
    ],
)
def test_text_check_passes_right_and_fails_wrong(
    expected: dict[str, Any], right: str, wrong: str
) -> None:
    assert passes(right, **expected)
    assert not passes(wrong, **expected)


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("gate up", "Type `gate up`."),
        ("GATE up", "type gAtE Up"),
        ("STRASSE", "die Straße"),
        ("straße", "DIE STRASSE"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("a\nb", "x a\nb y"),
    ],
)
def test_contains_ignores_case(wanted: str, answer: str) -> None:
    assert passes(answer, contains=wanted)
    assert not passes(answer, not_contains=wanted)


@pytest.mark.parametrize(
    ("text", "answer"), [("9.0", "900"), ("gate up", "gate  up"), ("gate", "gat")]
)
def test_contains_needs_the_exact_text(text: str, answer: str) -> None:
    assert not passes(answer, contains=text)
    assert passes(answer, not_contains=text)


def test_checks_are_graded_in_order_with_a_reason() -> None:
    expected = {"contains": ["9.0", "cuda"], "not_contains": ["8.0", "7.0"]}
    assert graded(expected, "9.0 and 8.0") == (
        Grade("contains", passed=True, reason='"9.0" is in the answer'),
        Grade("contains", passed=False, reason='"cuda" is not in the answer'),
        Grade("not_contains", passed=False, reason='"8.0" is in the answer'),
        Grade("not_contains", passed=True, reason='"7.0" is not in the answer'),
    )


def test_failure_on_a_cut_off_answer_says_so() -> None:
    expected = {"contains": ["9.0", "cuda"]}
    kept, lost = graded(expected, Answer("9.0 and", stop="length"))
    assert kept.reason == '"9.0" is in the answer'
    assert lost.reason == '"cuda" is not in the answer (cut off by the output limit)'


@pytest.mark.parametrize(
    "name",
    [
        "contains",
        "contains_any",
        "words",
        "equals",
        "starts_with",
        "ends_with",
        "regex",
    ],
)
@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        (E_ACUTE, E_AND_ACUTE),
        (E_AND_ACUTE, E_ACUTE),
        (E_ACUTE, "E\u0301"),
        ("STRASSE", "straße"),
        ("straße", "STRASSE"),
        ("\u0390", "\u03b9\u0308\u0301"),  # a letter whose folding is not composed
        ("ΣΊΣΥΦΟΣ", "Σίσυφος"),
    ],
)
def test_composed_and_decomposed_letters_are_equal(
    name: str, wanted: str, answer: str
) -> None:
    assert passes(answer, **{name: wanted})


@pytest.mark.parametrize(
    ("wanted", "answer"), [("102", "10²"), ("fi", "ﬁ x"[1:]), ("e", "é")]
)
def test_lookalikes_differ(wanted: str, answer: str) -> None:
    assert not passes(answer, contains=wanted)


@pytest.mark.parametrize(
    ("answer", "expected", "message"),
    [
        ("x", {"contains_any": ["a", "b"]}, 'none of "a", "b" is in the answer'),
        ("xb", {"contains_any": ["a", "b"]}, '"b" is in the answer'),
        (
            "capital",
            {"words": "api"},
            '"api" is in the answer only as part of other words',
        ),
        ("api", {"words": "api"}, '"api" is in the answer as a word'),
        ("no", {"equals": "yes"}, 'the answer is not "yes"'),
        ("no", {"starts_with": "yes"}, 'the answer does not start with "yes"'),
        ("v12", {"regex": r"v\d+"}, r'"v\d+" matches "v12" in the answer'),
        ("v", {"regex": r"v\d+"}, r'"v\d+" matches nothing in the answer'),
        ("a b", {"max_words": 1}, "2 words (limit 1)"),
        ("a", {"min_words": 2}, "1 word (minimum 2)"),
    ],
)
def test_reason_says_what_was_found(
    answer: str, expected: dict[str, Any], message: str
) -> None:
    assert reason(answer, **expected) == message


def test_long_text_is_shortened_in_a_reason() -> None:
    assert len(reason("y", contains="x" * 5_000)) < 150


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize("name", ["regex", "not_regex"])
def test_slow_pattern_is_an_error(name: str) -> None:
    hanging = "a" * 5_000 + "b"
    told = rf'0\.2 s in all, and {name} "\(a\+\)\+\$" was not done\. Simplify it'
    for expected in ({name: "(a+)+$"}, {"not": {name: "(a+)+$"}}):
        with pytest.raises(CheckError, match=told):
            graded(expected, hanging)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"regex": "a("}, "regex: invalid pattern: missing ) at position 2"),
        (
            {"regex": ["a", "[z-a]"]},
            "regex[1]: invalid pattern: bad character range at",
        ),
        (
            {"not_regex": "*"},
            "not_regex: invalid pattern: nothing to repeat at position 0",
        ),
        ({"regex": "(" * 2_000}, "regex: pattern can't be compiled: RecursionError"),
        ({"regex": "x" * 2_001}, "regex: pattern longer than 2,000 characters"),
        ({"regex": "((a{999}){999}){999}"}, "such as {999} are too large"),
        ({"regex": "(a{9,}){99999}"}, "such as {999} are too large"),
        ({"regex": ""}, "regex: must not be empty"),
        ({"max_words": 0}, "max_words: must be 1 or more"),
        ({"max_words": "9"}, "max_words: must be a whole number"),
        ({"max_words": True}, "max_words: must be a whole number"),
        ({"max_words": 1.5}, "max_words: must be a whole number"),
        ({"equals": ["a"]}, "equals: must be a string"),
        ({"contains": "\ud800"}, "contains: contains half a character"),
        ({"max_seconds": -1}, "max_seconds: must be above 0"),
        ({"max_seconds": float("nan")}, "max_seconds: must be a finite number"),
        ({"refused": "no"}, "refused: must be true or false"),
        ({"stop": 1}, "stop: must be a string"),
        (
            {"startswith": "a"},
            'startswith: unknown check (did you mean "starts_with"?)',
        ),
    ],
)
def test_invalid_argument_is_reported_with_its_path(
    expected: dict[str, Any], message: str
) -> None:
    assert message in refused(expected)


@pytest.mark.parametrize(
    ("expected", "right", "wrong", "message"),
    [
        (
            {"max_output_tokens": 10},
            Answer("x", Usage(output=10)),
            Answer("x", Usage(output=11)),
            "11 tokens (limit 10)",
        ),
        (
            {"max_seconds": 1.5},
            Answer("x", seconds=1.5),
            Answer("x", seconds=1.6),
            "1.6 s (limit 1.5 s)",
        ),
        (
            {"refused": False},
            Answer("x"),
            Answer("No.", stop="refusal"),
            "the model refused to answer",
        ),
        (
            {"refused": True},
            Answer("", stop="refusal"),
            Answer("x"),
            "the model did not refuse to answer",
        ),
        (
            {"stop": "end"},
            Answer("x"),
            Answer("x", stop="tool_use"),
            'stop reason "tool_use"',
        ),
    ],
)
def test_limits_stop_reason_and_refusal(
    expected: dict[str, Any], right: Answer, wrong: Answer, message: str
) -> None:
    assert passes(right, **expected)
    assert not passes(wrong, **expected)
    assert reason(wrong, **expected) == message


def test_unknown_token_count_is_undecided() -> None:
    assert not passes("x", max_output_tokens=10)
    assert not passes("x", **{"not": {"max_output_tokens": 10}})
    assert "does not report" in reason("x", max_output_tokens=10)


def test_answer_of_five_megabytes_is_graded() -> None:
    expected = {
        "contains": ["zzz", "Straße"],
        "words": "zzz",
        "starts_with": "é",
        "regex": r"zz+z",
        "not_regex": "zzz",
        "min_words": 3,
        "max_chars": 100,
        "number": 42,
        "json": True,
        "yaml": True,
        "code": {"language": "python", "parses": True},
        "csv_columns": "a",
    }
    grades = graded(expected, "é word, " * 625_000)
    assert [grade.check for grade in grades if grade.passed] == [
        "starts_with",
        "not_regex",
        "min_words",
    ]
    too_long = "too long to parse: 5,000,000 characters (limit 200,000)"
    assert [grade.reason for grade in grades].count(too_long) == 5


def test_a_reason_shows_the_white_space_that_counts() -> None:
    assert reason("def f()->int:", contains="-> ") == '"-> " is not in the answer'
    assert reason("a b", contains="a  b") == '"a  b" is not in the answer'
    assert reason("a b", contains="a\n\tb") == '"a\\n\\tb" is not in the answer'
    assert reason("a", contains="x" * 200) == f'"{"x" * 99}…" is not in the answer'
