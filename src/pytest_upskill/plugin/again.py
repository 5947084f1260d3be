"""Commands to paste: one that runs a test again, and those that go on after a run."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Final

import pytest

from ..errors import shown
from ..reports.terminal.closing_lines import command_lines
from ..settings import Gates, Settings
from ..trials.plan import PlannedCase
from .pytest_options import FLAGS, OPTIONS
from .run_settings import rerun_of

_WITH_VALUE: Final = {option.flag for option in OPTIONS.values() if option.kind.constant is None}
_WRITING: Final = (
    *("json_file", "html_file", "csv_file", "markdown_file", "benchmark_folder"),
    *("transcripts_folder", "record_file"),
)
# What a run of some tests is better without: it would overwrite reports of all, or decide gates
# by a few cases, or spend much more.
_OF_ALL: Final = (
    *(field.name for field in fields(Gates)),
    *("accept", "fresh", "matrix", "ablate"),
    *_WRITING,
)
_LF: Final = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first")
_OTHER_VALUES: Final = ("--junitxml", "--junit-xml", "-k", "-m")
_PAGE: Final = "skills.html"


def what_to_do(item: pytest.Item, page: str, width: int | None = None) -> list[str]:
    """The last lines of a failure; ``width`` is None if they may have any length."""
    words = rerun_of(item.config).words(item.nodeid)
    room = sys.maxsize if width is None else width
    again = command_lines("To run it again: ", words, room)
    return [*again, *([f"In the page: {page}"] if page else [])]


def link_to(test: PlannedCase, settings: Settings) -> str:
    """Where the HTML page has a test, once it is written."""
    if not settings.html_file:
        return ""
    file = shown(settings.html_file)
    if test.should_trigger is not None:  # queries have no rows of their own
        return file
    from ..reports.html.case_data import case_anchor

    return f"{file}#{case_anchor(test.skill, test.case, test.label)}"


def same(config: pytest.Config, *more: str) -> list[str]:
    """The same command, which finds the answers of this run in the cache."""
    return ["pytest", *_without(_args(config), {FLAGS["fresh"]}), *more]


def only_failures(config: pytest.Config) -> list[str]:
    """The tests that failed, with more of their answers."""
    left_out = {*_LF, *(FLAGS[setting] for setting in _OF_ALL), "--no-summary", "--junitxml"}
    kept = _without(_args(config), {*left_out, "--junit-xml"})
    loud = [word for word in kept if word == "--verbose" or _is_short(word, "v")]
    kept = [word for word in kept if word not in loud and not _is_quiet(word)]
    return ["pytest", "--lf", "-vv" if loud else "-v", *kept]


def with_page(config: pytest.Config) -> list[str]:
    """The same as a page; what was accepted is not accepted again."""
    return [*_without(same(config), {FLAGS["accept"]}), FLAGS["html_file"], _PAGE]


def listing(config: pytest.Config) -> list[str]:
    """What there is to select, if nothing was."""
    return [*_without(same(config), {"-k", "-m"}), "--collect-only", "-q"]


def accepting(config: pytest.Config) -> list[str]:
    return same(config, FLAGS["accept"])


def _args(config: pytest.Config) -> list[str]:
    return [str(word) for word in config.invocation_params.args]


def _without(args: Iterable[str], flags: Collection[str]) -> list[str]:
    return [word for flag, words in _grouped(args) if flag not in flags for word in words]


def _grouped(args: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each option with its value, by its flag; other words by themselves."""
    rest = iter(args)
    for word in rest:
        flag, equals, _ = word.partition("=")
        takes = flag in _WITH_VALUE or flag in _OTHER_VALUES
        if takes and not equals and (following := next(rest, None)) is not None:
            yield flag, (word, following)
        else:
            yield flag, (word,)


def _is_quiet(word: str) -> bool:
    return word == "--quiet" or _is_short(word, "q")


def _is_short(word: str, letter: str) -> bool:
    return word.startswith("-") and set(word[1:]) == {letter}
