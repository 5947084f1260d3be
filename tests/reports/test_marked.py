"""Where the page marks what checks found, in texts that are cut and escaped."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.texts import harmless
from pytest_upskill.reports.html.case_data import _cut
from pytest_upskill.reports.html.marked import marked_checks, places_of
from pytest_upskill.trials.records import Grade, Record, Span
from support.made import made_record

odd = st.text(alphabet="ab:#[ \r\n\t\x1b\u202e\u200d\u0627😀\ud800é", max_size=40)


def made(output: str | None, *grades: Grade) -> Record:
    return replace(made_record("s", "c", "m", "skill", 1), output=output, checks=grades)


def units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def shown(record: Record, limit: int) -> list[list[str]]:
    """What the page would mark, for each check."""
    cut = _cut(record.output, limit)
    assert cut is not None
    whole = units(cut[0])

    def texts(places: list[int]) -> list[str]:
        pairs = zip(places[::2], places[1::2], strict=True)
        return [whole[2 * a : 2 * b].decode("utf-16-le", "surrogatepass") for a, b in pairs]

    return [
        [*texts((marks or {}).get("found", [])), *texts((marks or {}).get("unwanted", []))]
        for marks in marked_checks(record, limit)
    ]


def found(answer: str, part: str) -> tuple[Span, ...]:
    return tuple((n, n + len(part)) for n in range(len(answer)) if answer.startswith(part, n))


@pytest.mark.parametrize(
    ("answer", "part", "marked"),
    [
        ("a gate, a gate", "gate", ["gate", "gate"]),
        ("😀😀 gate 😀", "gate", ["gate"]),
        ("\u202e\x1b gate\r\ngate", "gate", ["gate", "gate"]),
        ("std::vector", "::vector", ["::vector"]),
        ("::error::x", "::error", ["\\u003a:error"]),
        ("x\r\ny", "\r\n", ["\n"]),
        ("a\u202eb", "\u202e", ["\\u202e"]),
    ],
)
def test_places_are_those_of_the_text_on_the_page(
    answer: str, part: str, marked: list[str]
) -> None:
    record = made(answer, Grade("contains", True, "", found=found(answer, part)))
    assert shown(record, 1000) == [marked]


@given(odd, st.data())
def test_every_place_maps_to_the_same_characters(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    places = places_of(text, (start, stop))
    whole, begun, ended = units(harmless(text)), 2 * places[start], 2 * places[stop]
    assert begun <= ended <= len(whole)
    # Escapes depend on what is around them; what is not escaped must be there.
    inside = whole[begun:ended].decode("utf-16-le", "surrogatepass")
    assert [c for c in text[start:stop] if c in "abé😀"] == [
        c for c in inside.replace("\\x1b", "") if c in "abé😀"
    ] or "\\u" in inside


def test_what_is_left_out_is_counted_and_what_is_cut_is_clipped() -> None:
    answer = "gate" + "." * 500 + "gate" + "." * 500 + "gate"
    places = found(answer, "gate")
    record = made(answer, Grade("contains", True, "", found=places))
    assert shown(record, 100) == [["gate", "gate"]]
    (marks,) = marked_checks(record, 100)
    assert marks is not None
    assert marks["hidden"] == 1
    assert shown(record, 4) == [["gat", "e"]]
    assert marked_checks(record, 0) == [{"hidden": 3}]


def test_unwanted_and_missing_texts_are_told_apart() -> None:
    record = made(
        "gate",
        Grade("contains", True, "", found=((0, 4),)),
        Grade("not_contains", False, "", unwanted=((0, 4),)),
        Grade("contains", False, ""),
        Grade("not_contains", True, ""),
        Grade("max_words", False, ""),
        Grade("judge", False, ""),
    )
    assert marked_checks(record, 100) == [
        {"found": [0, 4]},
        {"unwanted": [0, 4]},
        {"missing": True},
        None,
        None,
        None,
    ]


def test_places_beyond_the_answer_do_no_harm() -> None:
    record = made("gate", Grade("contains", True, "", found=((2, 99), (50, 60), (3, 3))))
    assert shown(record, 100) == [["te"]]
    assert marked_checks(made(None, Grade("contains", False, "")), 100) == [None]
