"""Trials, their questions, the prompt of each arm, and the task of an agent."""

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from .._util.texts import as_read, digest, named_fence
from ..settings import DEFAULT_MAX_TURNS, MOST_RUNS, TRIGGER_TURNS, Settings
from ..skills.case import (
    NO_NEEDS,
    Case,
    CaseReference,
    Role,
    SandboxNeeds,
    WorkspaceFile,
)
from ..skills.case_files import is_path
from ..skills.invocation import Invocation
from .arm import AGAIN, SKILL, Arm, SkillCopy
from .choice import Choice, choice_of, skill_tool
from .subject import CHAT, Subject, WithSubject, takes_plugins
from .transcript import Step, Tool
from .user import User

Turns = tuple[tuple[Role, str], ...]
# The prefix that other questions share: the system text with the tools, also the
# messages, or also the steps of an agent so far.
Shared = Literal["system", "messages", "steps"]

# Where skill-creator keeps the files of its cases; most ask for "data.csv",
# not for this path.
_EVALS: Final = re.compile(r"(?:.*/)?evals/(?:files/)?")
JUDGE_MAX_OUTPUT: Final = 4096
_JUDGE_TURNS: Final = 3  # an agent may look around, though there is nothing to see
# The order was measured on small models: the skill first, then the instruction,
# and no tags.
BASE_SYSTEM: Final = "You are a helpful assistant."
FOLLOW_SKILL: Final = "Follow the skill above when you answer."


@dataclass(frozen=True)
class Task:
    """A trial of an agent. With the question it is all that shapes the answer."""

    agent: str
    version: str = ""  # of the agent
    files: tuple[WorkspaceFile, ...] = ()
    setup: str = ""  # a command that runs before the agent
    # And the plugin that tested ones are in, if it takes one
    skills: tuple[SkillCopy, ...] = ()
    tested: tuple[str, ...] = ()  # names of the skills under test; none in the baseline
    needs: SandboxNeeds = NO_NEEDS
    max_turns: int = DEFAULT_MAX_TURNS
    image: str = ""  # of the sandbox, if that is a container
    # False: no sandbox, so it may see and do all that the user can
    confined: bool = True
    invoke: Invocation | None = None  # of a tested skill, in place of the question
    # Ends as soon as it is decided whether a tested skill is opened
    until_opened: bool = False
    parts: tuple[Any, ...] = ()  # around it, each a `TrialPart`; the same in all arms
    user: User | None = None  # who answers its questions
    timeout: float | None = None  # seconds, if they are not those of the run
    # What is carried out without a model; no other agent has one
    reference: CaseReference | None = None

    @property
    def plugin(self) -> SkillCopy | None:
        """The plugin that is under test, with the tested skills in it."""
        return next((skill for skill in self.skills if skill.plugin), None)

    @cached_property
    def content(self) -> str:
        """A key of all of it. Where a skill's folder is makes no difference."""
        without_files = replace(
            self,
            files=(),
            skills=(),
            parts=(),
            reference=None,
            tested=self.tested if self.until_opened else (),
        )
        digests = [file.digest for file in self.files]
        digests += [part.digest for part in self.parts]
        digests += [f"{skill.name} {skill.digest}" for skill in self.skills]
        if self.reference:
            digests.append(self.reference.digest)
        return digest(repr(without_files), *digests)


@dataclass(frozen=True)
class Question:
    """Everything that a model is sent. Arms differ only in the text of the skill."""

    model: str
    system: str
    messages: Turns
    max_output: int
    run: int = 1
    # JSON Schema of the reply, for servers that can enforce it
    schema: str | None = None
    # How many a judge's reply must have; the schema says so too
    verdicts: int | None = None
    mark: str = ""  # what a judge's reply must repeat; the last message says so too
    tools: tuple[Tool, ...] = ()  # that the model may call
    # Turns after the messages, each with calls and their results
    steps: tuple[Step, ...] = ()
    task: Task | None = None  # for an agent, which carries it out in a workspace
    choice: Choice | None = None  # of a skill; ``tools`` has the one that loads it
    # Ask even if there is a stored answer: it is too old to be
    # compared with other arms.
    renew: bool = field(default=False, compare=False)
    # When the answer was given that a judge is asked about:
    # its ruling must not be much older.
    judged_at: int | None = field(default=None, compare=False)
    # The agent whose login pays for it; empty if a key does.
    login: str = field(default="", compare=False)
    # What the provider should keep in its cache. It changes
    # nothing that the model reads.
    shared: tuple[Shared, ...] = field(default=(), compare=False)

    @cached_property
    def content(self) -> str:
        """A key of everything but the model's name."""
        turns = [text for message in self.messages for text in message]
        turns += [str(self.max_output), str(self.run)]
        if self.schema:
            turns.append(self.schema)
        if self.task:
            turns.append(self.task.content)
        turns += [repr(part) for part in (self.tools, self.steps, self.choice) if part]
        return digest(self.system, *turns)

    @cached_property
    def key(self) -> str:
        return digest(self.model, self.content)

    @property
    def asked_as(self) -> str:
        """The name under which its model is known to the engine:
        on a login it is another one.
        """
        return Subject(self.login, self.model).label if self.login else self.model

    @property
    def of_case(self) -> Hashable:
        """The same in all arms and runs of a case."""
        return self.model, self.task.agent if self.task else CHAT, self.messages

    @property
    def compared(self) -> Hashable:
        """The same in all arms, whose answers are compared."""
        return self.of_case, self.run % MOST_RUNS  # see trials_of


@dataclass(frozen=True)
class Hidden:
    """What a judge must not see of a skill, so that it can't tell the arms apart."""

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rubric:
    """Texts that a judge checks an answer against."""

    texts: tuple[str, ...]
    votes: int = 1  # that each gets
    # Paths and patterns of an agent's files that it sees whole
    files: tuple[str, ...] = ()
    context: str = ""  # what it is told about the wanted result, beside the texts
    judge: str = ""  # the name of the model
    refusals: bool = False  # whether a refusal is judged, too
    hidden: Hidden = Hidden()
    task: Task | None = None  # of a judge that is an agent


@dataclass(frozen=True)
class Trial(WithSubject):
    """A case × model × arm × run: one question, asked once."""

    skill: str
    case: str
    model: str
    arm: str
    run: int
    question: Question
    rubric: Rubric | None = None
    agent: str = CHAT
    has_skill: bool = True  # whether the skill under test is there
    extra: bool = False  # see PlannedCase.extra_trials

    @property
    def is_open(self) -> bool:
        """Whether the question is only known once the test runs."""
        return not self.question.messages


def default_prompt(arm: Arm, case: Case) -> str:
    """The system text of an arm."""
    base = case.system or BASE_SYSTEM
    return base if arm.text is None else skill_system(arm.text, base)


@lru_cache(maxsize=64)  # the text is held once, not once for each of its cases
def skill_system(body: str, base: str = BASE_SYSTEM) -> str:
    return f"{base}\n\n{body}\n\n{FOLLOW_SKILL}"


Prompt = Callable[[Arm, Case], str]


def trials_of(
    label: str,
    case: Case,
    subject: Subject,
    arms: Iterable[Arm],
    *,
    settings: Settings,
    rubric: Rubric | None = None,
    prompt: Prompt = default_prompt,
    version: str = "",
    runs: Iterable[int] | None = None,
) -> list[Trial]:
    """The trials of a case by a subject, run by run,
    so that the arms of a run go together.

    ``version`` is that of an agent. ``runs`` are those of the case, or of the settings.
    A case that has no question yet is one of a test in Python, which asks when it runs.
    Its kind says in which arms it is asked. In the arm ``again``, the same is asked in
    runs of other numbers.
    """
    if case.kind.arms:
        arms = [arm for arm in arms if arm.name in case.kind.arms]
    questions = []
    for arm in arms:
        question = question_of(
            case, subject, arm, settings, prompt=prompt, version=version
        )
        questions.append((arm, question))

    trials = []
    for run in runs or range(1, (case.runs or getattr(settings, case.kind.runs)) + 1):
        for arm, question in questions:
            trials.append(
                Trial(
                    label,
                    case.id,
                    model=subject.model,
                    arm=arm.name,
                    run=run,
                    question=replace(
                        question, run=run + MOST_RUNS if arm.name == AGAIN else run
                    ),
                    rubric=rubric,
                    agent=subject.agent,
                    has_skill=bool(arm.tested),
                )
            )
    return trials


def question_of(
    case: Case,
    subject: Subject,
    arm: Arm,
    settings: Settings,
    *,
    prompt: Prompt = default_prompt,
    version: str = "",
) -> Question:
    """What is asked in an arm, in run 1. Nothing is added to what an agent is asked.

    ValueError if a file of the case can't be in an agent's workspace.
    """
    agent, model = subject
    question = Question(model, "", (), settings.answer_output(model))
    if not case.input:
        return question
    turns: Turns = (*case.earlier, ("user", case.input))
    if agent != CHAT:
        return Question(
            model,
            case.system or "",
            turns,
            settings.agent_output,
            task=task_of(case, agent, arm, settings, version),
            login=agent if subject.label in settings.logins else "",
        )

    if case.kind.until_opened:
        # It chooses a skill by a tool, and does nothing else.
        choice = choice_of(arm)
        return replace(
            question,
            system=f"{BASE_SYSTEM}\n\n{choice.by_tool}",
            messages=turns,
            tools=(skill_tool(choice.names),),
            choice=choice,
        )
    return replace(
        question,
        system=prompt(_with_arguments(arm, case), case),
        messages=(*case.earlier, ("user", user_text(case))),
    )


def _invoked_in(case: Case, arm: Arm) -> Invocation | None:
    """What is invoked in an arm: nothing in one without the skill."""
    return case.invoke if case.invoke and case.invoke.skill in arm.tested else None


def _with_arguments(arm: Arm, case: Case) -> Arm:
    """An arm whose text has the arguments of a case that invokes the skill.

    A plain completion has the text of the skill anyway,
    and asks what the baseline asks.
    """
    invoke = _invoked_in(case, arm)
    if not invoke or arm.text is None:
        return arm
    if len(arm.tested) > 1:
        return replace(
            arm, text=f"{arm.text}\n\n/{invoke.skill} {invoke.arguments}".rstrip()
        )
    return replace(arm, text=invoke.text(arm.text, case.input))


def by_schema(question: Question) -> Question:
    """The same choice for a model that takes no tools."""
    assert question.choice
    system = f"{BASE_SYSTEM}\n\n{question.choice.by_schema}"
    return replace(question, system=system, tools=(), schema=question.choice.schema)


def user_text(case: Case) -> str:
    """The question, then its files in named fences."""
    return "\n\n".join(
        [case.input, *(named_fence(name, text) for name, text in case.files)]
    )


def sample_of(case: Case) -> str:
    """The same for all cases that ask the same: they get the same answer,
    so they are one sample.

    White space, letter case and characters that nobody sees make no other question.
    """
    texts = [text for message in case.earlier for text in message]
    texts += [user_text(case), case.system or "", *(case.invoke or ())]
    return digest(*map(as_read, texts), *of_workspace(case))[:16]


def lift_sample_of(case: Case) -> str:
    """The same for all cases that a lift counts as one: those that ask the same,
    or of a group.
    """
    return lift_sample(case.group, sample_of(case))


def lift_sample(group: str, sample: str) -> str:
    return f"group {group}" if group else sample


def of_workspace(case: Case) -> list[str]:
    """What an agent has besides texts, with who answers it; mostly nothing."""
    parts = [file.digest for file in case.exact]
    parts += [part.digest for part in case.parts]
    if case.setup:
        parts.append(case.setup)
    if case.user:
        parts.append(repr(case.user))
    return parts


def task_of(
    case: Case, agent: str, arm: Arm, settings: Settings, version: str = ""
) -> Task:
    """The task of an arm; ValueError if a file of the case can't be in a workspace."""
    skills = [skill for skill in arm.skills if takes_plugins(agent) or not skill.plugin]
    return Task(
        agent,
        version,
        start_files(case),
        case.setup,
        tuple(skills),
        arm.tested,
        case.sandbox,
        (
            min(TRIGGER_TURNS, settings.max_turns)
            if case.kind.until_opened
            else case.max_turns or settings.max_turns
        ),
        settings.image or "",
        settings.sandbox != "none",
        invoke=_invoked_in(case, arm),
        until_opened=case.kind.until_opened,
        parts=case.parts,
        user=user_of(case, settings),
        timeout=case.timeout,
        reference=case.reference if case.kind.agent and arm.name == SKILL else None,
    )


def user_of(case: Case, settings: Settings) -> User | None:
    """Who answers an agent in all arms of a case; None if nobody does."""
    if case.user is None:
        return None
    return User(*case.user, settings.model_of_users if case.user.facts else "")


def judge_task(settings: Settings, version_of: Callable[[str], str]) -> Task | None:
    """The task of a judge that is an agent: an empty workspace, and no skills."""
    if not (agent := settings.judge_agent):
        return None
    return Task(
        agent,
        version_of(agent),
        max_turns=_JUDGE_TURNS,
        image=settings.image or "",
        confined=settings.sandbox != "none",
    )


def start_files(case: Case) -> tuple[WorkspaceFile, ...]:
    """The files of a case's workspace; ValueError if one can't be there."""
    prompt = case.input if case.is_eval and not case.is_task else None
    return _start_files(case.files, case.exact, prompt)


# The arms of a case share them, also on their way to another process
@lru_cache(maxsize=64)
def _start_files(
    texts: tuple[tuple[str, str], ...],
    exact: tuple[WorkspaceFile, ...],
    prompt: str | None,
) -> tuple[WorkspaceFile, ...]:
    """With the ``prompt`` of an eval, files have the names that it uses."""
    files = {
        name: WorkspaceFile(name, text.encode("utf-8", "replace"))
        for name, text in texts
    }
    files |= {file.path: file for file in exact}
    if prompt is not None:
        paths = {name: _name_in(prompt, name) for name in files}
        if len(set(paths.values())) == len(paths):
            files = {
                paths[name]: replace(file, path=paths[name])
                for name, file in files.items()
            }
    for name in files:
        if not is_path(name):
            raise ValueError(
                f"{name!r} can't be a file in a workspace; use a relative path"
            )
        parents = map(str, PurePosixPath(name).parents)
        if above := next((parent for parent in parents if parent in files), None):
            raise ValueError(f"{name!r} can't be in {above!r}, which is a file")
    return tuple(files[name] for name in sorted(files))


def _name_in(prompt: str, path: str) -> str:
    """The end of a path that a prompt names; else the path
    without skill-creator's folders.
    """
    parts = path.split("/")
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    named = (
        end
        for end in ends
        if re.search(rf"(?<![\w.-]){re.escape(end)}(?![\w-])", prompt)
    )
    return next(named, _EVALS.sub("", path))
