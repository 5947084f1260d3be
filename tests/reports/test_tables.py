"""Tables of text: alignment, several lines in a cell, paint, and layouts that fit."""

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook
from pytest_upskill.reports.terminal.tables import Cell, Column, Table, fitted

COLUMNS = [Column("model"), Column("lift", right=True)]


def table(*rows: tuple[str, str], between: str = "  ") -> Table:
    return Table(COLUMNS, [[Cell(text) for text in row] for row in rows], between)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    made = table(("日本", "+5"), ("haiku", "-100"))
    assert made.lines(TerminalLook(marks=ASCII_MARKS)) == [
        "model  lift",
        "-----------",
        "日本     +5",
        "haiku  -100",
    ]
    assert made.width == len("haiku  -100")


def test_a_cell_may_have_several_lines() -> None:
    assert table(("a\nlong", "+5")).body(TerminalLook().paint) == [
        "a        +5",
        "long",
    ]


def test_only_the_words_are_painted() -> None:
    rows = [
        [Cell("a"), Cell("+5", {"green": True})],
        [Cell("b"), Cell("", {"red": True})],
    ]
    lines = Table(COLUMNS, rows).body(
        lambda text, **style: f"<{','.join(style)}>{text}"
    )
    assert lines == ["a        <green>+5", "b"]


def test_the_first_layout_that_fits_is_taken() -> None:
    layouts = [table(("a" * size, "1")) for size in (30, 20, 10)]
    assert [fitted(layouts, width) for width in (40, 30, 20, 9)] == [
        *layouts,
        layouts[-1],
    ]
