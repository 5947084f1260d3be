"""Commands that a run suggests: itself again, with something added or left out."""

import os
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from .._util.keys import masked_words
from ..errors import shown
from .pytest_options import FLAGS, OPTIONS, cli_words

if TYPE_CHECKING:
    from ..results.run import Rerun

_WITH_VALUE: Final = {
    option.flag for option in OPTIONS.values() if option.kind.constant is None
} | {"--junitxml", "--junit-xml", "-k", "-m", "-o", "--override-ini"}
# Not for a part of the tests: these write reports of all of them, decide gates or
# spend more.
_OF_ALL: Final = {
    option.flag for option in OPTIONS.values() if option.group in ("gates", "reports")
} | {FLAGS["record_file"], FLAGS["fresh"], "--junitxml", "--junit-xml"}
_LF: Final = {"--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first"}
_QUIET: Final = {"-q", "-qq", "--quiet", "--no-summary"}
_VERBOSE: Final = {"-v", "-vv", "-vvv", "--verbose"}


def same_command(
    config: pytest.Config, *options: str, without: Collection[str] = ()
) -> list[str]:
    """The same command, which finds the answers of this run in the cache."""
    words = _remove(_args(config), {FLAGS["fresh"], *without})
    return ["pytest", *words, *options]


def only_failures(config: pytest.Config) -> list[str]:
    """Show the failed tests again, with more of their answers; empty if there is no
    more to show. Without the cache these are all tests.
    """
    args = _args(config)
    words = ["-vv" if _VERBOSE.intersection(args) else "-v"]
    if config.pluginmanager.hasplugin("lfplugin"):
        words.insert(0, "--lf")
    words += _remove(args, _OF_ALL | _LF | _QUIET | _VERBOSE)
    return [] if set(words) <= set(args) else ["pytest", *words]


def listing(config: pytest.Config) -> list[str]:
    """List what can be selected, if nothing was; of a file, if a case of it was
    named.
    """
    words = same_command(config, without={"-k", "-m"})
    files = dict.fromkeys(word.partition("::")[0] for word in words)
    return [*files, "--collect-only", "-q"]


def recording(config: pytest.Config, file: Path | None) -> list[str]:
    """Record the file that this run replays."""
    options = (FLAGS["record_file"], shown(file or Path()))
    return same_command(config, *options, without={FLAGS["replay_file"]})


def _args(config: pytest.Config) -> list[str]:
    return [str(word) for word in config.invocation_params.args]


def _remove(args: Iterable[str], flags: Collection[str]) -> list[str]:
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


def rerun_of(config: pytest.Config) -> "Rerun":
    """Only what the command line has: the ini file applies to the next run as well."""
    from ..results.run import Rerun

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
