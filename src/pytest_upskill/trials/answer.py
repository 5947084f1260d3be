"""What came of a question: an Answer, or NoAnswer with the reason."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Base64Bytes, Field, SkipValidation

from .._util.json_forms import (
    MOST,
    Amount,
    Items,
    LenientSeconds,
    LenientTime,
    Whole,
    whole_number,
)
from .._util.texts import counted, plain
from .transcript import Activity, ToolCall, Transcript, joined_activity

MAX_CHANGED_FILES: Final = 200
MAX_FILE_BYTES: Final = 1_000_000  # larger files are kept by size and digest only
# Why a server or its filter withheld an answer, in the words of several providers.
_LIMITS: Final = ("length", "max_turns", "time")
_REFUSALS: Final = ("refusal", "content_filter", "safety", "blocked", "sensitive")
_REASONING: Final = re.compile(
    r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*+([<\[])(think|thinking|thought|reasoning)[>\]]",
    re.IGNORECASE,
)
STOPPED: Final = "the agent stopped at its"  # limit of turns, or of time
SILENT: Final = "the agent's final answer is empty"
CUT_OFF: Final = ", cut off by the output limit"  # before a word
_FENCE_LINE: Final = re.compile(
    r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+#.-]*+[ \t\r]*+$", re.MULTILINE
)


_Count = Annotated[int | None, SkipValidation]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of an answer; None where the server doesn't say, or says nonsense.

    ``input`` includes cached tokens, whatever the provider counts, so that arms
    compare, and those ``written`` to its cache, which some charge more for, and still
    more for those of them that stay there for an ``hour``.
    """

    input: _Count = None
    output: _Count = None
    cached: _Count = None
    written: _Count = 0
    hour: _Count = 0

    def __post_init__(self) -> None:
        # Here, because every adapter, script, recording and stored row makes one.
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= MOST:
                object.__setattr__(self, name, whole_number(value))

    @property
    def tokens(self) -> int:
        """Of the question and the answer, as far as they are known."""
        return (self.input or 0) + (self.output or 0)


_COUNTS: Final = ("input", "output", "cached", "written", "hour")


def total_usage(usages: Sequence[Usage]) -> Usage:
    """The sum over several answers; None where one of them is unknown."""

    def total(values: Sequence[int | None]) -> int | None:
        counts = [value for value in values if value is not None]
        return sum(counts) if len(counts) == len(values) else None

    counts = {}
    for name in _COUNTS:
        counts[name] = total([getattr(usage, name) for usage in usages])
    return Usage(**counts)


@dataclass(frozen=True, slots=True)
class SideCalls:
    """What the judge or the user of a trial took, who are models, apart from what
    was tested.
    """

    model: str
    calls: Whole = 0
    usage: Usage = Usage()
    cost: Amount | None = None  # in USD; filled in by those who know the prices

    @classmethod
    def of(cls, model: str, usages: Sequence[Usage]) -> "SideCalls | None":
        return cls(model, len(usages), total_usage(usages)) if usages else None


Change = Literal["made", "changed", "deleted"]


@dataclass(frozen=True)
class AnswerFile:
    """A file that an agent left behind, or removed."""

    path: str  # relative to the agent's workspace, with forward slashes
    text: str | None  # None if it is binary, larger than MAX_FILE_BYTES or deleted
    size: Whole  # in bytes
    digest: str  # SHA-256 of its bytes; empty if it is deleted
    change: Change = "made"
    data: str = ""  # a small image, as base64

    @classmethod
    def of(cls, path: str, data: bytes) -> "AnswerFile":
        text = None
        if len(data) <= MAX_FILE_BYTES and b"\0" not in data:
            with suppress(UnicodeDecodeError):
                text = data.decode("utf-8")
        return cls(path, text, len(data), hashlib.sha256(data).hexdigest())


_T = TypeVar("_T")
_Unwritten = Annotated[_T, Field(exclude=True)]  # never on disk


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model or an agent replied.

    A plain completion has a text only. An agent's answer also has the files that it
    left behind and the transcript of how it got there.

    ``stop`` is ``end``, ``length`` (cut off by the output limit), ``refusal``, or the
    provider's own word; ``time`` if it reached the time limit; for an agent also
    ``max_turns``, or ``decided``, if it was only to be seen whether it opens a skill.
    ``stored``: it comes from the cache or a recording, not from a call of this run.
    ``retries``: how often it was asked again after errors, which an empty reply is not.
    ``asked_at`` is in seconds since the epoch, None if not known.
    """

    text: str
    usage: Usage = Usage()
    stop: str = "end"
    seconds: LenientSeconds = 0.0  # None if a file does not tell
    stored: _Unwritten[bool] = False
    asked_at: LenientTime = field(default=None, compare=False, kw_only=True)
    files: Items[AnswerFile] = field(default=(), kw_only=True)
    transcript: Transcript = field(default=(), kw_only=True)
    activity: Activity | None = field(default=None, kw_only=True)  # of an agent
    user: SideCalls | None = field(default=None, kw_only=True)  # who answered an agent
    retries: Whole = field(default=0, kw_only=True)
    # The workspace at the end, packed and compressed, for commands that check it; empty
    # if it is too large to keep. Never in a record.
    workspace: Base64Bytes = field(default=b"", kw_only=True, repr=False)
    # Of a model's turn inside of an agent, never on disk: tools that it wants called,
    # what it thought, and the turn in the provider's own form, to be sent back.
    calls: _Unwritten[tuple[ToolCall, ...]] = field(default=(), kw_only=True)
    thinking: _Unwritten[str] = field(default="", kw_only=True)
    raw: _Unwritten[str] = field(default="", kw_only=True, repr=False)

    @property
    def refused(self) -> bool:
        """Whether the model refused to answer, or a filter stopped it."""
        return self.stop.casefold().startswith(_REFUSALS)

    @property
    def is_empty(self) -> bool:
        """Whether it has no files, and no text beside reasoning,
        empty fences and blanks.
        """
        visible = _FENCE_LINE.sub("", without_reasoning(self.text))
        return not _has_ink(visible) and not any(file.size for file in self.files)

    @property
    def is_cut_off(self) -> bool:
        """Whether it ended at a limit, or was refused."""
        return self.stop in _LIMITS or self.refused

    @property
    def why_not_gradable(self) -> str:
        """Why no check can pass: no answer, a refusal or a limit;
        empty if it can be graded.
        """
        if self.activity is not None:
            return self._why_not_gradable_for_agent(self.activity)
        if self.stop == "time":
            return f"no answer within {plain(self.seconds or 0.0)} s, in two runs"
        if not self.is_empty:
            return "the model refused to answer" if self.refused else ""
        if self.refused:
            return "the answer is empty: the model refused to answer"
        reason = (
            "nothing but reasoning" if _has_ink(self.text.replace("`", "")) else "empty"
        )
        if self.stop == "length":
            reason += CUT_OFF
        return f"the answer is {reason}"

    def _why_not_gradable_for_agent(self, activity: Activity) -> str:
        """The same for an agent: one that reached a limit, or left no last word,
        has failed.
        """
        if self.stop == "max_turns":
            return f"{STOPPED} limit of {counted(activity.turns, 'turn')}"
        if self.stop == "time":
            limit = f" of {plain(round(self.seconds, 1))} s" if self.seconds else ""
            return f"{STOPPED} time limit{limit}"
        if self.refused:
            return "the model refused to go on"
        if not _has_ink(_FENCE_LINE.sub("", without_reasoning(self.text))):
            cut = CUT_OFF if self.stop == "length" else ""
            return f"{SILENT}{cut}"
        return ""


@dataclass(frozen=True)
class NoAnswer:
    """A question without an answer: one line that says why and what to do."""

    reason: str
    retries: int = 0
    timed_out: bool = False  # more time may help
    # It was not asked, since it could have exceeded the budget
    over_budget: bool = False


Reply = Answer | NoAnswer


def joined(answers: Sequence[Answer]) -> Answer:
    """Several answers of one trial as one."""
    seconds = [answer.seconds for answer in answers]
    times = [answer.asked_at for answer in answers]
    return Answer(
        "\n\n".join(answer.text for answer in answers),
        total_usage([answer.usage for answer in answers]),
        answers[-1].stop,
        None if None in seconds else sum(filter(None, seconds)),
        all(answer.stored for answer in answers),
        asked_at=min((time for time in times if time is not None), default=None),
        files=tuple(
            {file.path: file for answer in answers for file in answer.files}.values()
        ),
        transcript=tuple(turn for answer in answers for turn in answer.transcript),
        activity=joined_activity([answer.activity for answer in answers]),
        user=next((answer.user for answer in reversed(answers) if answer.user), None),
        workspace=answers[-1].workspace,
        retries=sum(answer.retries for answer in answers),
    )


def without_reasoning(text: str) -> str:
    """What follows the reasoning at the start of an answer,
    if its server has left that in.
    """
    at = 0
    while opening := _REASONING.match(text, at):
        end = re.compile(rf"{re.escape(opening[1])}/{opening[2]}[>\]]", re.IGNORECASE)
        closing = end.search(text, opening.end())
        if closing:
            at = closing.end()
        elif opening[1] == "<" and opening[2].casefold().startswith("think"):
            return ""  # cut off while it was thinking
        else:
            break  # a heading such as [Reasoning]
    answer = text[at:]
    # Some servers give the opening tag themselves, as part of the prompt.
    unopened = answer.rstrip().endswith("</think>") and "<think>" not in answer
    return "" if unopened else answer


def _has_ink(text: str) -> bool:
    """Whether a character of a text can be seen: no controls, spaces or lone marks."""
    return any(unicodedata.category(char)[0] not in "CZM" for char in text)
