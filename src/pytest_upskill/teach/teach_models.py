"""The models that teach, learn and judge, in one run."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from .._util.texts import dollars, plain
from ..checks import CheckedCase
from ..errors import Setting, Spell
from ..measure.engine_of_run import open_engine
from ..measure.evaluate import Evaluator
from ..measure.models_of_run import Models
from ..measure.open_run import AskedSkill, open_run
from ..measure.requirements import (
    require,
    require_agents_with_models,
    require_sandbox,
    require_skills,
)
from ..measure.sandboxes import require_allowed
from ..models.model import ModelName, NamedBy
from ..models.prices import Price, cost
from ..settings import CommonSettings, Settings
from ..skills.case import Case
from ..skills.skill import Skill
from ..trials.answer import Answer
from ..trials.arm import SKILL, Arm
from ..trials.choice import Listed, choice_of
from ..trials.subject import CHAT, Subject
from .teach_settings import TeachSettings

_TIMEOUT_SECONDS: Final = 600.0  # a teacher that writes a dozen cases takes minutes


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
        self._tell = tell
        self.notes: list[str] = []  # trouble with the stored answers
        self._closing = threading.Lock()
        models = Models(prices)

        def add(role: str, name: str | None) -> str | None:
            """All models are asked at the teacher's server,
            unless the students have their own.
            """
            if not name:
                return None
            url, setting = settings.teacher_url, "teacher_url"
            if role == "students" and settings.student_url:
                url, setting = settings.student_url, "student_url"
            by = NamedBy(role, setting)
            return models.add(ModelName(name, url, Path.cwd(), by), role)

        students = [add("students", name) for name in dict.fromkeys(settings.students)]
        self.teacher = add("teacher", settings.teacher) or ""
        self.author = add("author", settings.author) or self.teacher
        self.adversary = add("adversary", settings.adversary)
        self.judge = add("judge", settings.judge)
        common = {
            field.name: getattr(settings, field.name)
            for field in fields(CommonSettings)
        }
        common |= {"judge": self.judge, "agents": settings.agents or (CHAT,)}
        self._run = open_run(
            Settings(
                **common,
                runs=settings.runs,
                trigger_runs=settings.runs,
                timeout=_TIMEOUT_SECONDS,
            ),
            models=models,
            names=[name for name in students if name],
        )
        require_agents_with_models(self._run, tell)
        require(self._run, (), tell)
        require_sandbox(self._run, tell)
        self.settings = self._run.settings
        self.students = self._run.subjects
        self.price_of = models.price_of
        self.is_free = models.are_free
        hint = ("raise ", Setting("max_cost"))
        self._engine = open_engine(
            self._run, root, self.notes.append, spell=spell, budget_hint=hint
        )
        self.ask = self._engine.ask
        evaluator = Evaluator(
            self.settings, self.ask, self.price_of, self._run.version_of
        )
        self.evaluate = evaluator.evaluate

    def require_skill(
        self, name: str, tokens: int, cases: Sequence[tuple[Path, Case]]
    ) -> None:
        """InputError if a skill fits the context of no student, or if cases have users
        who can't answer the students; the judge plays them.
        """
        skill = AskedSkill(name, cases, lambda: tokens)
        hint = ("Name a model as ", Setting("judge"), ", who then plays it.")
        require_skills(self._run, [skill], self._tell, hint)
        if self._run.has_agents:
            require_allowed([skill], self.settings)

    @property
    def with_agents(self) -> bool:
        """Whether a student is an agent."""
        return bool(self._run.agents)

    @property
    def as_student(self) -> dict[Subject, str]:
        """The teacher, asked as a student is."""
        return {
            Subject(CHAT, self.teacher): self._run.models.specs[self.teacher].model_id
        }

    @property
    def provider(self) -> str:
        """The provider of the teacher."""
        return self._run.models.specs[self.teacher].provider.name

    @property
    def out_of_budget(self) -> bool:
        return self._engine.budget.refused

    @property
    def not_kept(self) -> bool:
        """Whether answers could not be stored; known after ``close``."""
        return self._engine.not_kept

    def arms(
        self, skill: Skill, cases: Sequence[CheckedCase], subjects: Iterable[Subject]
    ) -> tuple[Arm, ...]:
        """Without the skill, and with it."""
        all_cases = [case for case, _ in cases]
        agents = any(subject.agent != CHAT for subject in subjects)
        agents = agents or any(case.kind.until_opened for case in all_cases)
        return self._run.arm_maker.arms(skill, all_cases, agents=agents)

    def neighbours(self, skill: Skill) -> list[Listed]:
        """The skills that are installed beside one, with their descriptions."""
        arms = self._run.arm_maker.arms(skill, (), agents=True)
        (arm,) = (arm for arm in arms if arm.name == SKILL)
        return [entry for entry in choice_of(arm).skills if entry.name != skill.name]

    def spent(self) -> float | None:
        """The cost of this run's new calls, answered or not;
        None if a price is not known.
        """
        calls = [(call.model, call.usage) for call in self._engine.budget.unanswered]
        for model, reply in self._engine.progress.settled():
            if isinstance(reply, Answer) and not reply.stored:
                calls.append((model, reply.usage))
                if reply.user:
                    calls.append((reply.user.model, reply.user.usage))

        total = 0.0
        for model, usage in calls:
            usd = cost(self.price_of(model), usage)
            if usd is None:
                return None
            total += usd
        return total

    def past_budget(self) -> str:
        """Why a question was not asked; the budget is rarely spent to the last cent."""
        spent = self.spent()
        budget = f"${plain(self.settings.max_cost or 0.0)}"
        if spent is not None:
            budget = f"{dollars(spent)} of {budget} spent"
        return f"could exceed the budget ({budget})"

    def close(self) -> None:
        """Stop all questions; can be called from any thread, and more than once."""
        with self._closing:
            self._engine.close()
