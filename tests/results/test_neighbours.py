"""What a matrix of neighbours says, and its way to a file and back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.run_lines import run_lines
from pytest_upskill.results.arm_comparison import points_words
from pytest_upskill.results.history import keep
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.neighbours import (
    Matrix,
    Neighbour,
    Openings,
    conclusion,
    listing_sentence,
    matrix_sentences,
    open_sentences,
    pair_name,
    shown_sentences,
)
from pytest_upskill.results.run import NOTHING_TESTED
from pytest_upskill.results.run_file import read_run, results_text, results_values
from support.made import made_run
from support.made_studies import (
    HELPS,
    HURTS,
    MISSING,
    TINY,
    UNKNOWN,
    Change,
    lift,
    made_matrix,
    neighbour,
)


def of(*pairs: Neighbour) -> Matrix:
    return made_matrix(pairs=pairs)


def test_the_worst_comes_first_with_what_was_opened() -> None:
    worst = neighbour("pdf", None, (-45, -60, -30, "shown", None))
    matrix = of(neighbour("pdf", "csv", HELPS), neighbour("pdf", "docs-writer", HURTS), worst)
    assert shown_sentences(matrix) == [
        "pdf loses 45 points (30 to 60) when both others are installed: "
        "another is opened first in 6 of 10 (csv 6)",
        "pdf loses 20 points (5 to 35) when docs-writer is installed: "
        "it is opened first in 6 of 10",
        "pdf gains 15 points (3 to 27) when csv is installed; "
        "pdf is opened in 10 of 10 trials, and in 9 of 10 trials alone",
    ]


def test_a_loss_that_opening_does_not_explain_says_how_often_the_skill_was_opened() -> None:
    seldom = neighbour("pdf", "csv", HURTS, Openings(10, {"pdf": 2}, {"pdf": 2}))
    (line,) = shown_sentences(of(seldom))
    assert line.endswith("; pdf is opened in 2 of 10 trials, and in 9 of 10 trials alone")
    (line,) = shown_sentences(of(replace(seldom, openings=Openings())))
    assert line == "pdf loses 20 points (5 to 35) when csv is installed"


def test_what_is_not_known_is_never_called_no_effect() -> None:
    matrix = of(
        neighbour("pdf", "csv", TINY),
        neighbour("pdf", "docs-writer", UNKNOWN),
        neighbour("csv", "pdf", MISSING),
    )
    lines = open_sentences(matrix)
    assert lines == [
        "Incomplete, as answers are missing: haiku: 529 overloaded (csv with pdf)",
        f"pdf with docs-writer: no change shown, {points_words(lift(3, -12, 18))} over 10 cases, "
        "dropped after 4 runs; about 120 cases would show one of this size",
        f"pdf with csv: no change shown, {points_words(lift(0, -26, 26))} over 10 cases; "
        "about 68 cases would tell whether it is more than 10 points",
    ]
    assert open_sentences(matrix, 1) == [*lines[:2], "1 more pair: no change shown"]
    assert not any("no effect" in line for line in matrix_sentences(matrix))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([HURTS, UNKNOWN], "Of 2 pairs: 1 hurts, 1 unknown"),
        ([HELPS], "Of 1 pair: 1 helps"),
        (
            [TINY],
            "The only pair is not shown to hurt or to help, "
            "which does not mean that nothing happens",
        ),
        (
            [UNKNOWN, TINY],
            "None of 2 pairs is shown to hurt or to help, which does not mean that nothing happens",
        ),
        (
            [MISSING, TINY],
            "None of 2 pairs is shown to hurt or to help, but answers are missing for 1",
        ),
    ],
)
def test_one_line_for_all_pairs(changes: list[Change], text: str) -> None:
    names = ["csv", "docs-writer"]
    pairs = [neighbour("pdf", name, change) for name, change in zip(names, changes, strict=False)]
    assert conclusion(of(*pairs)) == text


def test_of_many_pairs_only_some_are_told() -> None:
    bare: tuple[str, ...] = ()
    matrix = made_matrix([f"s{number}" for number in range(9)], [HURTS, HELPS], bare)
    assert len(shown_sentences(matrix)) == 81
    assert len(lines := shown_sentences(matrix, 3)) == 4
    assert lines[-1] == "78 more pairs: 38 hurt, 40 help"
    missing = made_matrix([f"s{number}" for number in range(4)], [MISSING], bare)
    assert open_sentences(missing, 1) == [
        "Incomplete, as answers are missing: haiku: 529 overloaded (s0 with s1, 15 more)"
    ]


def test_a_narrow_interval_says_what_is_unlikely() -> None:
    (line,) = open_sentences(of(neighbour("pdf", "csv", (1, -4, 6, "none shown", None))))
    assert line.endswith("one of more than 10 points is unlikely")


def test_what_the_list_costs() -> None:
    matrix = made_matrix()
    text = "The list of 3 skills costs every request about 137 tokens"
    assert listing_sentence(matrix) == f"{text} by our estimate, 167 by the model's count"
    assert listing_sentence(replace(matrix, listing_seen={"pdf": 3})) == text
    assert matrix.spent == "480 trials, 3 without an answer, $1.23"


def test_names_of_pairs_never_collide() -> None:
    assert pair_name('a" with "b', "c") != pair_name("a", 'b" with "c')
    assert pair_name("a", "all others") != pair_name("a", None)


def test_a_matrix_comes_back_from_a_file(tmp_path: Path) -> None:
    run = replace(made_run(), matrices=(made_matrix(), made_matrix(("a", "b"), bare=())))
    (tmp_path / "run.json").write_text(results_text(run), encoding="utf-8")
    back = read_run(tmp_path / "run.json")
    assert back.matrices == run.matrices
    (report, _) = results_values(run)["matrices"]
    assert report["agent"] == "loop"
    assert report["pairs"][0]["verdict"] == made_matrix().pairs[0].verdict
    assert report["pairs"][2]["other"] is None
    whole, _ = merged([Source("a", run), Source("b", replace(run, matrices=()))])
    assert whole.matrices == run.matrices


def test_a_kept_run_has_its_matrix(tmp_path: Path) -> None:
    run = replace(made_run(), matrices=(made_matrix(),))
    kept = keep(run, tmp_path / "runs", 10**9)
    assert kept
    assert read_run(kept).matrices == run.matrices
    text = " ".join("\n".join(run_lines("a", run, TerminalLook(80))).split())
    assert matrix_sentences(made_matrix())[0] in text


def test_a_run_of_a_matrix_alone_is_not_a_run_of_nothing(tmp_path: Path) -> None:
    run = made_run(cases=0, matrices=(made_matrix(),))
    assert run.problems == []
    assert replace(run, matrices=()).problems == [NOTHING_TESTED]
    data = json.loads(results_text(run))
    data["matrices"][0]["pairs"][0]["effect"]["lift"] = 5
    (tmp_path / "run.json").write_text(json.dumps(data))
    with pytest.raises(Exception, match="lift"):
        read_run(tmp_path / "run.json")
