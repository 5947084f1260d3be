"""Studies in files of results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run import NOTHING_TESTED
from pytest_upskill.results.run_file import read_run, results_text, results_values
from support.made import made_run
from support.made_studies import HURTS, MISSING, made_study


def test_a_study_comes_back_from_a_file(tmp_path: Path) -> None:
    run = replace(
        made_run(), studies=(made_study(), made_study([], agent="chat", cost=None))
    )
    (tmp_path / "run.json").write_text(results_text(run), encoding="utf-8")
    assert read_run(tmp_path / "run.json").studies == run.studies
    study, _ = results_values(run)["studies"]
    assert (study["agent"], study["contrasts"][0]["word"]) == ("loop", "hurts")
    whole, _ = merged([Source("a", run), Source("b", replace(run, studies=()))])
    assert whole.studies == run.studies


def test_a_run_of_a_study_alone_is_not_a_run_of_nothing(tmp_path: Path) -> None:
    run = made_run(cases=0, studies=(made_study([HURTS]),))
    assert run.problems == []
    assert replace(run, studies=()).problems == [NOTHING_TESTED]
    data = json.loads(results_text(run))
    data["studies"][0]["contrasts"][0]["lift"]["low"] = -5
    (tmp_path / "run.json").write_text(json.dumps(data))
    with pytest.raises(Exception, match="lift"):
        read_run(tmp_path / "run.json")


def test_a_study_that_fails_or_lacks_answers_fails_its_run() -> None:
    hurt, missing = (
        made_study([HURTS], failure="1 pair shown to hurt"),
        made_study([MISSING]),
    )
    run = made_run(cases=0, studies=(hurt, missing))
    assert run.problems == [
        "loop/haiku: 1 pair shown to hurt",
        "loop/haiku: answers are missing",
    ]
    assert run.outcome() == "failed"


def test_what_a_study_lacks_and_took() -> None:
    assert made_study([HURTS]).complete
    assert not made_study([HURTS, MISSING]).complete
    assert not made_study([HURTS], interrupted=True).complete
    assert made_study().size == "10 cases × 4 runs"
    assert made_study([MISSING]).size == ""
    assert made_study().spent == "480 trials, 3 without an answer, $1.23"
