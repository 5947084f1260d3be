"""Merge result files: the shards of a CI job become one run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain
from typing import TypeVar

from .._util.texts import counted, one_line
from ..errors import ResultsError
from ..trials.plan import PlannedCase
from ..trials.records import Record
from .run import RunResults

K = TypeVar("K")
T = TypeVar("T")


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
    runs = [source.results for source in sources]
    first = runs[0]
    if len(runs) == 1:
        return first, []

    for source in sources:
        if source.results.gates != first.gates:
            raise _is_of_another_run(source, "different gates than in", sources[0].name)

    skills = _agree(
        sources,
        lambda run: {skill.name: skill for skill in run.skills},
        problem=lambda name, _: f"the skill {one_line(name, 100)} differs from",
    )
    models = _agree(
        sources,
        lambda run: run.model_ids,
        problem=lambda name, _: f"the model {one_line(name, 100)} differs from",
    )
    tests = _agree(
        sources,
        lambda run: {(test.pair, test.case): test for test in run.tests},
        problem=lambda _, test: (
            f"the case {_name_case(test)} has a different question or checks than in"
        ),
        compared=lambda test: test.digest,
    )
    records = _agree(
        sources,
        lambda run: {
            (each.pair, each.case, each.arm, each.run): each for each in run.records
        },
        problem=lambda _, record: (
            f"{_name_case(record)} (arm {record.arm}, run {record.run}) has another"
            " answer in"
        ),
        compared=lambda record: (record.outcome, record.output, record.checks),
    )
    ended = max(run.started + timedelta(seconds=run.seconds) for run in runs)
    started = min(run.started for run in runs)
    commits = {run.commit for run in runs}
    stops = [run.interrupted for run in runs if run.interrupted is not None]
    results = replace(
        first,
        started=started,
        seconds=(ended - started).total_seconds(),
        skills=tuple(skills.values()),
        model_ids=models,
        tests=tuple(tests.values()),
        records=tuple(records.values()),
        questions=_merge(run.questions for run in runs),
        commit=first.commit if len(commits) == 1 else None,
        idle_gates=tuple(
            gate
            for gate in first.idle_gates
            if all(gate in run.idle_gates for run in runs)
        ),
        by_outcome=any(run.by_outcome for run in runs),
        logins=_join(run.logins for run in runs),
        expects_all=not subset,
        unmatched=_join(run.unmatched for run in runs),
        broken=_merge(run.broken for run in runs),
        reported=_merge(run.reported for run in runs),
        untested=_find_untested(runs),
        lost=_find_lost(runs),
        interrupted="; ".join(dict.fromkeys(stops)) if stops else None,
        studies=tuple(chain.from_iterable(run.studies for run in runs)),
        sections=tuple(chain.from_iterable(run.sections for run in runs)),
        prompt_cache_saved=sum(run.prompt_cache_saved for run in runs),
        looks=_find_most_looks(runs),
        gone=_find_gone(runs),
    )

    notes = []
    if repeated := sum(len(run.records) for run in runs) - len(records):
        notes.append(f"{counted(repeated, 'trial')} in several files, counted once.")
    if len(commits) > 1:
        notes.append("The files are from different commits.")
    return results, notes


def _agree(
    sources: Sequence[Source],
    find: Callable[[RunResults], Mapping[K, T]],
    *,
    problem: Callable[[K, T], str],
    compared: Callable[[T], object] = lambda value: value,
) -> dict[K, T]:
    """All values by key; files that disagree are not of one run."""
    values: dict[K, T] = {}
    files: dict[K, str] = {}
    for source in sources:
        for key, value in find(source.results).items():
            known = values.setdefault(key, value)
            file = files.setdefault(key, source.name)
            if compared(known) != compared(value):
                raise _is_of_another_run(source, problem(key, value), file)
    return values


def _is_of_another_run(source: Source, problem: str, file: str) -> ResultsError:
    hint = "Merge only shards of one run."
    return ResultsError(source.name, f"{problem} {file}", hint)


def _name_case(value: PlannedCase | Record) -> str:
    return f"{one_line(value.case, 100)} of {value.pair}"


def _join(values: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """Each of them once."""
    return tuple(dict.fromkeys(chain.from_iterable(values)))


def _merge(maps: Iterable[Mapping[K, T]]) -> dict[K, T]:
    merged: dict[K, T] = {}
    for each in maps:
        merged.update(each)
    return merged


def _find_untested(runs: Iterable[RunResults]) -> dict[str, str]:
    """What no run could test, and why."""
    untested: dict[str, str] = {}
    tested = set()
    for run in runs:
        untested.update(run.untested)
        for test in run.tests:
            if test.kind.in_lift or test.kind.agent:
                tested |= {test.skill, test.label}
    return {name: reason for name, reason in untested.items() if name not in tested}


def _find_lost(runs: Iterable[RunResults]) -> tuple[str, ...]:
    """Ids of tests that a run lost, and that no run answered."""
    answered = set[str]()
    for run in runs:
        answered.update(test.nodeid for test in run.tests if run.records_of(test))
    lost = _join(run.lost for run in runs)
    return tuple(nodeid for nodeid in lost if nodeid not in answered)


def _find_most_looks(runs: Iterable[RunResults]) -> dict[str, int]:
    looks: dict[str, int] = {}
    for run in runs:
        for skill, number in run.looks.items():
            looks[skill] = max(number, looks.get(skill, 0))
    return looks


def _find_gone(runs: Iterable[RunResults]) -> dict[str, tuple[str, ...]]:
    """The cases of the last run that no shard has."""
    present = set[tuple[str, str]]()
    for run in runs:
        present.update((test.skill, test.case) for test in run.tests)

    gone: dict[str, tuple[str, ...]] = {}
    for run in runs:
        for skill, cases in run.gone.items():
            missing = [case for case in cases if (skill, case) not in present]
            if missing:
                gone[skill] = _join([gone.get(skill, ()), missing])
    return gone
