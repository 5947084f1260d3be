"""What axe-core finds on a page that not everybody can use."""

import os
from functools import cache
from pathlib import Path

import pytest

from .browser import Page

_FILE = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"
_FOUND = """axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
  violations.flatMap((rule) => rule.nodes.map(
    (node) => `${rule.id}: ${node.target}: ${node.failureSummary}`)))"""


@cache
def _source() -> str:
    if _FILE.is_file():
        return _FILE.read_text("utf-8")
    reason = "no axe-core: npm install --prefix build/axe axe-core"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def violations(page: Page) -> list[str]:
    """Each with its rule, the element and what to do."""
    if page.js("typeof axe") == "undefined":
        page.run(_source())
    found: list[str] = page.js(_FOUND)
    return found
