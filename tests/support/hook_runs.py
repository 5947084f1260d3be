"""Runs of a skill in a project whose conftest.py has hooks,
and the examples of docs/extend.md.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.kit import write_script, write_skill

PAGE = (Path(__file__).parents[2] / "docs/extend.md").read_text()


def example(text: str) -> str:
    """The one example in Python that has this text in it."""
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M)
    (found,) = [block for block in blocks if text in block]
    return found


def run(
    pytester: pytest.Pytester,
    *args: str,
    case: Mapping[str, Any] | None = None,
    model: str = "",
) -> pytest.RunResult:
    """Test the skill ``gate``; whatever happens, there is no traceback."""
    if case or not (pytester.path / "skills/gate/SKILL.md").exists():
        write_skill(pytester.path / "skills/gate", [case] if case else None)
    model = model or write_script(pytester.path / "answers.json")
    args = ("--skill", "skills", "--model", model, "--skill-json", "r.json", *args)
    result = pytester.runpytest_inprocess(*args)
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return result


def run_case(
    pytester: pytest.Pytester, expected: Any, *args: str, **more: Any
) -> pytest.RunResult:
    """Test a skill with one case."""
    return run(pytester, *args, case={"input": "q", "expected": expected, **more})


def records(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text())["records"]
