"""The models that teach, learn and judge, behind one engine."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from .._util.texts import dollars, plain
from ..checks import CheckedCase
from ..errors import Setting, Spell
from ..measure.arm_maker import ArmMaker
from ..measure.assembly import Assembly
from ..measure.case_users import cases_with_user, require_users
from ..measure.evaluate import Evaluator
from ..models.model import ModelName, NamedBy
from ..models.prices import Price, cost
from ..results.run import RunResults
from ..settings import CommonSettings, Settings
from ..skills.case import Case
from ..skills.skill import Skill
from ..trials.answer import Answer, Reply
from ..trials.arm import SKILL, Arm
from ..trials.choice import Listed, choice_of
from ..trials.subject import CHAT, Subject
from ..trials.trial import Question
from .teach_settings import TeachSettings

_TIMEOUT: Final = 600.0  # seconds: a teacher that writes a dozen cases takes minutes


class TeachModels:
    """The models of a run by the names that questions go to,
    and the engine that asks them.

    ``students`` are agents on models, with the ids of the models. If two
    roles have the same name at different servers, the one that is not a
    student gets its role as a suffix.
    """

    def __init__(
        self,
        settings: TeachSettings,
        root: Path,
        tell: Callable[[str], None],
        prices: Mapping[str, Price],
        spell: Spell = str,
    ) -> None:
        self.spell = spell
        self._closing = threading.Lock()
        self.notes: list[str] = []  # trouble with the stored answers
        self._models = Assembly(prices)
        names = dict.fromkeys(settings.students)
        students = [
            self._add("students", name, settings) or "" for name in names if name
        ]
        self.students = self._models.subjects(
            settings.agents or (CHAT,), students, tell
        )
        self.teacher = self._add("teacher", settings.teacher, settings) or ""
        self.author = self._add("author", settings.author, settings) or self.teacher
        self.adversary = self._add("adversary", settings.adversary, settings)
        self.judge = self._add("judge", settings.judge, settings)
        common = {
            field.name: getattr(settings, field.name)
            for field in fields(CommonSettings)
        }
        self.settings = Settings(
            **{**common, "judge": self.judge},
            runs=settings.runs,
            trigger_runs=settings.runs,
            timeout=_TIMEOUT,
        )
        self.settings = self._models.with_limits(self.settings)
        self._models.require_all(self.settings, self.students, tell)
        self._maker = ArmMaker(self.settings)
        hint = ("raise ", Setting("max_cost"))
        self._engine = self._models.engine(
            self.settings, root, self.notes.append, spell=spell, budget_hint=hint
        )

    def require_room(
        self, skill: str, tokens: int, tell: Callable[[str], None]
    ) -> None:
        """SettingsError if a skill fits the context of no student."""
        self._models.require_room(self.settings, self.students, {skill: tokens}, tell)

    def require_users(self, file: Path | None, cases: Iterable[Case]) -> None:
        """InputError if cases have users who can't answer the students;
        the judge plays them.
        """
        of_file = ((file or Path(), case) for case in cases)
        with_user = cases_with_user(of_file, self.students)
        hint = ("Name a model as ", Setting("judge"), ", who then plays it.")
        require_users(self._models, with_user, self.students, self.settings, hint)

    @property
    def with_agents(self) -> bool:
        """Whether a student is an agent."""
        return any(student.agent != CHAT for student in self.students)

    @property
    def as_student(self) -> dict[Subject, str]:
        """The teacher, asked as a student is."""
        return {Subject(CHAT, self.teacher): self._models.specs[self.teacher].model_id}

    @property
    def provider(self) -> str:
        """The provider of the teacher."""
        return self._models.specs[self.teacher].provider.name

    @property
    def is_free(self) -> bool:
        return self._models.is_free

    @property
    def out_of_budget(self) -> bool:
        return self._engine.budget.refused

    @property
    def not_kept(self) -> bool:
        """Whether answers could not be stored; known after ``close``."""
        return self._engine.not_kept

    def price_of(self, name: str) -> Price | None:
        return self._models.price_of(name)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)

    def evaluate(
        self,
        skill: Skill,
        cases: Sequence[CheckedCase],
        subjects: Mapping[Subject, str],
        arms: Sequence[Arm] | None = None,
    ) -> RunResults:
        """Measure a skill on some of the models; in the usual arms,
        unless others are given.
        """
        version_of = self._models.roster.version
        evaluator = Evaluator(self.settings, self.ask, self.price_of, version_of)
        arms = self.arms(skill, cases, subjects) if arms is None else arms
        return evaluator.evaluate(skill, cases, subjects, arms)

    def arms(
        self, skill: Skill, cases: Sequence[CheckedCase], subjects: Iterable[Subject]
    ) -> tuple[Arm, ...]:
        """Without the skill, and with it."""
        all_cases = [case for case, _ in cases]
        agents = any(subject.agent != CHAT for subject in subjects)
        agents = agents or any(case.is_trigger for case in all_cases)
        return self._maker.arms(skill, all_cases, agents=agents)

    def neighbours(self, skill: Skill) -> list[Listed]:
        """The skills that are installed beside one, with their descriptions."""
        (arm,) = (
            arm for arm in self._maker.arms(skill, (), agents=True) if arm.name == SKILL
        )
        return [entry for entry in choice_of(arm).skills if entry.name != skill.name]

    def spent(self) -> float | None:
        """The cost of this run's new calls, answered or not;
        None if a price is not known.
        """
        new = [
            (model, reply)
            for model, reply in self._engine.settled()
            if isinstance(reply, Answer) and not reply.stored
        ]
        costs = [cost(self.price_of(model), reply.usage) for model, reply in new]
        users = [reply.user for _, reply in new if reply.user]
        costs += [cost(self.price_of(user.model), user.usage) for user in users]
        unanswered = self._engine.budget.unanswered
        costs += [cost(self.price_of(call.model), call.usage) for call in unanswered]
        priced = [usd for usd in costs if usd is not None]
        return sum(priced) if len(priced) == len(costs) else None

    def past_budget(self) -> str:
        """Why a question was not asked; the budget is rarely spent to the last cent."""
        spent, most = self.spent(), f"${plain(self.settings.max_cost or 0.0)}"
        budget = most if spent is None else f"{dollars(spent)} of {most} spent"
        return f"could exceed the budget ({budget})"

    def close(self) -> None:
        """Stop all questions; can be called from any thread, and more than once."""
        with self._closing:
            self._engine.close()

    def _add(self, role: str, name: str | None, settings: TeachSettings) -> str | None:
        """All models are asked at the teacher's server,
        unless the students have their own.
        """
        if not name:
            return None
        url, setting = settings.teacher_url, "teacher_url"
        if role == "students" and settings.student_url:
            url, setting = settings.student_url, "student_url"
        return self._models.add(
            ModelName(name, url, Path.cwd(), NamedBy(role, setting)), role
        )
