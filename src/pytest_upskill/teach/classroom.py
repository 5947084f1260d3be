"""Everybody who is asked for a lesson, behind one engine: teacher, students, authors, judge."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from .._util.texts import dollars, plain
from ..engine.budget import Budget
from ..errors import SettingsError
from ..measure.assembly import assemble, stored_answers
from ..models import ModelSpec
from ..models.names import resolve
from ..models.port import Download, ModelName, Progress
from ..models.prices import FREE, Price, cost, price_of
from ..settings import Settings
from ..trials.answer import Answer, Reply
from ..trials.trial import Question
from .teach_settings import TeachSettings

Role = Literal["teacher", "student", "author", "adversary", "judge"]

FLAGS: Final[Mapping[Role, str]] = {
    "teacher": "--model",
    "student": "--eval-model",
    "author": "--test-model",
    "adversary": "--adversary",
    "judge": "--judge",
}
_TIMEOUT: Final = 600.0  # a teacher that writes a dozen cases says nothing for minutes


class Classroom:
    """The models of a lesson by the names that questions go to, and the engine that asks them.

    ``students`` are ids by name. Where two roles have models of one name at different addresses,
    the one that is no student has its role behind its name.
    """

    def __init__(
        self,
        lesson: TeachSettings,
        root: Path,
        tell: Callable[[str], None],
        prices: Mapping[str, Price],
    ) -> None:
        self._tell = tell
        self._prices = prices
        self._closing = threading.Lock()
        self.notes: list[str] = []  # what went wrong with the stored answers
        self._specs: dict[str, ModelSpec] = {}
        names = dict.fromkeys(lesson.students)
        self._student_url = lesson.student_url
        students = [self._add("student", name, _url(lesson, "student")) for name in names]
        self.students = {name: self._specs[name].model_id for name in students}
        self.teacher = self._add("teacher", lesson.teacher, lesson.teacher_url)
        self.author = self._other("author", lesson.author, lesson) or self.teacher
        self.adversary = self._other("adversary", lesson.adversary, lesson)
        self.judge = self._other("judge", lesson.judge, lesson)
        self._max_cost = lesson.max_cost
        self._require_prices()
        self.settings = Settings(
            runs=lesson.runs,
            max_output=lesson.max_output,
            timeout=_TIMEOUT,
            judge=self.judge,
            max_cost=lesson.max_cost,
        )
        self._budget = Budget(None, lesson.max_cost, cache(self.price_of), "raise --max-cost")
        answers = stored_answers(self._specs, root, self.notes.append, fresh=False)
        self._engine = assemble(self._specs, self.settings, answers, self._budget)

    @property
    def teacher_id(self) -> str:
        return self._specs[self.teacher].model_id

    @property
    def provider(self) -> str:
        """Where the teacher is from."""
        return self._specs[self.teacher].provider.name

    @property
    def is_free(self) -> bool:
        return all(self.price_of(name) == FREE for name in self._specs)

    @property
    def out_of_budget(self) -> bool:
        return self._budget.refused

    def price_of(self, name: str) -> Price | None:
        return price_of(self._specs[name], self._prices)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)

    def spent(self) -> float | None:
        """What the answers of this run cost that were not known before; None if nobody knows."""
        new = [
            cost(self.price_of(model), reply.usage)
            for model, reply in self._engine.settled()
            if isinstance(reply, Answer) and not reply.stored
        ]
        known = [usd for usd in new if usd is not None]
        return sum(known) if len(known) == len(new) else None

    def past_budget(self) -> str:
        """What stops a lesson for want of money: rarely that all of it is gone."""
        spent, most = self.spent(), f"${plain(self._max_cost or 0.0)}"
        known = most if spent is None else f"{dollars(spent)} of {most} spent"
        return f"could pass the budget ({known})"

    def close(self) -> None:
        """End what is being asked, whoever waits for it; from any thread, and more than once."""
        with self._closing:
            self._engine.close()

    def _other(self, role: Role, name: str | None, lesson: TeachSettings) -> str | None:
        return self._add(role, name, _url(lesson, role)) if name else None

    def _add(self, role: Role, name: str, url: str | None) -> str:
        try:
            spec = resolve(ModelName(name, url, Path.cwd()), os.environ)
            spec.provider.require(spec, os.environ, _announcing(self._tell))
        except SettingsError as error:
            own_url = role == "student" and self._student_url
            url_flag = "--eval-base-url" if own_url else "--base-url"
            raise _by_role(error, role, url_flag) from None
        key = name
        if self._specs.get(name, spec) != spec:
            key = f"{name} ({role})"
        self._specs[key] = spec
        return key

    def _require_prices(self) -> None:
        unknown = [n for n in self._specs if self._max_cost is not None and not self.price_of(n)]
        if unknown:
            raise SettingsError(
                "--max-cost",
                f"the price of {', '.join(unknown)} is not known, so no budget can hold it",
                "Write it into skill_prices of pytest's ini file (prices= in Python), or leave "
                "--max-cost out.",
            )


def _url(lesson: TeachSettings, role: Role) -> str | None:
    """All but the students are asked where the teacher is, and these too unless told otherwise."""
    own = lesson.student_url if role == "student" else None
    return own or lesson.teacher_url


def _announcing(tell: Callable[[str], None]) -> Download:
    """Say what is downloaded, and nothing while it is."""

    def begin(what: str) -> Progress:
        tell(f"Fetching {what}…")
        return lambda _done, _total: None

    return begin


def _by_role(error: SettingsError, role: Role, url_flag: str) -> SettingsError:
    """The error with the flags of these commands, and not those of pytest."""

    def told(text: str) -> str:
        return text.replace("--model", FLAGS[role]).replace("--skill-base-url", url_flag)

    return SettingsError(told(error.where), told(error.problem), told(error.hint))
