"""How our commands are run here: by uvx, if this process is,
since they are on no path then.
"""

import json
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_NAME: Final = "pytest-upskill"
_SOURCE: Final = "git+https://github.com/pytest-upskill/pytest-upskill"
_COMMANDS: Final = ("pytest", _NAME)
# Folders of uv's cache that have environments of one run.
_OF_UVX: Final = re.compile(r"(?:archive|builds|environments)-v\d+")


def install_command(extra: str) -> str:
    """The command that installs an optional part; no package index has it yet."""
    return f'pip install "{_NAME}[{extra}] @ {_SOURCE}"'


def launched(words: Iterable[str]) -> list[str]:
    """The words of a command, begun as the user can."""
    command = list(words)
    return [*_launcher(), *command] if command and command[0] in _COMMANDS else command


@cache
def _launcher() -> tuple[str, ...]:
    if not any(map(_OF_UVX.fullmatch, Path(sys.prefix).parts)):
        return ()
    from importlib.metadata import distribution

    has_local = find_spec("xllamacpp") is not None
    return launcher_of(
        distribution(_NAME).read_text("direct_url.json") or "", has_local=has_local
    )


def launcher_of(origin: str, *, has_local: bool) -> tuple[str, ...]:
    """``uvx --from …``; the origin is direct_url.json, of what came from no index."""
    requirement = f"{_NAME}[local]" if has_local else _NAME
    if origin:
        written = json.loads(origin)
        url, of_git = written["url"], written.get("vcs_info")
        revision = of_git and of_git.get("requested_revision")
        url = f"git+{url}" if of_git else url
        requirement += f" @ {url}@{revision}" if revision else f" @ {url}"
    return ("uvx", "--from", requirement)
