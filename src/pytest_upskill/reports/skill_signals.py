"""What the cases of a skill say, over its models: for the terminal and Markdown."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..results.row import Row, Word
from ..results.signals import SIGNAL_ADVICE, SIGNALS, Signal

# Without a lift that is shown, cases that pass only with the skill may be chance.
_UNSHOWN: Final = ("no effect", "unclear")


class CaseOfSignal(NamedTuple):
    name: str
    models: int  # on which it says so
    of_models: int
    is_shown: bool  # on one of them, by an exact test

    @property
    def words(self) -> str:
        """``merge-secret (2 of 3)``; without the models if it is all of them."""
        if self.models == self.of_models:
            return self.name
        return f"{self.name} ({self.models} of {self.of_models})"


class SignalCases(NamedTuple):
    signal: Signal
    number: int  # of cases on models
    cases: Sequence[CaseOfSignal]  # those on most models first; empty if not to be told

    @property
    def advice(self) -> str:
        if not self.cases or self.signal == "only with":
            return ""
        return SIGNAL_ADVICE[self.signal]


def find_signals(rows: Sequence[Row], verdict: Word | None) -> list[SignalCases]:
    """The cases of a skill by signal, in the order of signals; empty without any."""
    found = []
    for signal in SIGNALS:
        count = sum(row.signals.get(signal, 0) for row in rows)
        cases = _cases_of(signal, rows)
        if signal == "only with" and verdict in _UNSHOWN:
            cases = []
        found.append(SignalCases(signal, count, cases))

    return found if any(of_signal.number for of_signal in found) else []


def _cases_of(signal: Signal, rows: Sequence[Row]) -> list[CaseOfSignal]:
    is_shown: dict[str, list[bool]] = {}
    for row in rows:
        for case in row.by_case:
            if case.signal == signal:
                is_shown.setdefault(case.case, []).append(case.signal_shown)

    cases = []
    for name, shown in is_shown.items():
        cases.append(CaseOfSignal(name, len(shown), len(rows), any(shown)))

    return sorted(cases, key=lambda case: -case.models)
