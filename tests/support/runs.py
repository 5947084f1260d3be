"""The one way to run pytest on skills in a test, and to look at what came of it.

Assert values (``run.summary``, ``run.records``, ``run.gate``), not sentences: those
belong to the tests of the renderers in ``tests/reports`` and to ``tests/golden``.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from support.loopback import LoopbackServer


@dataclass(frozen=True)
class SkillRun:
    """A finished run: what pytest tells of it, and what ``--skill-json`` has."""

    result: pytest.RunResult
    report: dict[str, Any]  # empty if none was written

    @property
    def status(self) -> int:
        return int(self.result.ret)

    @property
    def outcomes(self) -> dict[str, int]:
        """``{"passed": 2}``, as pytest counts them."""
        return self.result.parseoutcomes()

    @property
    def screen(self) -> str:
        return self.result.stdout.str() + self.result.stderr.str()

    @property
    def summary(self) -> dict[str, Any]:
        """The only row of the summary."""
        [row] = self.report["summary"]
        found: dict[str, Any] = row
        return found

    @property
    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.report["records"]
        return found

    def record(self, **wanted: object) -> dict[str, Any]:
        """The only record with these values: ``run.record(case="a", arm="skill")``."""
        [found] = [one for one in self.records if wanted.items() <= one.items()]
        return found

    @property
    def gate(self) -> dict[str, Any]:
        """``{"passed": …, "reasons": […]}``."""
        found: dict[str, Any] = self.report["gate"]
        return found

    @property
    def ending(self) -> list[str]:
        """What follows pytest's own last line, each line unwrapped."""
        return ending(self.result)


def run_skills(
    pytester: pytest.Pytester,
    model: str | LoopbackServer,
    *args: str,
    skill: str = "skills",
    subprocess: bool = False,
) -> SkillRun:
    """Test the folder ``skills``, which must end without a traceback.

    A server is asked as the model ``m``. With an empty ``skill``,
    only what ``args`` name runs.
    """
    address = (
        ["--model", model]
        if isinstance(model, str)
        else ["--model", "m", "--skill-base-url", f"{model.url}/v1"]
    )
    run = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
    file = pytester.path / "report.json"
    file.unlink(missing_ok=True)
    which = ["--skill", skill] if skill else []
    result = run(*which, *address, "--skill-json", str(file), *args)
    report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    finished = SkillRun(result, report)
    assert "Traceback" not in finished.screen
    assert "INTERNALERROR" not in finished.screen
    return finished


def ending(result: pytest.RunResult) -> list[str]:
    """What follows pytest's own last line, each line unwrapped."""
    lines = result.outlines
    last = max(n for n, line in enumerate(lines) if re.search(r" in \d+\.\d+s", line))
    text = "\n".join(line for line in lines[last + 1 :] if not line.startswith("!!"))
    text = re.sub(r"(?<! )\\\n(?! )", "", text)  # a word of a command that is too long
    return re.sub(r"( \\)?\n  ", " ", text).splitlines()
