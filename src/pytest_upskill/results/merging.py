"""Merge result files: the shards of a CI job become one run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from .._util.texts import counted, one_line
from ..errors import ResultsError
from ..trials.plan import PlannedCase
from ..trials.records import Record
from .run import RunResults, incomplete

T = TypeVar("T")
_ONE_RUN: Final = "Merge only shards of one run."


@dataclass(frozen=True)
class Source:
    """A result file and its name in messages."""

    name: str
    results: RunResults


def merged(sources: Sequence[Source], *, subset: bool = False) -> tuple[RunResults, list[str]]:
    """The merged run, and notes on it.

    Cases in none of the files count as not run, unless ``subset`` is set.
    """
    first = sources[0].results
    if len(sources) == 1:
        return first, []
    _same(sources, lambda run: run.looks, "different numbers of runs")
    _same(sources, lambda run: run.gates, "different gates")
    skills = _agreed(sources, lambda run: [(skill.name, skill) for skill in run.skills], "skill")
    models = _agreed(sources, lambda run: run.model_ids.items(), "model")
    tests = _tests(sources, lambda run: run.tests)
    triggers = _tests(sources, lambda run: run.triggers)
    records, repeated = _records(sources, lambda run: run.records)
    decided, again = _records(sources, lambda run: run.trigger_records)
    repeated += again
    missing, missing_queries = (
        {} if subset else {pair: whole - have for pair, (have, whole) in incomplete(some).items()}
        for some in (tests, triggers)
    )
    runs = [source.results for source in sources]
    started = min(run.started for run in runs)
    ended = max(run.started + timedelta(seconds=run.seconds) for run in runs)
    commits = {run.commit for run in runs}
    untested = {name: why for run in runs for name, why in run.untested.items()}
    tested = {name for test in (*tests, *triggers) for name in test.pair}
    answered = {
        test.nodeid
        for some, known in ((tests, records), (triggers, decided))
        for places in [{(record.skill, record.case, record.label) for record in known}]
        for test in some
        if (test.skill, test.case, test.label) in places
    }
    lost = [nodeid for run in runs for nodeid in run.lost]
    stops = [run.interrupted for run in runs if run.interrupted is not None]
    whole = replace(
        first,
        started=started,
        seconds=(ended - started).total_seconds(),
        skills=tuple(skills.values()),
        model_ids=models,
        tests=tuple(tests),
        records=tuple(records),
        questions={key: text for run in runs for key, text in run.questions.items()},
        commit=first.commit if len(commits) == 1 else None,
        triggers=tuple(triggers),
        trigger_records=tuple(decided),
        missing=missing,
        missing_queries=missing_queries,
        unmatched=tuple(dict.fromkeys(one for run in runs for one in run.unmatched)),
        broken={node: why for run in runs for node, why in run.broken.items()},
        untested={name: why for name, why in untested.items() if name not in tested},
        lost=tuple(nodeid for nodeid in dict.fromkeys(lost) if nodeid not in answered),
        interrupted="; ".join(dict.fromkeys(stops)) if stops else None,
        matrices=tuple(one for run in runs for one in run.matrices),
        parts=tuple(one for run in runs for one in run.parts),
        prompt_cache_saved=sum(run.prompt_cache_saved for run in runs),
    )
    notes = [f"{counted(repeated, 'trial')} in several files, counted once."]
    other = ["The files are from different commits."] if len(commits) > 1 else []
    for name in whole.agents:
        known = dict.fromkeys(run.agents[name] for run in runs if name in run.agents)
        if len(known) > 1:
            of = f"{one_line(name, 60)}: {one_line(', '.join(known), 200)}"
            other.append(f"The files are of different versions of {of}.")
    return whole, [*(notes if repeated else []), *other]


def _same(sources: Sequence[Source], value: Callable[[RunResults], object], what: str) -> None:
    first = sources[0]
    for source in sources[1:]:
        if value(source.results) != value(first.results):
            raise ResultsError(source.name, f"{what} than in {first.name}", _ONE_RUN)


def _agreed(
    sources: Sequence[Source], named: Callable[[RunResults], Iterable[tuple[str, T]]], what: str
) -> dict[str, T]:
    """Values by name; files that disagree are not of one run."""
    known: dict[str, tuple[T, str]] = {}
    for source in sources:
        for name, value in named(source.results):
            before, file = known.setdefault(name, (value, source.name))
            if before != value:
                problem = f"the {what} {one_line(name, 100)} differs from {file}"
                raise ResultsError(source.name, problem, _ONE_RUN)
    return {name: value for name, (value, _) in known.items()}


def _tests(
    sources: Sequence[Source], tests_of: Callable[[RunResults], Sequence[PlannedCase]]
) -> list[PlannedCase]:
    known: dict[tuple[str, str, str], tuple[PlannedCase, str]] = {}
    for source in sources:
        for test in tests_of(source.results):
            place = (test.skill, test.case, test.label)
            before, file = known.setdefault(place, (test, source.name))
            if before.digest != test.digest:
                problem = (
                    f"the case {_named(place)} has a different question or checks than in {file}"
                )
                raise ResultsError(source.name, problem, _ONE_RUN)
    return [test for test, _ in known.values()]


def _records(
    sources: Sequence[Source], records_of: Callable[[RunResults], Sequence[Record]]
) -> tuple[list[Record], int]:
    """Every trial once, and the number of repeats; two different answers are an error."""
    known: dict[tuple[str, str, str, str, int], tuple[Record, str]] = {}
    repeated = 0
    for source in sources:
        for record in records_of(source.results):
            place = (record.skill, record.case, record.label, record.arm, record.run)
            if place not in known:
                known[place] = (record, source.name)
                continue
            before, file = known[place]
            if _graded(before) != _graded(record):
                problem = f"{_named(place)} has another answer in {file}"
                raise ResultsError(source.name, problem, "Leave out one of the two files.")
            repeated += 1
    return [record for record, _ in known.values()], repeated


def _graded(record: Record) -> object:
    return record.outcome, record.output, record.checks


def _named(place: Iterable[object]) -> str:
    skill, case, model, *trial = place
    name = f"{one_line(str(case), 100)} of {skill} on {model}"
    return f"{name} (arm {trial[0]}, run {trial[1]})" if trial else name
