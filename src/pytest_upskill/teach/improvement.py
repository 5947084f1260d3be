"""The loop that improves: propose a version, measure it on the learning cases, keep the best.

Generate, refine, describe and distill have it in common; what a version is, and how it is asked for
and measured, is up to them. Held-out cases decide afterwards.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from .._util.texts import counted
from ..errors import BudgetError, UnusableError
from .teach_run import TeachRun

_PLATEAU: Final = 2  # stop after this many attempts without a better one


class HasMerit(Protocol):
    """What the loop has to know of an attempt."""

    @property
    def number(self) -> int: ...
    @property
    def merit(self) -> tuple[float, ...]: ...


Version = TypeVar("Version")
AnyAttempt = TypeVar("AnyAttempt", bound=HasMerit)


@dataclass
class Improvement(ABC, Generic[Version, AnyAttempt]):
    """The loop; a subclass says what a version is."""

    run: TeachRun
    attempts: list[AnyAttempt] = field(default_factory=list, init=False)

    noun = "attempt"

    @abstractmethod
    def propose(self) -> Version:
        """Ask the teacher for a version; UnusableError if no reply is usable, or BudgetError."""

    @abstractmethod
    def measure(self, number: int, version: Version) -> AnyAttempt:
        """Measure a version on the learning cases; BudgetError if that is too expensive."""

    @abstractmethod
    def unmeasured(self, number: int, problem: str, version: Version | None) -> AnyAttempt:
        """An attempt that can't be measured; None: the teacher wrote nothing usable."""

    @abstractmethod
    def is_new(self, version: Version) -> bool: ...

    @abstractmethod
    def why_enough(self) -> str | None:
        """Why the best attempt needs no improvement, if so."""

    @abstractmethod
    def show(self, attempt: AnyAttempt) -> None: ...

    @abstractmethod
    def keep(self, attempt: AnyAttempt) -> None: ...

    @property
    def best(self) -> AnyAttempt:
        return best_of(self.attempts)

    def improve(self, first: Version | None = None) -> str:
        """Make attempts, beginning with a version if there is one; return why they ended."""
        models, version = self.run.models, first
        while True:
            if version is not None:
                self._measure(version, required=version is first)
            if models.out_of_budget:
                return f"another version {models.past_budget()}"
            if stop := self.why_stop():
                return stop
            version = self._propose()
            if version is not None and not self.is_new(version):
                return "the teacher wrote nothing new"

    def why_stop(self) -> str | None:
        if self.attempts and (stop := self.why_enough()):
            return stop
        if len(self.attempts) >= self.run.settings.attempts:
            return f"limit of {counted(self.run.settings.attempts, self.noun)} reached"
        if self.attempts and len(self.attempts) - self.best.number >= _PLATEAU:
            return f"{_PLATEAU} {self.noun}s in a row were no better"
        return None

    def _propose(self) -> Version | None:
        """A version; None if it is unusable, which counts as an attempt, or over the budget."""
        try:
            return self.propose()
        except BudgetError:
            self.run.screen.drop()
        except UnusableError as error:
            self._add(self.unmeasured(len(self.attempts) + 1, str(error), None))
        return None

    def _measure(self, version: Version, *, required: bool) -> None:
        number = len(self.attempts) + 1
        try:
            self._add(self.measure(number, version))
        except BudgetError as error:
            if required:
                self._add(self.unmeasured(number, str(error), version))
            else:
                self.run.screen.drop()

    def _add(self, attempt: AnyAttempt) -> None:
        self.attempts.append(attempt)
        self.show(attempt)
        self.keep(attempt)


def best_of(attempts: Sequence[AnyAttempt]) -> AnyAttempt:
    return max(attempts, key=lambda attempt: attempt.merit)
