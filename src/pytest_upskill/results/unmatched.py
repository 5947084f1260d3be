"""Accepted results that no test of a run is compared with: their cases are gone or changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from .._util.texts import one_line
from ..trials.plan import Unmatched, Why
from .accepted import PYTHON_MARK, ModelResults

_MOST_NAMES: Final = 10
_WORDS: Final[Mapping[Why, str]] = {
    "gone": "accepted, but gone from the file",
    "skipped": "accepted, but skipped now",
    "marked xfail": "accepted, but marked xfail now",
    "for other models": "accepted, but not for this model now",
    "changed": "changed since accepted",
}
_HOW: Final = "undo that, or accept the results of this run"

State = Literal["tested", "left out", "skipped", "marked xfail", "for other models"]


class Present(NamedTuple):
    """A case that a skill has now; one that the command line left out is still there."""

    digest: str
    state: State


def unmatched_in(
    accepted: ModelResults, present: Mapping[str, Present], *, all_listed: bool
) -> Iterator[tuple[str, Why]]:
    """The accepted cases that are not compared, and why.

    A case that has another id now is the same case. Unless all cases are listed, none is known to
    be gone; of tests in Python, that is never known.
    """
    alive = {case.digest for case in present.values() if case.state in ("tested", "left out")}
    for name, result in accepted.cases.items():
        in_python, own = PYTHON_MARK in name, present.get(name)
        if not in_python and result.case_digest in alive:
            continue
        if own is None:
            if all_listed and not in_python:
                yield name, "gone"
        elif own.state == "tested":
            if own.digest != result.case_digest:
                yield name, "changed"
        elif own.state == "marked xfail":
            if result.passes:  # else it was accepted as failing
                yield name, own.state
        elif own.state != "left out":
            yield name, own.state


def unmatched_reasons(found: Iterable[Unmatched]) -> list[str]:
    """Why a run fails: one line for each skill, model and reason."""
    order = list(_WORDS)
    rows = sorted(found, key=lambda one: (one.skill, one.label, order.index(one.why)))
    return [
        f"{pair}: {_WORDS[why]}: {_names(list(group))}; {_HOW}"
        for (pair, why), group in groupby(rows, lambda accepted: (accepted.pair, accepted.why))
    ]


def _names(cases: Sequence[Unmatched]) -> str:
    names = [f"{one_line(case.case, 60)} ({case.was})" for case in cases[:_MOST_NAMES]]
    more = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return ", ".join([*names, *more])
