"""The models that teach, learn and judge, behind one engine."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from .._util.texts import dollars, plain
from ..errors import Setting, Spell
from ..measure.assembly import Assembly, announced
from ..models.port import ModelName, NamedBy
from ..models.prices import FREE, Price, cost
from ..settings import Settings
from ..trials.answer import Answer, Reply
from ..trials.trial import Question
from .teach_settings import TeachSettings

_TIMEOUT: Final = 600.0  # seconds: a teacher that writes a dozen cases takes minutes


class TeachModels:
    """The models of a run by the names that questions go to, and the engine that asks them.

    ``students`` are ids by name. If two roles have the same name at different servers, the one
    that is not a student gets its role as a suffix.
    """

    def __init__(
        self,
        wanted: TeachSettings,
        root: Path,
        tell: Callable[[str], None],
        prices: Mapping[str, Price],
        spell: Spell = str,
    ) -> None:
        self.spell = spell
        self._closing = threading.Lock()
        self.notes: list[str] = []  # trouble with the stored answers
        self._models = Assembly(prices)
        students = [self._add("students", name, wanted) for name in dict.fromkeys(wanted.students)]
        self.students = {name: self._models.specs[name].model_id for name in students if name}
        self.teacher = self._add("teacher", wanted.teacher, wanted) or ""
        self.author = self._add("author", wanted.author, wanted) or self.teacher
        self.adversary = self._add("adversary", wanted.adversary, wanted)
        self.judge = self._add("judge", wanted.judge, wanted)
        self._models.require(announced(tell))
        self._models.require_prices(wanted.max_cost)
        self.settings = Settings(
            runs=wanted.runs,
            max_output=wanted.max_output,
            timeout=_TIMEOUT,
            judge=self.judge,
            max_cost=wanted.max_cost,
        )
        hint = ("raise ", Setting("max_cost"))
        self._engine = self._models.engine(
            self.settings, root, self.notes.append, spell=spell, budget_hint=hint
        )

    @property
    def teacher_id(self) -> str:
        return self._models.specs[self.teacher].model_id

    @property
    def provider(self) -> str:
        """The provider of the teacher."""
        return self._models.specs[self.teacher].provider.name

    @property
    def is_free(self) -> bool:
        return all(self.price_of(name) == FREE for name in self._models.specs)

    @property
    def out_of_budget(self) -> bool:
        return self._engine.budget.refused

    def price_of(self, name: str) -> Price | None:
        return self._models.price_of(name)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)

    def spent(self) -> float | None:
        """The cost of this run's new calls, answered or not; None if a price is not known."""
        new = [
            cost(self.price_of(model), reply.usage)
            for model, reply in self._engine.settled()
            if isinstance(reply, Answer) and not reply.stored
        ]
        unanswered = self._engine.budget.unanswered
        new += [cost(self.price_of(call.model), call.usage) for call in unanswered]
        known = [usd for usd in new if usd is not None]
        return sum(known) if len(known) == len(new) else None

    def past_budget(self) -> str:
        """Why a question was not asked; the budget is rarely spent to the last cent."""
        spent, most = self.spent(), f"${plain(self.settings.max_cost or 0.0)}"
        known = most if spent is None else f"{dollars(spent)} of {most} spent"
        return f"could exceed the budget ({known})"

    def close(self) -> None:
        """Stop all questions; can be called from any thread, and more than once."""
        with self._closing:
            self._engine.close()

    def _add(self, role: str, name: str | None, wanted: TeachSettings) -> str | None:
        """All models are asked at the teacher's server, unless the students have their own."""
        if not name:
            return None
        own = role == "students" and wanted.student_url
        by = NamedBy(role, "student_url" if own else "teacher_url")
        return self._models.add(ModelName(name, own or wanted.teacher_url, Path.cwd(), by), role)
