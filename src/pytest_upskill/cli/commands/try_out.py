"""``pytest-upskill try``: test a skill once with what is at hand,
and write nothing to the project.

It is a run of pytest in a temporary folder: with no ini file, no history, and a store
of its own in the user's cache.
"""

import argparse
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ... import NextStep
from ..._util.files import user_cache
from ..._util.keys import shown_command
from ..._util.texts import counted, duration, harmless, one_line
from ...checks import checked_suite, rubric_of
from ...engine.store import FILE_NAME, FOLDER
from ...errors import InputError, shown
from ...measure.estimate import ANSWER, QUESTION, Calls, Estimate, estimate_calls
from ...models.prices import FREE, PriceOf
from ...skills.example_cases import example_cases, example_file
from ...skills.folder import CASES_NAME, SCHEMA_NAME, TOOL_FOLDERS, skill_file
from ...skills.skill import load_skill
from ...skills.suites.reading import read_suites
from ...teach.teach_models import TeachModels
from ...teach.teach_run import Declined, TeachContext
from ...teach.teach_settings import TeachSettings, command_words
from ...teach.workflow import add_cases
from ...trials.records import RECORDS_PROPERTY, Record, load_records
from ..first_model import FirstModel, first_model, named_model
from ..output import ask, terminal_width, write
from ..project import find_one_skill
from ..shared_steps import Consent, prices_here, progress_screen

_NEW_CASES: Final = 3
_TWO_MINUTES: Final = 110.0  # seconds, without starting and grading
# Of the embedded model on two cores: seconds for both answers of a case,
# tokens read in a second.
_ANSWERS: Final = 6.0
_READS: Final = 30.0
_SHOWN: Final = 240  # characters of a question or an answer
_SET_KEY: Final = "Set a key, such as ANTHROPIC_API_KEY, and run this again."
_TITLES: Final = {"baseline": "without", "skill": "with"}


def add_try_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill",
        nargs="?",
        default=".",
        metavar="SKILL",
        help=(
            "a skill: its folder, its SKILL.md, or its name in skills_dir (default:"
            " here)"
        ),
    )
    parser.add_argument(
        "-m", "--model", metavar="NAME", help="a model, in place of what is found"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="spend without asking")


def run_try(args: argparse.Namespace) -> tuple[str, int]:
    file = find_one_skill(args.skill, os.environ, "try")
    is_ready = read_suites(file.parent).has_cases
    model = named_model(args.model) if args.model else None
    model = model or first_model(os.environ, writes_cases=not is_ready)
    writes = not is_ready and not model.is_embedded
    if not is_ready and not writes:
        _require_examples(file)
        model = model if args.model else first_model(os.environ)
    if model.is_embedded and _are_judged(file.parent, all):
        problem = "its cases need a judge, and the embedded model is none"
        raise InputError(shown(file.parent), problem, _SET_KEY)
    write(f"Model: {model.name}{' (free)' if model.free else ''}, {model.reason}.")
    settings = _teacher(model)
    with tempfile.TemporaryDirectory(prefix="upskill-try-") as name:
        root = Path(name)
        _keep_answers(root)
        try:
            if is_ready:
                folder = _linked(file.parent, root)
            elif writes:
                write(f"No cases yet: {model.name} writes {_NEW_CASES} for this run.")
                folder = _with_cases(args, file, settings, model, root)
            else:
                write("No cases yet: sentences of the skill are asked for, with a gap.")
                folder = _with_examples(file, root)
            status, tested = _run(args, folder, model, root, may_ask=not writes)
        except Declined:
            return "", 1
    if not tested:
        return "", status
    commands = [["pytest-upskill", "init", args.skill], ["pytest"]]
    title = "To run it with pytest:"
    if not is_ready:
        title = "These cases were for one run. To write some that stay, and run them:"
    if writes:
        commands.insert(0, command_words("cases", args.skill, settings))
    return (
        "\n".join(["", title, *(f"  {shown_command(words)}" for words in commands)]),
        status,
    )


def _teacher(model: FirstModel) -> TeachSettings:
    return TeachSettings(
        "",
        teacher=model.name,
        teacher_url=model.base_url,
        students=(),
        cases=_NEW_CASES,
    )


def _keep_answers(root: Path) -> None:
    """Let a store in the user's cache be that of the run:
    the same questions are free again.
    """
    kept, stored = user_cache() / "try.sqlite", root / FOLDER / FILE_NAME
    with suppress(OSError):  # then they are not kept
        kept.parent.mkdir(parents=True, exist_ok=True)
        stored.parent.mkdir()
        stored.symlink_to(kept)


def _linked(folder: Path, root: Path) -> Path:
    """The skill at the same place below ``root`` as below the current folder,
    for node ids.
    """
    here = Path(os.path.realpath(Path.cwd()))
    below = folder.relative_to(here) if folder.is_relative_to(here) else Path()
    link = root / (below if below.parts else folder.name)
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder)
    except OSError:  # Windows may not allow it
        return folder
    return link


def _require_examples(file: Path) -> None:
    """InputError if a skill's text gives no question."""
    if all("skip" in case for case in example_cases(load_skill(file))):
        command = shown_command(["pytest-upskill", "init", shown(file.parent)])
        problem = "no cases, and no API key to have some written"
        raise InputError(
            shown(file.parent), problem, f"{_SET_KEY}\n  Or write cases: {command}"
        )


def _with_examples(file: Path, root: Path) -> Path:
    """A copy of the skill with the cases that init would write."""
    copy = _copied(file.parent, root)
    (copy / CASES_NAME).write_text(
        example_file(load_skill(file), SCHEMA_NAME), encoding="utf-8"
    )
    return copy


def _copied(folder: Path, root: Path) -> Path:
    copy = root / "skills" / folder.name
    shutil.copytree(
        folder, copy, symlinks=True, ignore=shutil.ignore_patterns(*TOOL_FOLDERS)
    )
    return copy


def _with_cases(
    args: argparse.Namespace,
    file: Path,
    settings: TeachSettings,
    model: FirstModel,
    root: Path,
) -> Path:
    """A copy of the skill with cases by the model; Declined if the user does not
    agree.
    """
    copy = _copied(file.parent, root)
    screen = progress_screen(sys.stdout)
    consent = Consent(args.yes or model.free or not _on_terminal(), screen, sys.stdout)
    opened = list[TeachModels]()

    def agree(estimate: Estimate) -> bool:
        """To all that is spent: the run that follows asks no more."""
        of_run = _estimate_of_run(file, model, opened[0].price_of)
        return consent(
            replace(
                estimate,
                calls=estimate.calls + of_run.calls,
                tokens=estimate.tokens + of_run.tokens,
                usd=estimate.usd + of_run.usd,
            )
        )

    context = TeachContext(
        root=root,
        screen=screen,
        agree=agree,
        opened=opened.append,
        prices={model.name: FREE} if model.free else prices_here(args),
        spell=args.spell,
    )
    add_cases(copy / file.name, settings, context, fewest=1)
    return copy


def _estimate_of_run(file: Path, model: FirstModel, price_of: PriceOf) -> Estimate:
    """Of both arms of the new cases, in each of which a judge may be asked, too."""
    tokens = load_skill(file).tokens
    calls = [
        Calls(model.name, _NEW_CASES, QUESTION + prompt, ANSWER)
        for prompt in (0, tokens, ANSWER, ANSWER)
    ]
    return estimate_calls(calls, price_of)


def _run(
    args: argparse.Namespace,
    folder: Path,
    model: FirstModel,
    root: Path,
    *,
    may_ask: bool,
) -> tuple[int, bool]:
    """The exit status, and whether a case has answers of both arms."""
    (root / "pytest.ini").write_text("[pytest]\nskill_history = false\n")
    words = [f"--skill={folder}", "--model", model.name, "-m", "not trigger"]
    words += ["--skill-base-url", model.base_url] if model.base_url else []
    words += ["-o", f"skill_prices={model.name} 0 0"] if model.base_url else []
    if not model.is_embedded and _are_judged(folder, any):
        words += [
            "--skill-judge",
            f"{model.agent}/{model.name}" if model.agent else model.name,
        ]
    words += ["--skill-agent", model.agent, "--skill-login"] if model.agent else []
    quiet = [
        "-c",
        "pytest.ini",
        "--no-header",
        "--tb=no",
        "-rfE",
        "-s",
        "-p",
        "no:cacheprovider",
    ]
    asks = may_ask and not (args.yes or model.free) and _on_terminal()
    most = None
    if model.is_embedded:
        most, each = cases_in_time(load_skill(skill_file(folder)).tokens)
        count = f"up to {counted(most, 'case')}"
        write(
            f"It is for trying out: {count}, about {duration(each)} each on two cores."
        )
    shows = ShownCase(asks=asks, most=most)
    with chdir(root):
        status = int(pytest.main([*quiet, *words], plugins=[shows]))
    if shows.declined:
        raise Declined
    return status, shows.has_shown


def cases_in_time(tokens: int) -> tuple[int, float]:
    """How many cases of a skill the embedded model answers within two minutes, at least
    one, and the seconds for each.
    """
    each = _ANSWERS + tokens / _READS
    return max(1, min(10, int(_TWO_MINUTES / each))), each


def _are_judged(folder: Path, quantify: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether ``any`` or ``all`` of a skill's cases have rubrics."""
    suite = read_suites(folder).cases
    try:
        loaded = checked_suite(suite) if suite else []
    except InputError:  # which the run reports
        return False
    cases = [case for of_file in loaded for case in of_file.cases]
    return bool(cases) and quantify(
        bool(rubric_of(checks).texts) for _, checks in cases
    )


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


class ShownCase:
    """A plugin of pytest: asks before the first call,
    and shows both arms of the first case.
    """

    def __init__(self, *, asks: bool, most: int | None = None) -> None:
        self.__name__ = "upskill-try"  # under which pytest knows it
        self._asks = asks
        self._most = most  # cases
        self._questions: dict[str, str] = {}
        self._reporter: Any = None
        self.has_shown = False
        self.declined = False

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        if self._most is not None and len(items) > self._most:
            config.hook.pytest_deselected(items=items[self._most :])
            del items[self._most :]

    @pytest.hookimpl(trylast=True)  # after the line on calls and cost
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        cases = {item.nodeid: getattr(item, "case", None) for item in session.items}
        self._questions = {nodeid: case.input for nodeid, case in cases.items() if case}
        self._reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if self._asks and self._questions and not ask(sys.stdout, "Continue?"):
            self.declined = True
            pytest.exit("not agreed", returncode=1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_upskill_next_step(self) -> NextStep:
        """None: the command ends with its own."""
        return NextStep([])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        dumped = dict(report.user_properties).get(RECORDS_PROPERTY)
        yield
        question = self._questions.get(report.nodeid)
        if dumped and question and not self.has_shown:
            lines = shown_lines(question, load_records(dumped))
            self.has_shown = bool(lines)
            for line in lines:
                self._reporter.write_line(line)


def shown_lines(question: str, records: Sequence[Record]) -> list[str]:
    """The question and the answers of both arms, in short; empty if one is missing."""
    answers = {
        record.arm: record for record in records if record.run == 1 and record.output
    }
    if not _TITLES.keys() <= answers.keys():
        return []
    texts = {"question": question}
    for arm, title in _TITLES.items():
        passed = answers[arm].outcome == "passed"
        texts[f"{title} the skill, {'right' if passed else 'wrong'}"] = (
            answers[arm].output or ""
        )
    return [
        line
        for title, text in texts.items()
        for line in (f"  {title}:", *_few_lines(harmless(text)))
    ]


def _few_lines(text: str) -> list[str]:
    short = one_line(text, _SHOWN)
    return [
        f"    {line}"
        for line in textwrap.wrap(short, terminal_width() - 4) or ["(empty)"]
    ]
