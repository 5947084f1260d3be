"""The transcript of an agent and its model: the same for every agent."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .._util.keys import without_keys
from .._util.texts import digest, shortened
from ..skills.case import NO_NEEDS, Role
from ..trials.answer import Answer, SideCalls, Usage, total_usage
from ..trials.transcript import (
    GIVEN,
    NOT_INVOKED,
    UNTOLD,
    Activity,
    ListedSkill,
    Sent,
    ToolCall,
    Transcript,
    Turn,
    TurnKind,
)
from ..trials.trial import Question
from ..trials.written_calls import Offer, writes_call
from .part import Prepared
from .skill_content import invoked_skill
from .skill_listing import names_in, sent_in
from .skill_use import SkillUse, is_in
from .staging import InstalledSkill

LONGEST_TURN: Final = 32_000  # characters of a turn that are kept
LONGEST: Final = 4_000_000  # characters of all turns; then each is cut
_CUT_TURN: Final = 400
_MOST_TURNS: Final = 20_000
_MOST_FINDINGS: Final = 50

PriceOf = Callable[[Usage], float | None]


@dataclass
class _TurnEntry:
    turn: Turn
    call: ToolCall | None = None
    result: Turn | None = None
    number: int = 0  # of the call, among all of the trial


@dataclass
class Recorder:
    """Writes down a trial as it happens, so that a trial that is
    stopped has its transcript, too.

    What is repeated, as CLIs do in every request, counts once.
    """

    question: Question  # of the trial
    skills: Sequence[InstalledSkill] = ()
    price: PriceOf = lambda usage: None  # noqa: ARG005
    turns: int = field(default=0, init=False)  # replies of the model
    tool_calls: int = field(default=0, init=False)
    # What parts of the trial have for its agent
    prepared: list[Prepared] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._entries: list[_TurnEntry] = []
        # By id, which a model may give twice
        self._calls: dict[str, list[_TurnEntry]] = {}
        self._repeated: set[str] = set()
        self._usages: list[Usage] = []
        self._user_usages: list[Usage] = []
        self._user_model = ""
        # What the user said, until the agent's model is sent it; by text,
        # which may come twice.
        self._expected: dict[str, list[Turn]] = {}
        self._findings: dict[str, None] = {}
        self._size = 0
        self._left_out = 0
        self._first_texts: list[str] = []  # of the first request
        self._sent: dict[str, Sent] = {}  # how it lists each skill, once it is complete
        self.last: Answer | None = None  # reply of the conversation
        self.offer = Offer()
        self.offer.add_skills(skill.name for skill in self.skills)
        task = self.question.task
        start = [file.data for file in task.files] if task else []
        workdir = (task.needs if task else NO_NEEDS).workdir
        self._skill_use = SkillUse(self.skills, start, workdir)

    def system(self, text: str) -> None:
        """The system text of a request."""
        self._add_message("system", text)

    def message(self, role: Role, text: str) -> None:
        """A message of a request, besides replies of this trial and results."""
        if role == "user" and (answers := self._expected.get(text.strip())):
            self._repeated.add(digest("user", text))
            self._skill_use.add_given(text)  # not by the agent itself
            self._add(_TurnEntry(answers.pop(0)))
        else:
            self._add_message("user" if role == "user" else "assistant", text)

    def expect_answer(self, text: str, seconds: float) -> None:
        """What the user said, which the agent's model is going to be sent."""
        turn = Turn("answer", text, seconds=_rounded(seconds))
        self._expected.setdefault(text.strip(), []).append(turn)

    def add_user_call(self, model: str, usage: Usage) -> None:
        """A call of the model that plays the user; its tokens are not the agent's."""
        self._user_model = model
        self._user_usages.append(usage)

    def reply(self, reply: Answer, seconds: float | None = None) -> None:
        """A reply of the model: thoughts, a text and calls."""
        self._settle_first_request()
        self.turns += 1
        self._usages.append(reply.usage)
        self.last = reply
        self._repeated.add(digest("assistant", reply.text))
        turns = [Turn("thinking", reply.thinking)] if reply.thinking else []
        if reply.text or not (reply.thinking or reply.calls):
            turns.append(Turn("assistant", reply.text))
        entries = [_TurnEntry(turn) for turn in turns]
        entries += [
            _TurnEntry(Turn("call", call.arguments, call.name), call, number=number)
            for number, call in enumerate(reply.calls, self.tool_calls + 1)
        ]
        entries[0].turn = replace(
            entries[0].turn,
            seconds=_rounded(seconds),
            input_tokens=reply.usage.input,
            output_tokens=reply.usage.output,
            cost=self.price(reply.usage),
        )
        for entry in entries:
            self._add(entry)
            if (
                entry.call
                and self.offer.tools
                and not self.offer.has_tool(entry.call.name)
            ):
                for skill in self._skill_use.called(entry.call.name, entry.number):
                    self.add_finding(f"called the skill {skill} as if it were a tool")
        self.tool_calls += len(reply.calls)

    def result(
        self,
        call: ToolCall | str,
        text: str,
        failed: bool,
        seconds: float | None = None,
    ) -> None:
        """The result of a call, which is given by itself or its id."""
        key = call if isinstance(call, str) else call.id
        entries = self._calls.get(key, [])
        waiting = [entry for entry in entries if entry.result is None]
        exact = (entry for entry in waiting if entry.call is call)
        entry = next(exact, waiting[0] if waiting else None)
        if entry is None and entries:
            return  # a repetition
        answered = entry.call if entry else None
        at = entry.number if entry else self.tool_calls
        self._skill_use.saw(text, answered, failed=failed, at=at)
        self._note_names(text)
        name = answered.name if answered else ""
        turn = Turn("result", text, name, failed, self.turns)
        turn = replace(turn, seconds=_rounded(seconds))
        if entry is None:
            self._calls[key] = [orphan := _TurnEntry(turn, result=turn)]
            self._add(orphan)
        else:
            entry.result = self._stored(turn)

    def side_calls(self, usages: Sequence[Usage]) -> None:
        """Calls beside the conversation, such as for a title: only their tokens
        count.
        """
        self._usages += usages
        total = total_usage(usages)
        tokens = "unknown" if None in (total.input, total.output) else ""
        tokens = tokens or f"{(total.input or 0) + (total.output or 0):,}"
        self.add_finding(
            f"model calls beside the conversation: {len(usages)} ({tokens} tokens)"
        )

    def add_finding(self, finding: str) -> None:
        """Something that was refused or left out."""
        if len(self._findings) < _MOST_FINDINGS:
            self._findings[shortened(without_keys(finding), 500)] = None

    @property
    def transcript(self) -> Transcript:
        """All turns so far; each result follows its call."""
        turns = list[Turn]()
        for entry in self._entries:
            turns.append(entry.turn)
            if entry.call and entry.result:
                turns.append(entry.result)
        return tuple(turns)

    @property
    def usage(self) -> Usage:
        return total_usage(self._usages) if self._usages else Usage()

    @property
    def activity(self) -> Activity:
        self._settle_first_request()
        findings = list(self._findings)
        listed = tuple(
            ListedSkill(skill.name, self._sent[skill.name], skill.tested)
            for skill in self.skills
            if skill.name in self._sent
        )
        is_untold = {skill.sent for skill in listed if skill.tested} == {"not listed"}
        findings += [UNTOLD] if is_untold else []
        if self._left_out:
            findings.append(
                f"{self._left_out:,} turns are not in the transcript: it is too long"
            )
        use = self._skill_use
        return Activity(
            self.turns,
            self.tool_calls,
            use.activated,
            use.opened,
            use.read,
            use.scripts,
            tuple(findings),
            listed=listed,
        )

    @property
    def opened(self) -> tuple[str, ...]:
        """The skills that were opened so far."""
        return self._skill_use.opened

    def is_decided(self, before: Collection[str] = ()) -> bool:
        """Whether it is decided if a tested skill is opened.

        It is not opened if others were ``before`` the last reply,
        which then opened no more.
        """
        if not self.turns and self._skill_use.was_given(
            text for _, text in self.question.messages
        ):
            self.add_finding(GIVEN)
        return bool(self._skill_use.activated or before)

    @property
    def ends_with_written_call(self) -> bool:
        """Whether the last reply is a call that the model's server did not parse."""
        reply, question = self.last, self.question
        if reply is None or reply.calls or reply.refused:
            return False
        text = reply.text if reply.text.strip() else f"<think>{reply.thinking}"
        task = "\n".join([question.system, *(text for _, text in question.messages)])
        return writes_call(text, self.offer, task)

    def answer(self, stop: str, text: str | None = None) -> Answer:
        """The answer of the trial as far as it got; its text is that of the last
        reply.
        """
        return Answer(
            without_keys(
                (self.last.text if self.last else "") if text is None else text
            ),
            self.usage,
            stop,
            transcript=self.transcript,
            activity=self.activity,
            user=SideCalls.of(self._user_model, self._user_usages),
        )

    def _add_message(self, kind: TurnKind, text: str) -> None:
        key = digest(kind, text)
        if key in self._repeated:
            return
        self._repeated.add(key)
        if kind != "assistant":
            if self.turns:
                self._skill_use.saw(text, at=self.tool_calls)
                self._note_names(text)
            else:
                self._skill_use.add_given(text)
                self._first_texts.append(text)
        self._add(_TurnEntry(Turn(kind, text)))

    def _settle_first_request(self) -> None:
        """Once it is complete: whether it has the skill that is invoked,
        and lists the others.
        """
        if self._first_texts and self.skills:
            invoked = invoked_skill(self.question, self.skills)
            if invoked and self.question.task and self.question.task.invoke:
                filled = self.question.task.invoke.text(invoked.body)
                if any(
                    is_in(body, self._first_texts) for body in (invoked.body, filled)
                ):
                    self._skill_use.was_invoked(invoked.name)
                else:
                    self.add_finding(NOT_INVOKED)
            texts = [*self._first_texts, *self.offer.descriptions]
            prompts = (text for _, text in self.question.messages)
            skills = [skill for skill in self.skills if skill is not invoked]
            self._sent = sent_in(texts, skills, prompts)
        self._first_texts = []

    def _note_names(self, text: str) -> None:
        """Skills that a later request names: some agents list them by a tool."""
        unlisted = [name for name, sent in self._sent.items() if sent == "not listed"]
        self._sent |= dict.fromkeys(names_in(text, unlisted), "name")

    def _add(self, entry: _TurnEntry) -> None:
        if entry.call:
            self._calls.setdefault(entry.call.id, []).append(entry)
        if len(self._entries) >= _MOST_TURNS:
            self._left_out += 1
            return
        entry.turn = self._stored(replace(entry.turn, reply=self.turns))
        self._entries.append(entry)

    def _stored(self, turn: Turn) -> Turn:
        """A turn without keys, cut to what is left of the limits."""
        most = LONGEST_TURN if self._size < LONGEST else _CUT_TURN
        text = shortened(without_keys(turn.text), most, saving=0)
        self._size += len(text)
        return replace(turn, text=text, tool=shortened(without_keys(turn.tool), 200))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
