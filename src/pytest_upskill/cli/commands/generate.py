"""``pytest-upskill generate``: write a skill and its cases from a task,
a trace or a skill.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..._util.keys import shown_command
from ..._util.texts import counted, duration, harmless
from ...errors import InputError, shown
from ...options import PYTEST, options_of
from ...reports.terminal.layout import cut
from ...settings import Settings
from ...skills.folder import SKILL_NAMES
from ...teach.outcome import Taught
from ...teach.teach_settings import TeachSettings, command_words
from ...teach.workflow import write_skill
from ..output import ask
from ..project import config_here
from .teach_commands import add_teach_arguments, run_teaching, teach_settings

_PREVIEWED: Final = 12  # lines
_WORTH_CUTTING: Final = 3  # lines; cutting fewer saves no space


def add_generate_arguments(parser: argparse.ArgumentParser) -> None:
    groups = add_teach_arguments(parser, "generate")
    groups["runs and attempts"].add_argument(
        "--no-eval",
        action="store_true",
        help="write a draft and cases, and measure nothing",
    )


def run_generate(args: argparse.Namespace) -> tuple[str, int]:
    unmeasured = {"students": ()} if args.no_eval else {}
    config = config_here()
    if not args.task and _is_of_skill(args):
        command = shown_command(
            command_words("refine", shown(args.source), teach_settings(args, config))
        )
        hint = (
            f"Say in words what to change, or improve the skill by its cases: {command}"
        )
        raise InputError("TASK", "must not be empty", hint)
    settings = teach_settings(args, config, **unmeasured)
    measured = teach_settings(args, config)
    # Who may need another key than students
    chosen = measured.teacher != TeachSettings.teacher
    if args.no_eval and chosen and measured.students == TeachSettings.students:
        measured = replace(measured, students=(measured.teacher,))

    def ending(taught: Taught, width: int) -> Iterator[str]:
        return ending_lines(taught, measured, width)

    return run_teaching(
        args,
        lambda context: write_skill(settings, context),
        ending,
        skills=config.skills_dir,
        in_place=_may_change(args),
    )


def _may_change(args: argparse.Namespace) -> bool:
    """Whether a skill may be improved in place; asked for on a terminal."""
    if args.force or args.yes:
        return True
    if not _is_of_skill(args) or args.output or args.name or not sys.stdin.isatty():
        return False
    return ask(
        sys.stderr, f"Improve {shown(args.source)} in place? The old version is kept."
    )


def _is_of_skill(args: argparse.Namespace) -> bool:
    """Whether the task is to change a skill."""
    source: Path | None = args.source
    return source is not None and (source.is_dir() or source.name in SKILL_NAMES)


def preview_lines(text: str, width: int) -> Iterator[str]:
    """The first lines of a SKILL.md, whatever is in it."""
    lines = [
        line.expandtabs(4).rstrip() for line in harmless(text).rstrip().split("\n")
    ]
    fits = len(lines) < _PREVIEWED + _WORTH_CUTTING
    for line in lines if fits else lines[:_PREVIEWED]:
        yield cut(f"  | {line}".rstrip(), width, "…")
    if not fits:
        yield cut(f"  [… {counted(len(lines) - _PREVIEWED, 'more line')}]", width, "…")


def ending_lines(taught: Taught, settings: TeachSettings, width: int) -> Iterator[str]:
    """A preview and what to do next; why a skill was not saved is
    the last line without it.
    """
    if not taught.folder:
        return
    yield ""
    yield f"{SKILL_NAMES[0]}, {counted(taught.best.draft.tokens, 'token')}:"
    yield from preview_lines(taught.best.draft.text, width)
    yield f"Took {duration(taught.seconds)}."
    yield "Next:"
    yield from _next_commands(taught, settings, str(Path(shown(taught.folder))))


def _next_commands(
    taught: Taught, settings: TeachSettings, folder: str
) -> Iterator[str]:
    """Commands with the models of this run, first of all that which helps most."""
    test = f"  test it:     {shown_command(_test_command(folder, settings))}"
    refine = (
        f"  improve it:  {shown_command(command_words('refine', folder, settings))}"
    )
    if taught.best.learning and not (taught.helps and taught.succeeded):
        yield from (refine, test)
    else:
        yield from (test, refine)


def _test_command(folder: str, settings: TeachSettings) -> list[str]:
    options = options_of(PYTEST, Settings)
    words = ["pytest", "--skill", folder, *options["models"].words(settings.students)]
    if settings.agents != TeachSettings.agents:
        words += options["agents"].words(settings.agents)
    if url := settings.student_url or settings.teacher_url:
        words += options["base_url"].words(url)
    return words
