"""What answers took in earlier runs, and what the next ones will by it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.measure.estimate import Estimate
from pytest_upskill.measure.experience import Experience, Tally, learned, place_of
from pytest_upskill.measure.run_estimate import Past, RunEstimate, cost_words, estimate_of_run
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Usage
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.task import Task
from pytest_upskill.trials.trial import Question, Trial

PRICE = Price(1, 10, 0.1, written=1.25)
PLACE = ("gate", "loop/m", "skill")


def trial(run: int = 1, task: Task | None = None, text: str = "Why?") -> Trial:
    question = Question("m", "x" * 400, (("user", text),), 100, run, task=task)
    return Trial("gate", "a", "loop/m" if task else "m", "skill", run, question)


def planned(*trials: Trial, query: bool = False) -> PlannedCase:
    first = trials[0]
    needs = True if query else None
    return PlannedCase("a", "gate", "a", first.model, trials, should_trigger=needs)


def test_an_agent_is_estimated_by_whole_trials_with_what_it_cached() -> None:
    one = trial(task=Task("loop"))
    done = Record("gate", "a", one.model, "skill", 1, "passed", "x", 9000, 500, 6000)
    past = Past(experience=learned([planned(one)], lambda _: [done], lambda _: True))
    assert past.experience.tallies[PLACE].trials == 1
    plan = Plan((), (planned(trial(2, Task("loop"))),))
    found = estimate_of_run(plan, {}, lambda _: PRICE, past)
    usd = (3000 * 1 + 6000 * 0.1 + 500 * 10) / 1e6
    assert found.likely == pytest.approx((usd, usd))
    assert found.price.startswith("about $0.0086 (at most $")


def test_queries_of_triggers_are_apart_from_cases() -> None:
    one = trial()
    assert place_of(one, query=True) != place_of(one, query=False)
    done = Record("gate", "a", "m", "skill", 1, "passed", "x", 200, 10, 0)
    past = Past(experience=learned([planned(one, query=True)], lambda _: [done], lambda _: True))
    cases = Plan((), (planned(trial(2)),))
    queries = Plan((), (), triggers=(planned(trial(2), query=True),))
    assert estimate_of_run(cases, {}, lambda _: PRICE, past).likely is None
    assert estimate_of_run(queries, {}, lambda _: PRICE, past).likely


def test_without_prices_or_counts_nothing_is_likely() -> None:
    one = trial()
    silent = Record("gate", "a", "m", "skill", 1, "passed", "x")
    assert not learned([planned(one)], lambda _: [silent], lambda _: True).tallies
    counted = Record("gate", "a", "m", "skill", 1, "passed", "x", 200, 10, 0)
    assert not learned([planned(one)], lambda _: [counted], lambda _: False).tallies
    past = Past(experience=learned([planned(one)], lambda _: [counted], lambda _: True))
    plan = Plan((), (planned(trial(2)),))
    assert estimate_of_run(plan, {}, lambda _: None, past).likely is None


def test_a_run_of_few_trials_adds_to_what_is_known_and_one_of_most_replaces_it() -> None:
    known = Experience({PLACE: Tally(10, 100, 100, 1000)})
    known.add(Experience({PLACE: Tally(1, 10, 10, 50)}))
    assert known.tallies[PLACE] == Tally(11, 110, 110, 1050)
    known.add(Experience({PLACE: Tally(9, 90, 90, 90)}))
    assert known.tallies[PLACE] == Tally(9, 90, 90, 90)


def test_the_skill_as_it_was_is_estimated_like_the_skill_as_it_is() -> None:
    known = Experience({PLACE: Tally(1, 100, 150, 7)})
    assert known.of(("gate", "loop/m", "previous")) == known.tallies[PLACE]
    assert known.of(("gate", "loop/m", "baseline")) is None
    assert known.of(("other", "loop/m", "skill")) is None
    assert known.tallies[PLACE].usage(200, whole=False) == Usage(300, 7, 0)


@given(st.dictionaries(st.tuples(*[st.text(max_size=9)] * 3), st.integers(1, 2**40), max_size=4))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, numbers: dict[tuple[str, str, str], int]
) -> None:
    known = Experience({place: Tally(number, number, 3) for place, number in numbers.items()})
    file = tmp_path_factory.getbasetemp() / "usage.json"
    known.write(file)
    assert Experience.read(file) == known


@pytest.mark.parametrize("data", [b"", b"[", b"\xff", b"[[1]]", b'["abcd"]', b"[" * 99999])
def test_any_other_file_tells_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "usage.json").write_bytes(data)
    assert not Experience.read(tmp_path / "usage.json").tallies
    assert not Experience.read(tmp_path / "none.json").tallies


@pytest.mark.parametrize(
    ("likely", "told"),
    [
        ((0.42, 0.42), "about $0.42 (at most $1.03)"),
        ((0.21, 0.84), "about $0.21 to $0.84 (at most $1.03)"),
        ((0.0, 0.84), "up to about $0.84 (at most $1.03)"),
        ((0.0, 0.0), "up to $1.03"),
        (None, "about $0.097 to $1.03"),
    ],
)
def test_what_is_told(likely: tuple[float, float] | None, told: str) -> None:
    least = Estimate(1, 1, 0.1 if likely is None else 0.0, free=False)
    guess = Estimate(1, 1, 1.0, free=False, least=least)
    assert RunEstimate(0, guess, likely=likely).price == told


@pytest.mark.parametrize(
    ("usd", "limit", "suggest", "told"),
    [
        (10.0, None, "--most", "about $0.97 to $10.30; --most limits it"),
        (10.0, None, "", "about $0.97 to $10.30"),
        (10.0, 7.0, "--most", "about $0.97 to $10.30, stopping at $7.00"),
        (10.0, 20.0, "--most", "about $0.97 to $10.30"),
        (1.0, None, "--most", "about $0.097 to $1.03"),
    ],
)
def test_a_dear_run_is_told_how_to_limit_it(
    usd: float, limit: float | None, suggest: str, told: str
) -> None:
    guess = Estimate(1, 1, usd, free=False, least=Estimate(1, 1, usd / 10, free=False))
    assert cost_words(RunEstimate(3, guess), limit=limit, suggest=suggest) == ["3 from cache", told]


def test_what_is_not_in_the_cost_is_said() -> None:
    guess = Estimate(1, 1, 1.0, free=False)
    words = cost_words(RunEstimate(0, guess), limit=None, turns=True, python=True)
    assert words[1].endswith(" (by how many turns they take), without the tests in Python")
    assert RunEstimate(0, None, ("m",)).price == "cost not known"
    assert RunEstimate(0, guess, ("m", "n")).price.endswith(", and the price of m, n is not known")
