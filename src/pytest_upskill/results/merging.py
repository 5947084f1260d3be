"""Merge result files: the shards of a CI job become one run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from .._util.texts import counted, one_line
from ..errors import ResultsError
from ..trials.plan import PlannedCase
from ..trials.records import Record
from .run import RunResults

T = TypeVar("T")
_ONE_RUN: Final = "Merge only shards of one run."


@dataclass(frozen=True)
class Source:
    """A result file and its name in messages."""

    name: str
    results: RunResults


def merged(
    sources: Sequence[Source], *, subset: bool = False
) -> tuple[RunResults, list[str]]:
    """The merged run, and notes on it.

    Cases in none of the files count as not run, unless ``subset`` is set.
    """
    first = sources[0].results
    if len(sources) == 1:
        return first, []
    _same(sources, lambda run: run.gates, "different gates")
    skills = _agreed(
        sources, lambda run: [(skill.name, skill) for skill in run.skills], "skill"
    )
    models = _agreed(sources, lambda run: run.model_ids.items(), "model")
    tests = _tests(sources)
    records, repeated = _records(sources)
    runs = [source.results for source in sources]
    started = min(run.started for run in runs)
    ended = max(run.started + timedelta(seconds=run.seconds) for run in runs)
    commits = {run.commit for run in runs}
    untested = {name: reason for run in runs for name, reason in run.untested.items()}
    tested = {
        name for test in tests if test.in_lift for name in (test.skill, test.label)
    }
    stops = dict.fromkeys(
        run.interrupted for run in runs if run.interrupted is not None
    )
    results = replace(
        first,
        started=started,
        seconds=(ended - started).total_seconds(),
        skills=tuple(skills.values()),
        model_ids=models,
        tests=tuple(tests),
        records=tuple(records),
        questions={key: text for run in runs for key, text in run.questions.items()},
        commit=first.commit if len(commits) == 1 else None,
        idle_gates=tuple(
            gate
            for gate in first.idle_gates
            if all(gate in run.idle_gates for run in runs)
        ),
        by_outcome=any(run.by_outcome for run in runs),
        logins=tuple(dict.fromkeys(label for run in runs for label in run.logins)),
        expects_all=not subset,
        unmatched=tuple(
            dict.fromkeys(accepted for run in runs for accepted in run.unmatched)
        ),
        broken={
            nodeid: reason for run in runs for nodeid, reason in run.broken.items()
        },
        reported={
            nodeid: word for run in runs for nodeid, word in run.reported.items()
        },
        untested={
            name: reason for name, reason in untested.items() if name not in tested
        },
        lost=_lost(runs, tests, records),
        interrupted="; ".join(stops) if stops else None,
        studies=tuple(study for run in runs for study in run.studies),
        sections=tuple(section for run in runs for section in run.sections),
        prompt_cache_saved=sum(run.prompt_cache_saved for run in runs),
    )
    notes = []
    if repeated:
        notes.append(f"{counted(repeated, 'trial')} in several files, counted once.")
    if len(commits) > 1:
        notes.append("The files are from different commits.")
    notes += _version_notes(results.agents, runs)
    return results, notes


def _lost(
    runs: Sequence[RunResults], tests: Sequence[PlannedCase], records: Sequence[Record]
) -> tuple[str, ...]:
    """Ids of tests that a run lost, and that no run answered."""
    places = {(record.pair, record.case) for record in records}
    answered = {test.nodeid for test in tests if (test.pair, test.case) in places}
    lost: dict[str, None] = {}
    for run in runs:
        for nodeid in run.lost:
            if nodeid not in answered:
                lost[nodeid] = None
    return tuple(lost)


def _version_notes(agents: Iterable[str], runs: Sequence[RunResults]) -> Iterator[str]:
    for name in agents:
        versions = dict.fromkeys(run.agents[name] for run in runs if name in run.agents)
        if len(versions) > 1:
            listed = f"{one_line(name, 60)}: {one_line(', '.join(versions), 200)}"
            yield f"The files are of different versions of {listed}."


def _same(
    sources: Sequence[Source], value: Callable[[RunResults], object], problem: str
) -> None:
    first = sources[0]
    for source in sources[1:]:
        if value(source.results) != value(first.results):
            raise ResultsError(source.name, f"{problem} than in {first.name}", _ONE_RUN)


def _agreed(
    sources: Sequence[Source],
    named: Callable[[RunResults], Iterable[tuple[str, T]]],
    noun: str,
) -> dict[str, T]:
    """Values by name; files that disagree are not of one run."""
    values: dict[str, tuple[T, str]] = {}
    for source in sources:
        for name, value in named(source.results):
            before, file = values.setdefault(name, (value, source.name))
            if before != value:
                problem = f"the {noun} {one_line(name, 100)} differs from {file}"
                raise ResultsError(source.name, problem, _ONE_RUN)
    return {name: value for name, (value, _) in values.items()}


def _tests(sources: Sequence[Source]) -> list[PlannedCase]:
    tests: dict[tuple[str, str, str], tuple[PlannedCase, str]] = {}
    for source in sources:
        for test in source.results.tests:
            place = (test.skill, test.case, test.label)
            before, file = tests.setdefault(place, (test, source.name))
            if before.digest != test.digest:
                problem = (
                    f"the case {_named(place)} has a different question or checks than"
                    f" in {file}"
                )
                raise ResultsError(source.name, problem, _ONE_RUN)
    return [test for test, _ in tests.values()]


def _records(sources: Sequence[Source]) -> tuple[list[Record], int]:
    """Every trial once, and the number of repeats; two different answers are an
    error.
    """
    records: dict[tuple[str, str, str, str, int], tuple[Record, str]] = {}
    repeated = 0
    for source in sources:
        for record in source.results.records:
            place = (record.skill, record.case, record.label, record.arm, record.run)
            if place not in records:
                records[place] = (record, source.name)
                continue
            before, file = records[place]
            if _graded(before) != _graded(record):
                problem = f"{_named(place)} has another answer in {file}"
                raise ResultsError(
                    source.name, problem, "Leave out one of the two files."
                )
            repeated += 1
    return [record for record, _ in records.values()], repeated


def _graded(record: Record) -> object:
    return record.outcome, record.output, record.checks


def _named(place: Iterable[object]) -> str:
    skill, case, model, *trial = place
    name = f"{one_line(str(case), 100)} of {skill} on {model}"
    return f"{name} (arm {trial[0]}, run {trial[1]})" if trial else name
