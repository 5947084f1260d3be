"""What went through the endpoint of a trial, as a transcript.

Agents send requests beside their conversation: for a title, a summary, or whether a
topic is new. Such requests offer no tools and continue no reply, or forbid the use of
their tools, as Copilot does for a summary. Their tokens count, but they are no turns.
When an agent continues from a summary alone, it is still the same conversation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final

from ..._util.keys import HIDDEN
from ..._util.texts import digest
from ...trials.answer import Answer, Usage
from ...trials.written_calls import Offer
from ..recorder import Recorder
from .protocol import AgentRequest, Item

_SUMMARY: Final = 40  # characters: a shorter text may come back by accident
_MOST_CHARACTERS: Final = 40_000_000  # of a trial; then each text is cut
_CUT_TEXT: Final = 2_000
# Characters of the first messages that identify a conversation: the start of the
# first, which the agent may have added, such as the time, and the end of the
# last, which is the prompt.
_SHARED: Final = 500
_TAGS: Final = ("summary", "state_snapshot")
_REPLY_KINDS: Final = ("assistant", "thinking", "call")  # what a reply is repeated as


@dataclass(eq=False)
class LoggedRequest:
    """What is new in a request, and its reply."""

    thread: str
    system: str
    new_items: tuple[Item, ...]
    offers_tools: bool
    is_side: bool  # beside the conversation
    forbids_tools: bool  # tools may not be called
    pause: float | None  # seconds since the reply before it
    unsent: bool = False  # it decided the trial, so it is not sent
    reply: Answer | None = None
    seconds: float | None = None
    ended: float = 0.0  # when its reply had come


@dataclass(eq=False)
class RequestLog:
    """The requests of a trial, in order."""

    token: str = ""  # of the endpoint, masked in all texts
    requests: list[LoggedRequest] = field(default_factory=list)
    main: str = ""  # the thread that the answer is in
    offer: Offer = field(default_factory=Offer)  # all tools that its model may call
    _has_tools: bool = False
    # From the id of a call to its threads: some servers count
    # from 1 in each conversation.
    _calls: dict[str, list[str]] = field(default_factory=dict)
    _size: int = 0

    @property
    def turns(self) -> int:
        """Requests of the conversation and of those that it started,
        also if still running.
        """
        return sum(not request.is_side for request in self.requests)

    def is_turn(self, request: AgentRequest) -> bool:
        """Whether a request is part of a conversation, not beside it."""
        if request.forbids_tools and self._has_tools:
            return False
        return bool(request.tools) or not self._has_tools or self._continues(request)

    def begin(self, request: AgentRequest, now: float) -> LoggedRequest:
        """Take note of a request."""
        thread = self._thread_of(request)
        offers_tools = bool(request.tools)
        if offers_tools and not self._has_tools:  # all earlier requests were beside it
            self._has_tools, self.main = True, thread
            for logged in self.requests:
                logged.is_side = logged.thread != thread
        elif not self.main:
            self.main = thread
        is_side = not self.is_turn(request)
        self.offer.add_tools(request.tools)
        before = self._last_reply_in(thread)
        renamed = self._renamed(request, before)
        for call in renamed:
            self._calls.setdefault(call, []).append(thread)
        system = "" if is_side or self._has_system(thread) else request.system
        logged = LoggedRequest(
            thread,
            self._cut(system),
            (
                tuple(self._item(item, renamed) for item in _new_items(request))
                if not is_side or request.forbids_tools
                else ()
            ),
            offers_tools,
            is_side,
            request.forbids_tools,
            max(0.0, now - before.ended) if before else None,
        )
        self.requests.append(logged)
        return logged

    def end(
        self,
        logged: LoggedRequest,
        reply: Answer | None,
        seconds: float,
        now: float,
    ) -> None:
        """Take note of the reply; a request without one is forgotten."""
        if reply is None:
            self.requests.remove(logged)
            return
        calls = (
            replace(call, arguments=self._cut(call.arguments)) for call in reply.calls
        )
        logged.reply = replace(
            reply,
            text=self._cut(reply.text),
            thinking=self._cut(reply.thinking),
            calls=tuple(calls),
        )
        logged.seconds = seconds
        logged.ended = now
        if not logged.is_side:
            for call in reply.calls:
                threads = self._calls.setdefault(call.id, [])
                threads += [logged.thread] if logged.thread not in threads else []

    def write_to(self, recorder: Recorder) -> str:
        """Write all of it into a recorder; returns the final answer."""
        self._settle()
        recorder.offer.add(self.offer)
        final = ""
        side_usages = list[Usage]()
        for logged in self.requests:
            if not logged.unsent and logged.reply is None:
                continue  # it never ended
            self._write_request(logged, recorder)
            if logged.reply and logged.is_side:
                side_usages.append(logged.reply.usage)
            elif logged.reply:
                self._write_reply(logged, logged.reply, recorder)
                if logged.thread == self.main and not logged.reply.calls:
                    final = logged.reply.text
        recorder.last = self.last
        if side_usages:
            recorder.side_calls(side_usages)
        return final

    def is_decided(self, pending: LoggedRequest, recorder: Recorder) -> bool:
        """Whether a request that is about to be sent decides if
        a tested skill is opened.

        ``recorder`` is a new one, which gets all requests up to there.
        """
        recorder.offer.add(self.offer)
        before: tuple[str, ...] = ()  # the last reply
        for logged in self.requests:
            if logged.reply and logged is not pending:
                self._write_request(logged, recorder)
                if not logged.is_side:
                    before = recorder.opened
                    self._write_reply(logged, logged.reply, recorder)
        self._write_request(pending, recorder)
        return recorder.is_decided(before)

    def _write_request(self, logged: LoggedRequest, recorder: Recorder) -> None:
        results = [item for item in logged.new_items if item.kind == "result"]
        if logged.system and not logged.is_side:
            recorder.system(logged.system)
        # Also for a summary
        for item in results if logged.is_side else logged.new_items:
            if item.kind == "result":
                seconds = logged.pause if len(results) == 1 else None
                key = self._unique(logged.thread, item.call)
                recorder.result(key, item.text, item.failed, seconds)
            elif item.kind == "system":
                recorder.system(item.text)
            else:
                recorder.message(
                    "assistant" if item.kind == "assistant" else "user", item.text
                )

    def _write_reply(
        self, logged: LoggedRequest, reply: Answer, recorder: Recorder
    ) -> None:
        calls = (
            replace(call, id=self._unique(logged.thread, call.id))
            for call in reply.calls
        )
        recorder.reply(replace(reply, calls=tuple(calls)), logged.seconds)

    def _settle(self) -> None:
        """A last request that forbids tools asks for the answer, if there is none
        yet.
        """
        main = [
            each for each in self.requests if each.reply and each.thread == self.main
        ]
        answers = (each for each in main if each.reply and not each.reply.calls)
        if main and main[-1].forbids_tools and all(each.is_side for each in answers):
            main[-1].is_side = False

    @property
    def last(self) -> Answer | None:
        """The last reply of the conversation."""
        for logged in reversed(self.requests):
            if logged.reply and logged.thread == self.main and not logged.is_side:
                return logged.reply
        return None

    def _thread_of(self, request: AgentRequest) -> str:
        """Which conversation a request belongs to."""
        beside = not request.tools and not self._continues(request)
        if request.thread:
            thread = digest(request.thread, "beside" if beside else "")[:16]
            self._continues_from_summary(request, thread)
            return thread
        opening = takewhile(lambda item: item.kind == "user", request.items)
        texts = [item.text for item in opening] or [""]
        ends = texts[0][:_SHARED], texts[-1][-_SHARED:]  # the prompt comes last
        new_thread = digest(*ends, "tools" if request.tools else "")[:16]
        # Before a look at its calls: an agent may keep the last one beside the summary.
        from_summary = self._continues_from_summary(request, self.main)
        for item in reversed(request.items):
            if threads := self._calls.get(item.call):
                return new_thread if new_thread in threads else threads[-1]
        return self.main if from_summary else new_thread

    def _unique(self, thread: str, call: str) -> str:
        """The id of a call, unique among all conversations."""
        return call if thread == self.main else f"{thread} {call}"

    def _continues_from_summary(self, request: AgentRequest, thread: str) -> bool:
        """Whether a request repeats a reply of this thread, or one beside it,
        as its summary.

        It stands in a message of the user's, or, by OpenCode,
        as the reply to its question.
        """
        if not request.tools:
            return False
        for logged in reversed(self.requests):
            reply = logged.reply
            if (
                not (logged.thread == thread or logged.is_side)
                or not reply
                or reply.calls
            ):
                continue
            summary = _summary(reply.text)
            kinds = ("user", "assistant") if logged.is_side else ("user",)
            texts = (item.text for item in request.items if item.kind in kinds)
            if len(summary) >= _SUMMARY and any(summary in text for text in texts):
                logged.is_side = True
                return True
        return False

    def _continues(self, request: AgentRequest) -> bool:
        """Whether a request continues a reply of this trial."""
        ids = (item.call for item in request.items)
        return any(call in self._calls for call in ids)

    def _has_system(self, thread: str) -> bool:
        """Whether the first request of a thread is logged: some agents vary the
        system text of later ones.
        """
        return any(
            logged.thread == thread and logged.system for logged in self.requests
        )

    def _last_reply_in(self, thread: str) -> LoggedRequest | None:
        for logged in reversed(self.requests):
            if logged.thread == thread and logged.reply:
                return logged
        return None

    def _renamed(
        self, request: AgentRequest, before: LoggedRequest | None
    ) -> dict[str, str]:
        """From the ids that an agent gave to the last calls to those of the model."""
        calls = before.reply.calls if before and before.reply else ()
        repeated = request.items[: len(request.items) - len(_new_items(request))]
        ids = [item.call for item in repeated if item.kind == "call"][-len(calls) :]
        if (
            not calls
            or len(ids) != len(calls)
            or not self._calls.keys().isdisjoint(ids)
        ):
            return {}
        return dict(zip(ids, (call.id for call in calls), strict=True))

    def _item(self, item: Item, renamed: Mapping[str, str]) -> Item:
        call = renamed.get(item.call, item.call)
        return replace(item, text=self._cut(item.text), call=call)

    def _cut(self, text: str) -> str:
        shown = text if self._size < _MOST_CHARACTERS else text[:_CUT_TEXT]
        if self.token:
            shown = shown.replace(self.token, HIDDEN)
        self._size += len(shown)
        return shown


def _new_items(request: AgentRequest) -> list[Item]:
    """What follows the last reply that a request repeats."""
    places = [at for at, item in enumerate(request.items) if item.kind in _REPLY_KINDS]
    return list(request.items[places[-1] + 1 if places else 0 :])


def _summary(text: str) -> str:
    """The part of a reply that an agent continues from:
    some have the model think first.
    """
    for tag in _TAGS:
        inner, end_tag, _ = text.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")
        if end_tag:
            return inner.strip()
    return text.strip()
