"""Text by the columns that it takes on a terminal."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_upskill.reports.terminal.layout import (
    ASCII_MARKS,
    Marks,
    cut,
    cut_middle,
    distinct_names,
    marks_for,
    padded,
    side_by_side,
    split_name,
    text_width,
    wrapped,
)
from support.made import LONG_MODEL, lines, made_summary

NOT_ALL_ALIKE = ["…good.json", "…poor.json", "haiku"]
texts = st.text(alphabet="ab -/_:.日本é\u0301🎉", max_size=60)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("gate", 4),
        ("é", 1),
        ("e\u0301", 1),
        ("日本", 4),
        ("ｇ", 2),
        ("🎉", 2),
        ("→█", 2),
    ],
)
def test_width_is_counted_in_terminal_columns(text: str, columns: int) -> None:
    assert text_width(text) == columns


def test_padding_goes_left_or_right() -> None:
    assert padded("日本", 6) == "日本  "
    assert padded("e\u0301", 3, right=True) == "  e\u0301"
    assert padded("long", 2) == "long"


def test_wide_text_is_cut_at_the_end_or_in_the_middle() -> None:
    assert cut("gate up", 7, "…") == "gate up"
    assert cut("gate up", 5, "…") == "gate…"
    assert cut("日本語", 4, "…") == "日…"
    assert cut_middle("conventional-commits", 9, "…") == "conv…mits"
    assert cut_middle("日本語です", 5, "…") == "日…す"


@given(texts, st.integers(4, 30))
def test_cut_text_fits_the_width(text: str, width: int) -> None:
    for shown in (
        cut(text, width, "…"),
        cut_middle(text, width, "…"),
        cut(text, width, "~"),
    ):
        assert text_width(shown) <= width
    if text_width(text) <= width:
        assert cut(text, width, "…") == cut_middle(text, width, "…") == text


@pytest.mark.parametrize(
    ("line", "marks", "shown"),
    [
        ("aaaaaa>>gate<<", (">>", "<<"), ["aaaaaa", ">>gate<<"]),
        ("aaaaa>>gate<<", (">>", "<<"), ["aaaaa>>g", "ate<<"]),
        ("aaaaaaa>>gate<<", (">>", "<<"), ["aaaaaaa", ">>gate<<"]),
        ("a>>gat<<bb", (">>", "<<"), ["a>>gat<<", "bb"]),
        ("a>>gate<<bb", (">>", "<<"), ["a>>gat", "e<<bb"]),
        ("aa>>gate<<bb", (">>", "<<"), ["aa>>gat", "e<<bb"]),
        ("aaaaaa»g«b", ("»", "«"), ["aaaaaa", "»g«b"]),
        ("aaa»gae\u0301«b", ("»", "«"), ["aaa»gae\u0301«", "b"]),
        ("aaaa»gae\u0301«b", ("»", "«"), ["aaaa»ga", "e\u0301«b"]),
        ("»日本語«", ("»", "«"), ["»日本語«"]),
        ("a»日本語«", ("»", "«"), ["a»日本", "語«"]),
    ],
)
def test_marks_are_never_split_from_their_passage(
    line: str, marks: tuple[str, str], shown: list[str]
) -> None:
    assert wrapped(line, 8, around=marks) == shown


@given(st.text(alphabet="ab <>日\u0301", max_size=60), st.integers(6, 30))
def test_wrapping_lines_with_marks_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width, first="> ", rest="| ", around=(">>", "<<"))
    assert all(text_width(line) <= width for line in lines)
    assert "".join(line[2:] for line in lines).replace(" ", "") == text.replace(" ", "")


@example(["", " ", "1" * 12 + "\x1b" * 3 + "\u0301"], 26, "…")
@given(
    st.lists(
        st.text(alphabet="ab:/-.日\x1b \u2026~1\u0301", max_size=40),
        unique=True,
        max_size=12,
    ),
    st.integers(8, 30),
    st.sampled_from("…~"),
)
def test_different_names_never_look_the_same(
    names: list[str], width: int, mark: str
) -> None:
    shown = distinct_names(names, width, mark)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    assert all(max(text_width(text), len(text)) <= width for text in shown.values())
    assert "\x1b" not in "".join(shown.values())


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        (["scripted:a.json", "haiku"], 15, ["scripted:a.json", "haiku"]),
        (["scripted:good.json", "scripted:bad.json"], 12, ["good.json", "bad.json"]),
        (
            ["org/GLM-4.7-Flash:Q4", "org/GLM-4.7-Air:Q4"],
            11,
            ["GLM-4…sh:Q4", "GLM-4…ir:Q4"],
        ),
        (["scripted:a-good.json", "scripted:a-poor.json", "haiku"], 12, NOT_ALL_ALIKE),
        (["conventional-commits"], 9, ["conv…mits"]),
        (
            ["x" * 30 + "1" + "x" * 30, "x" * 30 + "2" + "x" * 30],
            9,
            ["xxxxxxx…1", "xxxxxxx…2"],
        ),
        (["a b", "a  b"], 9, ["a b…1", "a b…2"]),
        (["a:", "a:" + "b" * 9], 8, ["a:", "a:bb…bbb"]),
        ([], 9, []),
    ],
)
def test_names_first_lose_what_they_share(
    names: list[str], width: int, shown: list[str]
) -> None:
    assert list(distinct_names(names, width, "…").values()) == shown


@given(texts, st.integers(6, 30))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    lines = wrapped(text, width, first="> ", rest="    ")
    assert all(text_width(line) <= width for line in lines)
    whole = lines[0][2:] + "".join(line[4:] for line in lines[1:])
    assert whole.replace(" ", "") == text.replace(" ", "")
    pieces = split_name(text, width)
    assert "".join(pieces) == text
    assert all(text_width(piece) <= width for piece in pieces)


def test_a_line_is_broken_at_blanks_and_keeps_those_inside() -> None:
    assert wrapped("one two  three", 8) == ["one two ", "three"]
    assert wrapped("    x = 1", 20) == ["    x = 1"]
    assert wrapped("a" * 10, 4) == ["aaaa", "aaaa", "aa"]
    assert wrapped("", 4, first="| ") == ["| "]


def test_a_very_long_line_is_wrapped_in_one_pass() -> None:
    """A copy of the rest for every piece would take minutes."""
    assert len(wrapped("a" * 2_000_000, 50)) == 40_000
    assert len(wrapped("ä" * 200_000, 50)) == 4_000


def test_a_name_is_split_at_its_punctuation() -> None:
    assert split_name("unsloth/GLM-4.7-Flash", 10) == ["unsloth/", "GLM-4.7-", "Flash"]


def test_blocks_of_wide_characters_line_up_side_by_side() -> None:
    assert side_by_side([["日本", "a"], ["b", "c", "d"]], 6, "│ ") == [
        "日本  │ b",
        "a     │ c",
        "      │ d",
    ]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_other_terminals_get_ascii(encoding: str) -> None:
    assert marks_for(encoding) == ASCII_MARKS
    assert "\n".join(
        lines(made_summary(LONG_MODEL), marks=marks_for(encoding))
    ).isascii()


def test_a_unicode_terminal_gets_block_characters() -> None:
    assert marks_for("utf-8") == Marks()
