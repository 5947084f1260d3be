"""Commands that a run suggests: itself again, with something added or left out."""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from .._util.keys import masked_words
from .._util.texts import plain
from ..errors import shown
from ..results.run import Rerun
from .pytest_options import FLAGS, OPTIONS, cli_words

_WITH_VALUE: Final = {
    option.flag for option in OPTIONS.values() if option.kind.constant is None
} | {"--junitxml", "--junit-xml", "-k", "-m", "-o", "--override-ini"}
# Not for a part of the tests: these write reports of all of them, decide gates or
# spend more.
_OF_ALL: Final = {
    option.flag for option in OPTIONS.values() if option.group in ("gates", "reports")
} | {FLAGS["record_file"], FLAGS["fresh"], "--junitxml", "--junit-xml"}
_LF: Final = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first")
_PAGE: Final = "skills.html"


def same_command(config: pytest.Config, *options: str) -> list[str]:
    """The same command, which finds the answers of this run in the cache."""
    return ["pytest", *_without(_args(config), {FLAGS["fresh"]}), *options]


def with_more_time(config: pytest.Config, seconds: float) -> list[str]:
    """The same command, in which a call may take twice as long."""
    words = _without(same_command(config), {FLAGS["timeout"]})
    return [*words, FLAGS["timeout"], plain(2 * seconds)]


def only_failures(config: pytest.Config) -> list[str]:
    """Show the failed tests again, with more of their answers; empty if there is no
    more to show. Without the cache these are all tests.
    """
    args = _args(config)
    words = _without(args, {*_OF_ALL, *_LF, "--no-summary"})
    verbose = [word for word in words if word == "--verbose" or _is_short(word, "v")]
    words = [word for word in words if word not in verbose and not _is_quiet(word)]
    words.insert(0, "-vv" if verbose else "-v")
    if config.pluginmanager.hasplugin("lfplugin"):
        words.insert(0, "--lf")
    return [] if set(words) <= set(args) else ["pytest", *words]


def with_page(config: pytest.Config) -> list[str]:
    """Write the same as a page, without accepting again."""
    words = _without(same_command(config), {FLAGS["accept"]})
    return [*words, FLAGS["html_file"], _PAGE]


def listing(config: pytest.Config) -> list[str]:
    """List what can be selected, if nothing was; of a file, if a case of it was
    named.
    """
    words = _without(same_command(config), {"-k", "-m"})
    files = dict.fromkeys(word.partition("::")[0] for word in words)
    return [*files, "--collect-only", "-q"]


def accepting(config: pytest.Config, *, fresh: bool = False) -> list[str]:
    """Accept these answers, or ``fresh`` ones."""
    words = same_command(config, FLAGS["accept"])
    if fresh:
        words.append(FLAGS["fresh"])
    return words


def recording(config: pytest.Config, file: Path | None) -> list[str]:
    """Record the file that this run replays."""
    words = _without(_args(config), {FLAGS["replay_file"]})
    return ["pytest", *words, FLAGS["record_file"], shown(file or Path())]


def opener(environ: Mapping[str, str]) -> str:
    """The command that opens a file in a browser; empty if there is none, as in CI."""
    if environ.get("CI"):
        return ""
    if sys.platform in ("darwin", "win32"):
        return "open" if sys.platform == "darwin" else "start"
    shows = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    return "xdg-open" if shows and shutil.which("xdg-open") else ""


def _args(config: pytest.Config) -> list[str]:
    return [str(word) for word in config.invocation_params.args]


def _without(args: Iterable[str], flags: Collection[str]) -> list[str]:
    """The words without these options and their values."""
    kept = []
    words = iter(args)
    for word in words:
        flag, equals, _ = word.partition("=")
        group = [word]
        if flag in _WITH_VALUE and not equals:
            group += islice(words, 1)
        if flag not in flags:
            kept += group
    return kept


def _is_quiet(word: str) -> bool:
    return word == "--quiet" or _is_short(word, "q")


def _is_short(word: str, letter: str) -> bool:
    return word.startswith("-") and set(word[1:]) == {letter}


# Options that shape the answers and grades of a test; not those that choose tests,
# write files, limit or judge the whole run.
_OF_A_TEST: Final = (
    "base_url",
    "runs",
    "tests_file",
    "login",
    "sandbox",
    "image",
    "with_skills",
    "noise",
    "max_turns",
    "allow_network",
    "baseline",
    "aa",
    "references",
    "against",
    "max_output",
    "timeout",
    "concurrency",
    "replay_file",
    "judge",
    "score",
    "allow_code",
)
_OF_PYTEST: Final = {"-c": "inifilename", "--rootdir": "rootdir", "-o": "override_ini"}


def rerun_of(config: pytest.Config) -> Rerun:
    """Only what the command line has: the ini file applies to the next run as well."""
    options = cli_words(config, *_OF_A_TEST)
    for flag, name in _OF_PYTEST.items():
        value = getattr(config.option, name, None) or ()
        for text in [value] if isinstance(value, str | Path) else value:
            options += [flag, str(text)]

    models = [*cli_words(config, "models"), *cli_words(config, "agents")]
    replay = []
    if recorded := cli_words(config, "record_file"):
        replay = [FLAGS["replay_file"], *recorded[1:]]
    root = os.path.relpath(config.rootpath, config.invocation_params.dir)
    return Rerun(
        options=tuple(masked_words(options)),
        models=tuple(masked_words(models)),
        root="" if root == os.curdir else Path(root).as_posix(),
        replay=tuple(masked_words(replay)),
    )
