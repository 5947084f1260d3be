"""What generate, cases and refine have in common: options, consent, the screen, the result."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

from .._util.texts import dollars
from ..errors import HOW_TO_GO_ON, SettingsError, shown
from ..models.prices import parse_prices
from ..skills.upskill_config import UpskillConfig, read_config
from ..teach.estimate import Estimate
from ..teach.outcome import Taught, report_lines, taught_data
from ..teach.progress_lines import Screen
from ..teach.teach_settings import DEFAULT_STUDENT, DEFAULT_TEACHER, Lesson
from ..teach.workflow import Finished, How, NotAgreed
from .output import ask, painter, tell, write
from .project import ini_lines

_DEFAULT_WIDTH: Final = 80


def describe(parser: argparse.ArgumentParser, usage: str, options: str) -> None:
    """Options told together: with a line for each of them the help would not fit on a screen."""
    parser.usage = f"%(prog)s {usage} [options]"
    parser.description = f"{parser.description}\n\n{options}"
    for action in parser._actions:
        action.help = argparse.SUPPRESS


def add_teaching_arguments(parser: argparse.ArgumentParser) -> None:

    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, help=argparse.SUPPRESS, **more)

    add("-m", "--model")
    add("--base-url")
    add("--eval-model", action="append", default=[])
    add("--eval-base-url")
    add("--test-model", "--test-gen-model", dest="test_model")
    add("--judge")
    add("--runs", type=int)
    add("--max-output", type=int)
    add("--max-cost", type=float)
    add("--yes", "-y", action="store_true")
    add("--resume", action="store_true")
    add("--json", action="store_true")


def add_loop_arguments(parser: argparse.ArgumentParser) -> None:
    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, help=argparse.SUPPRESS, **more)

    add("--adversary")
    add("--attempts", type=int)
    add("--target", type=float)
    add("--holdout", type=float)
    add("--max-skill-tokens", type=int)


def lesson_of(given: argparse.Namespace, task: str, config: UpskillConfig) -> Lesson:
    """What the options, and where they say nothing upskill.config.yaml, amount to."""
    wished = {
        "author": given.test_model or config.test_model,
        "judge": given.judge,
        "runs": given.runs,
        "max_output": given.max_output,
        "max_cost": given.max_cost,
        "adversary": getattr(given, "adversary", None),
        "attempts": getattr(given, "attempts", None),
        "target": getattr(given, "target", None),
        "holdout": getattr(given, "holdout", None),
        "max_skill_tokens": getattr(given, "max_skill_tokens", None),
        "cases": getattr(given, "cases", None),
        "source": getattr(given, "source", None),
        "tool": getattr(given, "tool", None),
        "name": getattr(given, "name", None),
    }
    values: dict[str, Any] = {key: value for key, value in wished.items() if value is not None}
    return Lesson(
        task,
        examples=tuple(getattr(given, "example", ())),
        teacher=given.model or config.teacher or DEFAULT_TEACHER,
        teacher_url=given.base_url,
        students=tuple(given.eval_model) or config.eval_models or (DEFAULT_STUDENT,),
        student_url=given.eval_base_url,
        **values,
    )


def teach(given: argparse.Namespace, run: Callable[[How], Taught], **how: Any) -> tuple[str, int]:
    """Run a lesson in front of whoever called, and tell what came of it."""
    stream = sys.stderr if given.json else sys.stdout
    width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    live = stream.isatty() and os.environ.get("TERM") != "dumb"

    screen = Screen(
        partial(tell, stream), width=width, live=live, paint=painter(stream, os.environ)
    )
    consent = _Consent(given.yes, screen, stream)
    try:
        taught = run(
            How(
                screen=screen,
                agree=consent,
                resume=given.resume,
                only_unfinished=True,
                prices=parse_prices(ini_lines(Path.cwd(), "skill_prices")),
                **how,
            )
        )
    except Finished as finished:
        screen.line(f"This lesson is finished: saved in {shown(finished.folder)}")
        if given.json:
            write(json.dumps({"schema": 1, "folder": str(finished.folder), "finished": True}))
        return "", 0
    except NotAgreed:
        screen.line("Nothing was asked.")
        return "", 1
    except KeyboardInterrupt:
        screen.drop()
        if not consent.given:
            raise
        raise KeyboardInterrupt(HOW_TO_GO_ON) from None
    told = report_lines(taught, width)
    for line in [*([""] if told else []), *told, *result_lines(taught)]:
        screen.line(line)
    if given.json:
        write(json.dumps(taught_data(taught), indent=2, ensure_ascii=False))
    return "", status_of(taught)


@dataclass
class _Consent:
    """Asks whether to go on, unless that is said already or costs nothing."""

    yes: bool
    screen: Screen
    stream: TextIO
    given: bool = False

    def __call__(self, guess: Estimate) -> bool:
        self.screen.line(f"This takes {guess}.")
        if guess.remark:
            self.screen.line(guess.remark)
        self.given = guess.free or self.yes or self._ask(guess)
        return self.given

    def _ask(self, guess: Estimate) -> bool:
        if not (sys.stdin.isatty() and self.stream.isatty()):
            raise SettingsError(
                "--yes", f"nobody is here to ask whether {guess} are fine", "Add --yes to go on."
            )
        return ask(self.stream, "Go on?")


def result_lines(taught: Taught) -> list[str]:
    cost = f"   (cost {dollars(taught.cost)})" if taught.cost else ""
    lines = [f"The skill as it was is kept in {shown(taught.kept)}"] if taught.kept else []
    if taught.unsaved:
        lines += f"{taught.unsaved}{cost}".splitlines()
    elif taught.folder:
        path = shown(taught.folder.absolute())
        lines.append(f"Saved to {path if path.startswith('/') else f'./{path}'}{cost}")
    else:
        lines.append(f"The skill is left as it is.{cost}")
    return lines


def status_of(taught: Taught) -> int:
    """1 if the skill helps nobody, or could not be saved, or measured for want of money."""
    if taught.unsaved:
        return 1
    if not taught.learning:
        return 1 if taught.best.problem else 0
    return 0 if taught.helps else 1


def config_here() -> UpskillConfig:
    return read_config(Path.cwd(), os.environ)
