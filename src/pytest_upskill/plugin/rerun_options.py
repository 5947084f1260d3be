"""Which options of a run shape the answers and grades of its tests."""

import os
from pathlib import Path
from typing import Final

import pytest

from .._util.credentials import masked_words
from ..results.rerun import Rerun
from .options import AGENT, MODEL, OPTIONS

# Not those that choose tests, write files, limit or judge the whole run.
_OF_A_TEST: Final = frozenset(
    {"base_url", "runs", "tests_file", "sandbox", "image", "with_skills", "noise", "trigger_runs"}
    | {"max_turns", "allow_network", "baseline", "references", "against", "max_output", "timeout"}
    | {"replay_file", "judge", "score", "case_threshold", "allow_code"}
)
_OF_PYTEST: Final = {"-c": "inifilename", "--rootdir": "rootdir", "-o": "override_ini"}


def rerun_of(config: pytest.Config) -> Rerun:
    """Only what the command line has: the ini file applies to the next run as well."""
    options = [
        word
        for option in OPTIONS
        if option.setting in _OF_A_TEST
        for word in option.words_of(config)
    ]
    for flag, name in _OF_PYTEST.items():
        given = getattr(config.option, name, None) or ()
        for value in [given] if isinstance(given, str | Path) else given:
            options += [flag, str(value)]
    root = os.path.relpath(config.rootpath, config.invocation_params.dir)
    return Rerun(
        tuple(masked_words(options)),
        tuple(masked_words([*MODEL.words_of(config), *AGENT.words_of(config)])),
        "" if root == os.curdir else Path(root).as_posix(),
    )
