"""The report of pytest, without which no run of it has passed.

Code of an agent that tests import can end the process with any exit status. So a plugin
in it writes at its end how many tests there were, below a word that it took before
that code ran.
"""

import re
import secrets
from pathlib import Path
from typing import Final

from .._util.files import read_file
from ..agents.sandboxes.sandbox import Sandbox

FOLDER: Final = "/tmp/upskill-report"
_PLUGIN: Final = Path(__file__).parent / "inside" / "upskill_report.py"
_MOST_BYTES: Final = 1000
_RUNS_PYTEST: Final = re.compile(
    r"""(?: ^ | [;&|(!] | \s-m | \b(?:run|uvx)\s [^;&|\n]*? )  # where programs stand
    \s* (?: \w+=\S*\s+ )*  # variables
    (?<!--with\ ) (?<!-w\ ) (?: [^\s=]*/ )? py\.?test (?= $ | [\s;&|)] )""",
    re.VERBOSE | re.MULTILINE,
)
_AS_MODULE: Final = re.compile(r"\s-m\s+pytest\b")


class PytestReport:
    """What the first pytest in a sandbox reports of its end."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._word = secrets.token_hex(16)

    async def prepare(self, commands: str) -> dict[str, str]:
        """The variables by which pytest loads the plugin, which PYTHONPATH must lead
        to.
        """
        plugin = read_file(_PLUGIN)
        await self._sandbox.write(f"{FOLDER}/{_PLUGIN.name}", plugin)
        await self._sandbox.write(f"{FOLDER}/word", self._word.encode())
        variables = {"PYTEST_PLUGINS": _PLUGIN.stem}
        if _AS_MODULE.search(commands):
            variables["PYTHONSAFEPATH"] = "1"  # no pytest.py of the agent's
        return variables

    async def is_begun(self) -> bool:
        """Whether a pytest took the word."""
        return await self._read("word") != [self._word]

    async def problem(self, status: int | None) -> str:
        """Why pytest has not ended with this status, None is any; empty if it has."""
        word, *more = await self._read("report")
        if word != self._word:
            return "pytest did not report its end: what it ran ended it, or replaced it"
        if status is None:
            return ""

        reported, problem = more
        if reported != str(status):
            return f"pytest reported exit {reported}, not {status}"
        return f"pytest reported that {problem}" if problem else ""

    async def _read(self, name: str) -> list[str]:
        """The lines of a file, which may be written by anybody."""
        try:
            data = await self._sandbox.read(f"{FOLDER}/{name}", _MOST_BYTES)
        except OSError:
            return [""]
        return data.decode("utf-8", "replace").split("\n")


def runs_pytest(commands: str) -> bool:
    """Whether pytest is among some lines for a shell."""
    return _RUNS_PYTEST.search(commands.replace("\\\n", " ")) is not None
