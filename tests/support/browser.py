"""A page in a real browser, the same for Chromium and Firefox.

Each browser has a module of its own, which is driven by its own protocol,
without a driver.
"""

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

PATIENCE = 50.0  # seconds before a single step fails, and before the whole test does
# Of every piece of text that can be seen: its contrast with what is behind it.
CONTRASTS = """(() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((value) => value / 255)
      .map((value) =>
        value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.disabled
      || element.tagName === "SCRIPT"
      || element.closest("button:disabled, title, desc, noscript, option")) continue;
    const { fill, color } = getComputedStyle(element);
    const both = [light(element.closest("svg") ? fill : color), light(behind(element))];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    const name = `${element.tagName}.${element.getAttribute("class")}`;
    found.push([ratio, name, element.textContent]);
  }
  return found;
})()"""


def installed(browser: str, *programs: str) -> str:
    """The path of a browser. Without one, tests are skipped; in CI they fail."""
    found = next(filter(None, map(shutil.which, programs)), None)
    if found and os.name == "posix":
        return found
    reason = f"no {browser}: install Debian's package {programs[0]}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class Page(ABC):
    """A tab, with the ``problems`` of the page in it and its ``requests``,
    but for the page.

    Files that a page offers are saved in ``downloads``.
    """

    def __init__(self, downloads: Path) -> None:
        self.downloads = downloads
        self.problems: list[str] = []
        self.requests: list[str] = []

    def requested(self, address: str) -> None:
        """What an address holds itself is not fetched."""
        if not address.startswith(("data:", "blob:")):
            self.requests.append(address)

    def downloaded(self, name: str) -> Path:
        """A file that the page offers, when it is there as a whole."""
        file = self.downloads / name
        deadline = monotonic() + PATIENCE
        while (
            not file.is_file()
            or not file.stat().st_size
            or any(self.downloads.glob("*.part"))
        ):
            assert monotonic() < deadline, f"never saved: {name}"
            self.js("new Promise(resolve => setTimeout(resolve, 20))")
        return file

    @abstractmethod
    def navigate(self, address: str) -> None: ...

    @abstractmethod
    def js(self, expression: str) -> Any:
        """The value of an expression; of a promise, what it brings."""

    @abstractmethod
    def run(self, script: str) -> None:
        """Run statements in the page, whatever its policy says."""

    @abstractmethod
    def click_at(self, x: float, y: float) -> None: ...

    @abstractmethod
    def press(self, key: str) -> None:
        """A key by its name or its letter, perhaps after modifiers: ``Shift+Tab``."""

    @abstractmethod
    def type(self, text: str) -> None: ...

    @abstractmethod
    def resize(self, width: int, height: int) -> None: ...

    @abstractmethod
    def screenshot(self, file: Path, *, top: float = 0, height: float = 2500) -> None:
        """Save a picture of the page, from ``top`` and at most ``height`` pixels."""

    @abstractmethod
    def close(self) -> None: ...

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a page and wait for its script."""
        self.navigate("about:blank")
        self.wait("location.href === 'about:blank'")
        self.problems.clear()
        self.requests.clear()
        self.navigate(file.as_uri() + fragment)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")
        self.wait("document.documentElement.dataset.ready === 'yes'")
        self.settle()

    def wait(self, expression: str) -> None:
        deadline = monotonic() + PATIENCE
        while not self.js(f"Boolean({expression})"):
            assert monotonic() < deadline, f"still false: {expression}"
            self.js("new Promise(resolve => setTimeout(resolve, 10))")

    def texts(self, selector: str) -> list[str]:
        """The text of the visible elements."""
        found: list[str] = self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})].filter(element =>"
            " element.checkVisibility()).map(element => element.innerText)"
        )
        return found

    def wait_for(self, selector: str, *texts: str) -> None:
        """Wait until the visible elements have these texts."""
        deadline = monotonic() + PATIENCE
        while (found := self.texts(selector)) != list(texts):
            assert monotonic() < deadline, f"{selector}: still {found}"
            self.js("new Promise(resolve => setTimeout(resolve, 10))")

    def size(self, width: int, height: int = 900) -> None:
        """Change the size of the window, and wait until the page is laid out for it."""
        self.resize(width, height)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn what has changed, and acted on it."""
        self.js(
            "new Promise(resolve => requestAnimationFrame("
            "() => requestAnimationFrame(() => setTimeout(resolve))))"
        )

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """The position of each element, in pixels."""
        found: list[dict[str, float]] = self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map(element => element.getBoundingClientRect().toJSON())"
        )
        return found

    def assert_quiet(self) -> None:
        """Assert that nothing was logged and that nothing but the
        file itself was requested.
        """
        self.js("0")  # what happened until now has been told when this is answered
        assert self.problems == [], self.problems
        assert self.requests == [], self.requests

    def click(self, selector: str) -> None:
        """Click the middle of the first matching element."""
        x, y = self.js(
            "(element => { element.scrollIntoView({block: 'center'}); "
            "const box = element.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        self.click_at(x, y)


def split_keys(key: str) -> tuple[Sequence[str], str]:
    """The modifiers, and the key itself."""
    *modifiers, last = key.split("+") if len(key) > 1 else [key]
    return modifiers, last
