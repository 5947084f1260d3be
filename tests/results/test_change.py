"""How a skill changed since a git ref."""

from typing import Any

import pytest

from pytest_upskill.results.summary import summarize
from pytest_upskill.results.verdict import gate_reasons, verdicts_of
from pytest_upskill.settings import Gates
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.trial import Arm


def rows(
    previous: str, skill: str, *, arms: tuple[Arm, Arm] = ("previous", "skill")
) -> list[Record]:
    """A case a letter."""
    known: dict[str, Any] = {"P": "passed", "F": "failed", "E": "errored"}
    return [
        Record(
            "gate", str(number), "m", arm, 1, known[letter], input_tokens=tokens, output_tokens=0
        )
        for arm, letters, tokens in ((arms[0], previous, 100), (arms[1], skill, 90))
        for number, letter in enumerate(letters)
    ]


def verdict_of(records: list[Record]) -> Any:
    row = summarize(records, "gate", "m", model_id="m", not_run=0, against="main")
    (verdict,) = verdicts_of([row])
    return verdict


@pytest.mark.parametrize(
    ("previous", "skill", "sentence", "fails"),
    [
        ("FFFFFFFF", "PPPPPPPP", "since main: better, +100 points (", False),
        ("PPPPPPPP", "FFFFFFFF", "since main: worse, -100 points (", True),
        ("PPPPPPPP", "PPPPPPPF", "since main: no change shown, -12 points (", False),
    ],
)
def test_a_change_is_one_word_with_its_interval(
    previous: str, skill: str, sentence: str, fails: bool
) -> None:
    verdict = verdict_of(rows(previous, skill))
    assert verdict.since.startswith(sentence)
    assert verdict.since.endswith(", 10% fewer tokens")
    assert verdict.lift is None
    assert bool(gate_reasons([verdict], Gates(no_worse=True))) is fails


def test_only_runs_with_all_three_arms_count() -> None:
    records = [*rows("PPF", "PEP"), *(r for r in rows("FFE", "", arms=("baseline", "skill")))]
    verdict = verdict_of(records)
    assert [case.case for case in verdict.summary.by_case] == ["0"]
    assert (verdict.summary.arm("previous").rate, verdict.summary.lift) == (1, 1)
    assert verdict.summary.errored == 2
    assert gate_reasons([verdict], Gates(no_worse=True))
