"""An agent on a model goes by its label through history, merging,
and comparing.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.results.history import keep, newest, read_head
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.results.run_file import read_run
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.records import Grade
from support.agent_runs import agent_run

BIG = 10**9
BOTH = agent_run(cases=6, opens=lambda case, _: case < 5, also=("haiku",))


def test_the_history_keeps_agents_apart(tmp_path: Path) -> None:
    file = keep(BOTH, tmp_path, BIG)
    loop, chat = read_head(file).summary
    assert (loop.agent, loop.label, loop.model_id) == (
        "loop",
        "loop/haiku",
        "id-of-haiku",
    )
    assert (chat.agent, chat.model) == ("chat", "haiku")
    assert loop.activation
    assert (loop.activation.count, loop.activation.trials) == (5, 6)
    assert (chat.activation, chat.arm("skill").turns) == (None, None)
    assert loop.all_cases == chat.all_cases == 6
    assert list(newest(tmp_path)["gate"]) == ["loop/haiku", "haiku"]
    kept = [record.transcript for record in read_run(file).records]
    assert any(kept)
    assert kept == [record.transcript for record in BOTH.records]


def test_shards_of_agents_are_merged() -> None:
    def shard(model: str) -> Source:
        own = replace(
            BOTH,
            tests=tuple(test for test in BOTH.tests if test.label == model),
            records=tuple(one for one in BOTH.records if one.label == model),
        )
        return Source(f"{model}.json", own)

    whole, _ = merged([shard("loop/haiku"), shard("haiku")])
    assert whole.verdicts == BOTH.verdicts


def test_runs_of_agents_are_compared_by_their_label() -> None:
    worse = agent_run(cases=6, passes=lambda *_: False, also=("haiku",))
    pairs = compare_runs(BOTH, worse).pairs
    assert [pair.label for pair in pairs] == ["loop/haiku", "haiku"]
    assert compare_runs(agent_run(agent="codex"), agent_run()).pairs == ()


@pytest.mark.parametrize(
    ("stop", "limit", "settings"),
    [
        ("max_turns", "the limit of turns or time", "max_turns, timeout"),
        ("length", "the output limit without a word", "max_output"),
    ],
)
def test_trials_that_were_stopped_at_a_limit_are_told_beside_the_verdict(
    stop: str, limit: str, settings: str
) -> None:
    activity = BOTH.records[0].activity
    assert activity
    answer = Answer("", stop=stop, activity=activity)
    stopped = Grade("files", passed=False, reason=answer.why_not_gradable)
    first, *others = BOTH.records
    results = replace(BOTH, records=(replace(first, checks=(stopped,)), *others))
    what = f"loop/haiku: 1 of 12 trials stopped at {limit}"
    assert run_notes(results) == [f"{what}, which counts as failed."]
    assert run_notes(results, str) == [f"{what} ({settings}), which counts as failed."]
    assert run_notes(BOTH) == []
