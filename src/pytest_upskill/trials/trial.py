"""Trials, their questions, and the prompt of each arm."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final, Literal
from unicodedata import category

from .._util.keys import without_keys
from .._util.texts import digest, named_fence
from ..settings import Settings
from ..skills.case import Case, Role
from ..skills.skill import Skill
from .arm import BASELINE, PREVIOUS, SKILL, TRACE
from .choice import Choice
from .subject import CHAT, WithSubject
from .task import Outfit, Task
from .tools import Step, Tool

Turns = tuple[tuple[Role, str], ...]
# The prefix that other questions share: the system text with the tools, also the messages, or
# also the steps of an agent so far.
Shared = Literal["system", "messages", "steps"]

# The order was measured on small models: the skill first, then the instruction, and no tags.
BASE_SYSTEM: Final = "You are a helpful assistant."
FOLLOW_SKILL: Final = "Follow the skill above when you answer."


@dataclass(frozen=True)
class Question:
    """Everything that a model is sent. Arms differ only in the text of the skill."""

    model: str
    system: str
    messages: Turns
    max_output: int
    run: int
    schema: str | None = None  # JSON Schema of the reply, for servers that can enforce it
    verdicts: int | None = None  # how many a judge's reply must have; the schema says so too
    mark: str = ""  # what a judge's reply must repeat; the last message says so too
    tools: tuple[Tool, ...] = ()  # that the model may call
    steps: tuple[Step, ...] = ()  # turns after the messages, each with calls and their results
    task: Task | None = None  # for an agent, which carries it out in a workspace
    choice: Choice | None = None  # of a skill; ``tools`` has the one that loads it
    # What the provider should keep in its cache. It changes nothing that the model reads.
    shared: tuple[Shared, ...] = field(default=(), compare=False)

    def without_keys(self) -> "Question":
        """Without the keys of this process: no server needs to see them in a text."""
        messages = tuple((role, without_keys(text)) for role, text in self.messages)
        has_others = self.tools or self.steps or self.choice
        if (
            not has_others
            and messages == self.messages
            and without_keys(self.system) == self.system
        ):
            return self
        return replace(
            self,
            system=without_keys(self.system),
            messages=messages,
            tools=tuple(tool.without_keys() for tool in self.tools),
            steps=tuple(step.without_keys() for step in self.steps),
            choice=self.choice and self.choice.without_keys(),
        )

    @cached_property
    def content(self) -> str:
        """A key of everything but the model's name."""
        turns = [text for message in self.messages for text in message]
        form = [self.schema] if self.schema else []
        form += [repr(part) for part in (self.tools, self.steps) if part]
        form += [self.task.content] if self.task else []
        form += ["choice", self.choice.tested, self.choice.by_schema] if self.choice else []
        return digest(self.system, *turns, str(self.max_output), str(self.run), *form)

    @cached_property
    def key(self) -> str:
        return digest(self.model, self.content)


@dataclass(frozen=True)
class Hidden:
    """What a judge must not see of a skill, so that it can't tell the arms apart."""

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rubric:
    """Texts that a judge checks an answer against."""

    judge: str  # the name of the model
    texts: tuple[str, ...]
    votes: int
    max_output: int
    refusals: bool = False  # whether a refusal is judged, too
    files: tuple[str, ...] = ()  # paths and patterns of an agent's files that it sees whole
    hidden: Hidden = Hidden()
    context: str = ""  # what it is told about the wanted result, beside the texts


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
    later: bool = False  # asked only if the first runs leave the verdict open
    agent: str = CHAT

    @property
    def is_open(self) -> bool:
        """Whether the question is only known once the test runs."""
        return not self.question.messages


def text_in_arm(skill: Skill, arm: str) -> str | None:
    """The text that stands for the skill in an arm; None in the baseline."""
    texts = {SKILL: skill.text, PREVIOUS: skill.previous, TRACE: skill.trace}
    return texts.get(arm)


def default_prompt(skill: Skill, arm: str, case: Case) -> str:
    """The system text of an arm."""
    text, base = text_in_arm(skill, arm), case.system or BASE_SYSTEM
    return base if text is None else skill_system(text, base)


@lru_cache(maxsize=64)  # the text is held once, not once for each of its cases
def skill_system(body: str, base: str = BASE_SYSTEM) -> str:
    return f"{base}\n\n{body}\n\n{FOLLOW_SKILL}"


Prompt = Callable[[Skill, str, Case], str]


def trials_of(
    label: str,
    skill: Skill,
    case: Case,
    model: str,
    settings: Settings,
    rubric: Rubric | None = None,
    prompt: Prompt = default_prompt,
    outfit: Outfit | None = None,
) -> list[Trial]:
    """The trials of a case on a model, run by run, so that the arms of a run go together.

    With an outfit, an agent carries them out: it gets the bare question, and files as files.
    """
    arms, agent = _arms(skill, settings), outfit.agent if outfit else CHAT
    if outfit:
        of_agent = agent_questions(outfit, case, model, settings)
        questions = {arm: of_agent[arm] for arm in arms}
    else:
        turns: Turns = (*case.earlier, ("user", user_text(case)))
        questions = {
            arm: Question(model, prompt(skill, arm, case), turns, settings.answer_output, 1)
            for arm in arms
        }
    runs = case.runs or settings.runs
    first = case.runs or settings.first_runs or settings.runs
    return [
        Trial(
            label,
            case.id,
            model,
            arm,
            run,
            question if run == 1 else replace(question, run=run),
            rubric,
            later=run > first,
            agent=agent,
        )
        for run in range(1, runs + 1)
        for arm, question in questions.items()
    ]


def agent_questions(
    outfit: Outfit, case: Case, model: str, settings: Settings, run: int = 1
) -> dict[str, Question]:
    """What an agent is asked in each arm: nothing is added to the question or a system text."""
    turns: Turns = (*case.earlier, ("user", case.input))
    return {
        arm: Question(model, case.system or "", turns, settings.agent_output, run, task=task)
        for arm, task in outfit.tasks(case).items()
    }


def open_trials(
    label: str, skill: Skill, case: str, model: str, settings: Settings, agent: str = CHAT
) -> list[Trial]:
    """The trials of a test whose questions are only known once it runs; none is ``later``."""
    unknown = Question(model, "", (), settings.answer_output, 1)
    return [
        Trial(label, case, model, arm, run, unknown, agent=agent)
        for run in range(1, (settings.first_runs or settings.runs) + 1)
        for arm in _arms(skill, settings)
    ]


def _arms(skill: Skill, settings: Settings) -> list[str]:
    with_text = [arm for arm in (PREVIOUS, TRACE, SKILL) if text_in_arm(skill, arm) is not None]
    return [BASELINE, *with_text] if settings.baseline else with_text


def user_text(case: Case) -> str:
    """The question, then its files in named fences."""
    return "\n\n".join([case.input, *(named_fence(name, text) for name, text in case.files)])


def sample_of(case: Case) -> str:
    """The same for all cases that ask the same: they get the same answer, so they are one sample.

    White space, letter case and characters that nobody sees make no other question.
    """
    texts = [text for message in case.earlier for text in message]
    texts += [user_text(case), case.system or ""]
    return sample_of_texts(texts, of_workspace(case))


def sample_of_texts(texts: Iterable[str], files: Iterable[str] = ()) -> str:
    return digest(*map(_as_read, texts), *files)[:16]


def of_workspace(case: Case) -> list[str]:
    """What the workspace of a case has besides texts; mostly nothing."""
    files = [file.digest for file in case.exact]
    return [*files, case.setup] if files or case.setup else []


def _as_read(text: str) -> str:
    if not text.isascii():
        text = "".join(letter for letter in text if category(letter) != "Cf")
    return " ".join(text.casefold().split())
