"""Cases by a model: asked for, tried, and replaced where they did not hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from .classroom import Classroom
from .forms import CaseReply, CasesReply, cases_schema
from .prompts import cases_prompt, replace_prompt
from .replies import NotUsable, Request, ask_for, objects_in, read_reply
from .secrets import masked
from .trying import FallenCase, GoodCase, try_cases

_BATCH: Final = 12  # more at once than this and replies get cut off
_ROUNDS: Final = 2


@dataclass
class Authored:
    """What came of it: cases that hold, how many are replacements, and all that fell."""

    good: list[GoodCase] = field(default_factory=list)
    replaced: int = 0
    fallen: list[FallenCase] = field(default_factory=list)


@dataclass(frozen=True)
class Author:
    """A model that writes cases, and what it is told of the task."""

    room: Classroom
    model: str
    system: str
    task: str
    material: str
    body: str
    scratch: Path
    session: int

    def write(self, number: int, known: Sequence[GoodCase] = ()) -> Authored:
        """So many cases, if it can; ``known`` are there already and not asked again."""
        made = Authored()
        while len(made.good) + len(made.fallen) < number:
            batch = min(_BATCH, number - len(made.good) - len(made.fallen))
            before = len(made.good) + len(made.fallen)
            self._add(made, self._prompt(batch, [*known, *made.good]), batch, known)
            if len(made.good) + len(made.fallen) == before:
                break
        for _ in range(_ROUNDS):
            if (missing := number - len(made.good)) <= 0:
                break
            self._replace(made, missing, known)
        return made

    def replace(self, fallen: Sequence[FallenCase], known: Sequence[GoodCase]) -> list[GoodCase]:
        """Others in the place of cases that fell later, as far as they hold at once."""
        made = Authored(fallen=list(fallen))
        self._replace(made, len(fallen), known)
        return made.good

    def _replace(self, made: Authored, missing: int, known: Sequence[GoodCase]) -> None:
        told = [(one.question, one.why) for one in made.fallen]
        before = self._prompt(missing, [*known, *made.good])
        kept = len(made.good)
        self._add(made, replace_prompt(missing, told, before), missing, known)
        made.replaced += len(made.good) - kept

    def _add(self, made: Authored, prompt: str, most: int, known: Sequence[GoodCase]) -> None:
        judge = self.room.judge
        schema = cases_schema(judge is not None)
        request = Request(self.model, self.system, masked(prompt), schema, self.session)
        replies = ask_for(self.room, request, _read)[:most]
        good, fallen = try_cases(replies, [*known, *made.good], self.scratch, self.room.ask, judge)
        made.good += good
        made.fallen += fallen

    def _prompt(self, number: int, known: Sequence[GoodCase]) -> str:
        asked = [one.case.input for one in known]
        judge = self.room.judge is not None
        return cases_prompt(self.task, self.material, self.body, number, asked, judge=judge)


def _read(text: str) -> list[Any]:
    """The cases of a reply; those that are whole, of one that was cut off or has no frame."""
    try:
        cases = read_reply(text, CasesReply).cases
    except NotUsable:
        cases = [data for data in objects_in(text) if _is_case(data)]
        if not cases:
            raise
    if not cases:
        raise NotUsable(["there are no cases in it"])
    return cases


def _is_case(data: dict[str, Any]) -> bool:
    try:
        CaseReply.model_validate(data)
    except ValidationError:
        return False
    return True
