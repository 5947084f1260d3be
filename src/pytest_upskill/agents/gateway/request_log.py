"""What went through the endpoint of a trial, as a transcript.

Agents ask besides their conversation: for a title, a summary of what was said, a word that says
whether a topic is new. Such requests offer no tools and go on from nothing that was said, or offer
tools that may not be called: Copilot asks so for a summary while the conversation goes on. Their
tokens count, but they are no turns. When an agent makes a summary and goes on from that alone, the
same conversation goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from ..._util.keys import HIDDEN
from ..._util.texts import digest
from ...trials.answer import Usage
from ...trials.tools import ToolCall
from ..recorder import Recorder
from .protocol import AgentRequest, Item, ModelReply

_SUMMARY: Final = 40  # characters from which a text that comes back is no accident
_MOST_KEPT: Final = 40_000_000  # characters of a trial; then each text keeps little
_LITTLE: Final = 2_000
# Characters of the first messages that tell conversations apart. The first may be of the agent's
# own, such as the time; the last is what it is asked.
_SHARED: Final = 500
_TAGS: Final = ("summary", "state_snapshot")
_SAYS: Final = ("assistant", "thinking", "call")  # what a reply is repeated as


@dataclass(eq=False)
class LoggedRequest:
    """A request as far as it is news, and the reply."""

    thread: str
    system: str
    news: tuple[Item, ...]
    offers_tools: bool
    helps: bool  # it is beside the conversation
    forbids: bool  # tools may not be called
    after: float | None  # seconds since the reply before it
    unsent: bool = False  # it decided the trial, so nobody is going to reply
    said: ModelReply | None = None
    seconds: float | None = None


@dataclass(eq=False)
class RequestLog:
    """The requests of a trial, in order."""

    token: str = ""  # of the endpoint, masked in all texts
    kept: list[LoggedRequest] = field(default_factory=list)
    main: str = ""  # the thread that the answer is in
    _with_tools: bool = False
    # From the id of a call to its threads: some servers count from 1 in each conversation.
    _calls: dict[str, list[str]] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)  # from the id of a reply to its thread
    _begun: set[str] = field(default_factory=set)
    _ended: dict[str, float] = field(default_factory=dict)  # when a thread had its last reply
    _size: int = 0

    @property
    def turns(self) -> int:
        """Requests of the conversation and of those that it started, answered or on their way."""
        return sum(not one.helps for one in self.kept)

    def is_turn(self, asked: AgentRequest) -> bool:
        """Whether a request is part of a conversation, not beside it."""
        if asked.forbids and self._with_tools:
            return False
        return bool(asked.tools) or not self._with_tools or self._goes_on(asked)

    def begin(self, asked: AgentRequest, now: float) -> LoggedRequest:
        """Take note of a request."""
        thread = self._thread_of(asked)
        offers = bool(asked.tools)
        if offers and not self._with_tools:  # all that came before was beside it
            self._with_tools, self.main = True, thread
            for one in self.kept:
                one.helps = one.thread != thread
        elif not self.main:
            self.main = thread
        helps = not self.is_turn(asked)
        renamed = self._renamed(asked, thread)
        for call in renamed:
            self._calls.setdefault(call, []).append(thread)
        before = self._ended.get(thread)
        kept = LoggedRequest(
            thread,
            self._cut(asked.system) if self._begins(thread, helps) else "",
            tuple(self._item(one, renamed) for one in _news(asked))
            if not helps or asked.forbids
            else (),
            offers,
            helps,
            asked.forbids,
            None if before is None else max(0.0, now - before),
        )
        self.kept.append(kept)
        return kept

    def end(self, kept: LoggedRequest, said: ModelReply | None, seconds: float, now: float) -> None:
        """Take note of the reply; None if there is none, and the request will count for nothing."""
        if said is None:
            self.kept.remove(kept)
            if kept.system:
                self._begun.discard(kept.thread)
            return
        calls = tuple(
            ToolCall(call.id, call.name, self._cut(call.arguments)) for call in said.calls
        )
        kept.said = ModelReply(
            self._cut(said.text),
            self._cut(said.thinking),
            calls,
            said.usage,
            said.stop,
            said.id,
        )
        kept.seconds = seconds
        self._ended[kept.thread] = now
        if not kept.helps:
            for call in said.calls:
                threads = self._calls.setdefault(call.id, [])
                threads += [kept.thread] if kept.thread not in threads else []
            if said.id:
                self._ids[said.id] = kept.thread

    def tell(self, recorder: Recorder) -> str:
        """Write all of it into a recorder; returns the final answer."""
        self._settle()
        final = ""
        helpers = list[Usage]()
        for one in self.kept:
            if one.unsent:
                self._tell_request(one, recorder)
            elif one.said is None:
                continue  # it never ended
            elif one.helps:
                helpers.append(one.said.usage)
                self._tell_request(one, recorder)
            else:
                self._tell_request(one, recorder)
                self._tell_reply(one, one.said, recorder)
                if one.thread == self.main and not one.said.calls:
                    final = one.said.text
        if helpers:
            recorder.besides(helpers)
        return final

    def is_decided(self, kept: LoggedRequest, recorder: Recorder) -> bool:
        """Whether a request that is about to be sent tells if the tested skill is opened.

        ``recorder`` is a fresh one, which gets to know of all up to there.
        """
        for one in self.kept:
            if one.said and one is not kept:
                self._tell_request(one, recorder)
                if not one.helps:
                    self._tell_reply(one, one.said, recorder)
        before = recorder.opened
        self._tell_request(kept, recorder)
        return recorder.is_decided(before)

    def _tell_request(self, one: LoggedRequest, recorder: Recorder) -> None:
        results = [item for item in one.news if item.kind == "result"]
        if one.system and not one.helps:
            recorder.system(one.system)
        for item in results if one.helps else one.news:  # a summary is of results, too
            if item.kind == "result":
                alone = one.after if len(results) == 1 else None
                key = self._unique(one.thread, item.call)
                recorder.result(key, item.text, item.failed, alone)
            elif item.kind == "system":
                recorder.system(item.text)
            else:
                recorder.message("assistant" if item.kind == "assistant" else "user", item.text)

    def _tell_reply(self, one: LoggedRequest, said: ModelReply, recorder: Recorder) -> None:
        made = [replace(call, id=self._unique(one.thread, call.id)) for call in said.calls]
        recorder.reply(said.thinking, said.text, made, said.usage, one.seconds)

    def _settle(self) -> None:
        """An agent that forbids its tools in its last turn wants its answer, if it has none yet."""
        replies = [one for one in self.kept if one.said and one.thread == self.main]
        answered = any(one.said and not one.said.calls and not one.helps for one in replies)
        if replies and replies[-1].forbids and not answered:
            replies[-1].helps = False

    @property
    def last(self) -> ModelReply | None:
        """The last reply of the conversation."""
        said = [
            one.said for one in self.kept if one.said and one.thread == self.main and not one.helps
        ]
        return said[-1] if said else None

    def _thread_of(self, asked: AgentRequest) -> str:
        """Which conversation a request belongs to."""
        beside = not asked.tools and not self._goes_on(asked)
        if asked.thread:
            thread = digest(asked.thread, "beside" if beside else "")[:16]
            self._goes_on_from_summary(asked, thread)
            return thread
        if asked.follows in self._ids:
            return self._ids[asked.follows]
        opening = [item.text for item in takewhile(_is_user, asked.items)] or [""]
        ends = opening[0][:_SHARED], opening[-1][-_SHARED:]  # what is asked comes last
        own = digest(*ends, "tools" if asked.tools else "")[:16]
        summed_up = self._goes_on_from_summary(asked, self.main)  # Qwen Code keeps its last call
        for item in reversed(asked.items):
            if threads := self._calls.get(item.call):
                return own if own in threads else threads[-1]
        return self.main if summed_up else own

    def _unique(self, thread: str, call: str) -> str:
        """The id of a call, unlike that of any other conversation."""
        return call if thread == self.main else f"{thread} {call}"

    def _goes_on_from_summary(self, asked: AgentRequest, thread: str) -> bool:
        """Whether a reply of this thread, or one beside it, comes back: that was a summary.

        It comes back in what a user is said to say, or as what was said to OpenCode's question.
        """
        if not asked.tools:
            return False
        for one in reversed(self.kept):
            if (one.thread == thread or one.helps) and one.said and not one.said.calls:
                summary = _summary(one.said.text)
                kinds = ("user", "assistant") if one.helps else ("user",)
                told = (item.text for item in asked.items if item.kind in kinds)
                if len(summary) >= _SUMMARY and any(summary in text for text in told):
                    one.helps = True
                    return True
        return False

    def _goes_on(self, asked: AgentRequest) -> bool:
        """Whether a request goes on from a reply of this trial."""
        return asked.follows in self._ids or any(item.call in self._calls for item in asked.items)

    def _begins(self, thread: str, helps: bool) -> bool:
        """Some agents change a word of the system text in every request: the first counts."""
        if helps or thread in self._begun:
            return False
        self._begun.add(thread)
        return True

    def _renamed(self, asked: AgentRequest, thread: str) -> dict[str, str]:
        """The ids that an agent gave to the last calls in place of the model's, and those."""
        replies = (one.said for one in reversed(self.kept) if one.thread == thread)
        calls = next((said.calls for said in replies if said), ())
        said = asked.items[: len(asked.items) - len(_news(asked))]
        given = [item.call for item in said if item.kind == "call"][-len(calls) :]
        if not calls or len(given) != len(calls) or not self._calls.keys().isdisjoint(given):
            return {}
        return dict(zip(given, (call.id for call in calls), strict=True))

    def _item(self, item: Item, renamed: Mapping[str, str]) -> Item:
        call = renamed.get(item.call, item.call)
        return replace(item, text=self._cut(item.text), call=call)

    def _cut(self, text: str) -> str:
        kept = text if self._size < _MOST_KEPT else text[:_LITTLE]
        if self.token:
            kept = kept.replace(self.token, HIDDEN)
        self._size += len(kept)
        return kept


def _is_user(item: Item) -> bool:
    return item.kind == "user"


def _news(asked: AgentRequest) -> list[Item]:
    """What a request says after the last reply that it repeats."""
    places = [at for at, item in enumerate(asked.items) if item.kind in _SAYS]
    return list(asked.items[places[-1] + 1 if places else 0 :])


def _summary(text: str) -> str:
    """The part of a reply that an agent would go on from: some have it think first."""
    for tag in _TAGS:
        inner, closed, _ = text.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")
        if closed:
            return inner.strip()
    return text.strip()
