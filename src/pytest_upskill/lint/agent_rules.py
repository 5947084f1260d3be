"""Rules for checks of agents: can they pass, and do they give the answer away?"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from .._util.json_forms import Location
from .._util.texts import guess
from ..agents.loop_tools import TOOLS
from ..checks import AnyCheck, walk
from ..checks.check import quoted
from ..checks.workspace import matches
from ..skills.case import Case
from ..skills.folder import installed_files
from ..trials.task import start_files
from .finding import Level

_LOADER: Final = "skill"  # our agent's tool that loads a skill
_TOOLS: Final = tuple(tool.name for tool in TOOLS)
_OF_TOOLS: Final = ("tools_used", "tool_order")
_OF_FILES: Final = {"references_read": "read", "scripts_run": "run"}


class Found(NamedTuple):
    """A mistake in a check, at its path in the case."""

    level: Level
    code: str
    place: Location
    message: str
    hint: str


class Asked(NamedTuple):
    """A check as written; ``wanted`` is False inside ``not``."""

    place: Location
    name: str
    argument: Any
    wanted: bool


def agent_findings(
    case: Case, checks: Sequence[AnyCheck], asked: Iterable[Asked], folder: Path
) -> Iterator[Found]:
    """``folder`` is the skill's."""
    for one in asked:
        yield from _of_check(case, one, folder)
    required = [check.kind for check in walk(check for check in checks if check.required)]
    if required and all(kind.of_skill for kind in required):
        message = f"{case.id}: nothing is asked of the baseline, so it always passes"
        hint = "Also check what the answer says or which files there are."
        yield Found("warning", "baseline-passes", (), message, hint)


def _of_check(case: Case, asked: Asked, folder: Path) -> Iterator[Found]:
    texts = asked.argument if isinstance(asked.argument, list) else [asked.argument]
    if asked.name in _OF_TOOLS and asked.wanted:
        yield from _of_tools(case, asked, texts)
    elif asked.name in _OF_FILES and asked.wanted:
        files = installed_files(folder)
        for path in texts:
            if path.removeprefix("./") not in files:
                what = f"{case.id}: no answer passes: {quoted(path)} is not a file of the skill"
                hint = f"Name a file that can be {_OF_FILES[asked.name]}, relative to the skill."
                near = guess(path, list(files))
                yield Found("error", "check-impossible", asked.place, what + near, hint)
    elif asked.name == "unchanged" and not case.setup:
        start = [file.path for file in start_files(case)]
        for pattern in texts:
            if not any(matches(path, pattern.removeprefix("./")) for path in start):
                what = (
                    f"{case.id}: no answer passes: the workspace starts without {quoted(pattern)}"
                )
                hint = "Name a file of the case: context.files or workspace."
                yield Found(
                    "error", "check-impossible", asked.place, what + guess(pattern, start), hint
                )
    elif asked.name in ("files", "command"):
        installed = installed_files(folder)
        for path in _files_named(asked.argument):
            if path.removeprefix("./") in installed:
                what = f"{case.id}: {quoted(path)} is part of the skill, so an agent may read it"
                hint = "Move it below evals/; here it is left out only if SKILL.md doesn't name it."
                yield Found("warning", "expected-in-skill", asked.place, what, hint)


def _of_tools(case: Case, asked: Asked, names: Sequence[str]) -> Iterator[Found]:
    for name in names:
        if name.casefold() == _LOADER:
            what = f"{case.id}: the baseline has no tool {quoted(name)}, so it always fails"
            hint = 'Use "skill_activated": true.'
            yield Found("warning", "tool-unknown", asked.place, what, hint)
        elif name.casefold() not in _TOOLS:
            what = f"{case.id}: the agent loop has no tool {quoted(name)}{guess(name, _TOOLS)}"
            hint = f"It has {', '.join(_TOOLS)}. Ignore this if the case is for another agent."
            yield Found("warning", "tool-unknown", asked.place, what, hint)


def _files_named(argument: Any) -> Iterator[str]:
    """Files of the skill that a check compares with, or adds."""
    if isinstance(argument, list):
        for one in argument:
            yield from _files_named(one)
    elif isinstance(argument, dict):
        for form in [argument, *argument.values()]:
            if isinstance(form, dict) and isinstance(form.get("equals_file"), str):
                yield form["equals_file"]
        hidden = argument.get("hidden_files")
        for given in hidden.values() if isinstance(hidden, dict) else ():
            if isinstance(given, dict) and isinstance(given.get("file"), str):
                yield given["file"]
