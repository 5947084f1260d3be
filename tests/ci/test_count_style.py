"""Counts of habits that make lines dense: what is counted, and that none may rise."""

import json
from pathlib import Path

import pytest

from count_style import COUNTS, main, places_in

PACKING = "a, b = 1, 2\n"
LOOSE = "a = 1\nb = 2\n"


@pytest.mark.parametrize(
    ("code", "habit"),
    [
        ("a, b = x, y", "packing"),
        ("[x for row in rows for x in row]", "nested comprehension"),
        ("{f(row): [x for x in row] for row in rows}", "nested comprehension"),
        ("[*([a] if b else [])]", "starred literal"),
        ("f(*(a, b))", "starred literal"),
        ("f(*(x for x in y))", "starred literal"),
        ("a if b else []", "empty ternary"),
        ("() if b else a", "empty ternary"),
        ("a if b else c if d else e", "chained ternary"),
        ("f(1, 2, 3, 4, 5)", "positional call"),
        ("def f() -> tuple[int, str]: ...", "bare tuple"),
        ("def f() -> tuple[int, tuple[str, ...]]: ...", "bare tuple"),
        ("def f() -> tuple[int, str] | None: ...", "bare tuple"),
        ("limit = 5  # of a run", "fragment comment"),
    ],
)
def test_habit_is_found_on_its_line(code: str, habit: str) -> None:
    assert habit in places_in(code)
    assert places_in(f"first = 0\n{code}\n")[habit] == [2]


@pytest.mark.parametrize(
    "code",
    [
        "a, b = pair",
        "a = b = x, y",
        "[f(x) for x in y if x]",
        "[*a, *b]",
        "a if b else [0]",
        "a if b else c",
        "f(1, 2, 3, 4, five=5)",
        "def f() -> tuple[int, ...]: ...",
        "def f() -> list[tuple[int, str]]: ...",
        "# of a run, the first five\nlimit = 5",
        "limit = 5  # the user waits for them",
    ],
)
def test_plain_code_shows_no_habit(code: str) -> None:
    assert places_in(code) == {}


def function(*lines: str) -> str:
    body = [f"    {line}" if line else "" for line in lines]
    return "\n".join(["def f() -> None:", *body])


def test_wall_is_twenty_lines_without_a_blank_one() -> None:
    assert places_in(function(*["g()"] * 18)) == {}
    assert places_in(function(*["g()"] * 19)) == {"wall": [1]}
    assert places_in(function(*["g()"] * 15, "", *["g()"] * 15)) == {}
    docstring = ['"""Do it.', "", 'All of it."""']
    assert places_in(function(*docstring, *["g()"] * 18)) == {}
    assert places_in(function(*docstring, *["g()"] * 19)) == {"wall": [1]}


def project(root: Path, **modules: str) -> Path:
    for name, text in modules.items():
        file = root / "src" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (root / COUNTS).parent.mkdir(exist_ok=True)
    return root


def counts(root: Path) -> object:
    return json.loads((root / COUNTS).read_text())


def test_count_that_rose_fails_and_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, a=PACKING, b=LOOSE, c=PACKING)
    main(["--write"], tmp_path)
    before = counts(tmp_path)
    project(tmp_path, b=LOOSE + PACKING)

    assert main([], tmp_path) == 1
    message = capsys.readouterr().out
    assert "src: packing: 3, and 2 before" in message
    assert "src/b.py:3" in message
    assert "src/a.py" not in message
    assert main(["--lower"], tmp_path) == 1
    assert counts(tmp_path) == before


def test_count_that_fell_has_to_be_written(tmp_path: Path) -> None:
    project(tmp_path, a=PACKING * 3, b=LOOSE)
    main(["--write"], tmp_path)
    project(tmp_path, a=PACKING)

    assert main([], tmp_path) == 1
    assert main(["--lower"], tmp_path) == 0
    assert counts(tmp_path) == {"src/a.py": {"packing": 1}}
    assert main([], tmp_path) == 0


def test_code_that_moves_to_another_file_is_no_rise(tmp_path: Path) -> None:
    project(tmp_path, a=PACKING, b=LOOSE)
    main(["--write"], tmp_path)
    project(tmp_path, a=LOOSE, b=PACKING)

    assert main(["--lower"], tmp_path) == 0
    assert counts(tmp_path) == {"src/b.py": {"packing": 1}}


def test_counts_can_be_written_over_a_conflict(tmp_path: Path) -> None:
    project(tmp_path, a=PACKING)
    (tmp_path / COUNTS).write_text("<<<<<<< HEAD\n")

    assert main(["--write"], tmp_path) == 0
    assert counts(tmp_path) == {"src/a.py": {"packing": 1}}
