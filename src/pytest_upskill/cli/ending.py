"""The end of generate: a preview of the skill, how long it took, and what to do with it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Final

from .._util.credentials import shown_command
from .._util.texts import counted, harmless
from ..errors import shown
from ..measure.estimate import Estimate
from ..reports.terminal.layout import cut
from ..skills.folder import SKILL_NAMES
from ..teach.outcome import Taught
from ..teach.teach_settings import TeachSettings
from ..trials.subject import CHAT

_PREVIEWED: Final = 12  # lines
_WORTH_CUTTING: Final = 3  # lines; cutting fewer saves no room


class Clock:
    """The time since somebody agreed to spend something; before that, it only waited."""

    def __init__(self) -> None:
        self._since = monotonic()

    def after(self, agree: Callable[[Estimate], bool]) -> Callable[[Estimate], bool]:
        def agreed(guess: Estimate) -> bool:
            answer = agree(guess)
            self._since = monotonic()
            return answer

        return agreed

    @property
    def seconds(self) -> float:
        return monotonic() - self._since


def preview_lines(text: str, width: int) -> Iterator[str]:
    """The first lines of a SKILL.md, whatever is in it."""
    lines = [line.expandtabs(4).rstrip() for line in harmless(text).rstrip().split("\n")]
    few = len(lines) < _PREVIEWED + _WORTH_CUTTING
    for line in lines if few else lines[:_PREVIEWED]:
        yield cut(f"  | {line}".rstrip(), width, "…")
    if not few:
        yield cut(f"  [… {counted(len(lines) - _PREVIEWED, 'more line')}]", width, "…")


def time_taken(seconds: float) -> str:
    """As people say it: 8 s, 3 min 20 s, 1 h 5 min."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def ending_lines(
    taught: Taught, settings: TeachSettings, seconds: float, width: int
) -> Iterator[str]:
    """What to see last; why a skill was not saved has to be the last word."""
    if not taught.folder:
        return
    yield ""
    yield f"{SKILL_NAMES[0]}, {counted(taught.best.draft.tokens, 'token')}:"
    yield from preview_lines(taught.best.draft.text, width)
    yield f"Took {time_taken(seconds)}."
    yield "Next:"
    yield from _next(taught, settings, str(Path(shown(taught.folder))))


def _next(taught: Taught, settings: TeachSettings, folder: str) -> Iterator[str]:
    """Commands with the models of this run; nobody should install what was shown not to help."""
    test = f"  test it:     {shown_command(_test(folder, settings))}"
    refine = f"  improve it:  {shown_command(_refine(folder, settings))}"
    if taught.learning and not taught.helps:
        yield from (refine, test)
        return
    install = shown_command(["pytest-upskill", "install", folder, "--agent", "claude"])
    yield from (test, refine, f"  install it:  {install}")


def _test(folder: str, settings: TeachSettings) -> Iterator[str]:
    yield from ("pytest", "--skill", folder)
    for student in settings.students:
        yield from ("--model", student)
    for agent in settings.agents if settings.agents != (CHAT,) else ():
        yield from ("--skill-agent", agent)
    if url := settings.student_url or settings.teacher_url:
        yield from ("--skill-base-url", url)


def _refine(folder: str, settings: TeachSettings) -> Iterator[str]:
    yield from ("pytest-upskill", "refine", folder)
    given = {
        "--model": (settings.teacher,) if settings.teacher != TeachSettings.teacher else (),
        "--base-url": (settings.teacher_url,) if settings.teacher_url else (),
        "--eval-model": settings.students if settings.students != TeachSettings.students else (),
        "--eval-base-url": (settings.student_url,) if settings.student_url else (),
        "--eval-agent": settings.agents if settings.agents != (CHAT,) else (),
    }
    for flag, values in given.items():
        for value in values:
            yield from (flag, value)
