"""Headless Chromium, driven over two pipes by its DevTools protocol, without a driver."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_PATIENCE = 60.0  # seconds before a single step fails
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # root can't have one; we only open our own pages
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
# Chromium expects its two pipes as file descriptors 3 and 4.
_LAUNCH = """
import os, sys
from fcntl import F_DUPFD, fcntl
ours = [fcntl(int(number), F_DUPFD, 10) for number in sys.argv[1:3]]
for number, pipe in zip((3, 4), ours):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {"Enter": (13, "\r"), " ": (32, " "), "Tab": (9, ""), "Escape": (27, ""), "/": (191, "/")}
# Of every piece of text that can be seen: its contrast with what is behind it.
CONTRASTS = """(() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
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
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.disabled || element.tagName === "SCRIPT"
      || element.closest("button:disabled, title, desc, noscript, option")) continue;
    const { fill, color } = getComputedStyle(element);
    const both = [light(element.closest("svg") ? fill : color), light(behind(element))];
    const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    found.push([ratio, `${element.tagName}.${element.getAttribute("class")}`, element.textContent]);
  }
  return found;
})()"""


def chromium() -> str:
    """The browser's path. Without one, tests are skipped; in CI they fail."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found and os.name == "posix":
        return found
    reason = "no Chromium: install Debian's package chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """A Chromium process and the pipes to it."""

    def __init__(self, profile: Path) -> None:
        command_read, self._command = os.pipe()
        self._reply, reply_write = os.pipe()
        theirs = (command_read, reply_write)
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, *map(str, theirs)]
        self._log = (profile / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            [*launch, chromium(), *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        for pipe in theirs:
            os.close(pipe)
        self._unread = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    def new_page(self) -> "Page":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        return page

    def call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        number = self.send(method, session, params)
        deadline = monotonic() + _PATIENCE
        while True:
            message = self._read(deadline, method)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message.get('error')}"
                result: dict[str, Any] = message["result"]
                return result
            if page := self._pages.get(message.get("sessionId", "")):
                page.happened(message.get("method", ""), message.get("params", {}))

    def send(self, method: str, session: str | None, params: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        data = json.dumps({**message, **({"sessionId": session} if session else {})})
        os.write(self._command, data.encode() + b"\0")
        return self._number

    def _read(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._reply], [], [], max(0.0, deadline - monotonic()))
            data = os.read(self._reply, 1 << 20) if ready else b""
            assert data, f"no reply from Chromium to {method}: see {self._log.name}"
            self._unread += data
        first, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def close(self) -> None:
        with suppress(OSError):
            self.send("Browser.close", None, {})
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._command, self._reply):
            os.close(pipe)
        self._log.close()


class Page:
    """A tab, with the ``problems`` and ``requests`` of the page in it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.problems: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def happened(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {params['message']}")
            handle = ("Page.handleJavaScriptDialog", self._session, {"accept": True})
            self._browser.send(*handle)
        elif event == "Runtime.exceptionThrown":
            self.problems.append(f"exception: {params['exceptionDetails']}")
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {params['entry']['text']}")
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(f"console: {params['args']}")

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a page and wait for its script."""
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.problems.clear()
        self.requests.clear()
        self.call("Page.navigate", url=file.as_uri() + fragment)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def open_without_script(self, file: Path) -> None:
        """Load a page with scripts disabled, in a new tab; ``wait`` needs scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=file.as_uri())
        deadline = monotonic() + _PATIENCE
        while self.js("location.protocol + document.readyState") != "file:complete":
            assert monotonic() < deadline, f"never loaded: {file}"

    def js(self, expression: str) -> Any:
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        deadline = monotonic() + _PATIENCE
        while not self.js(f"Boolean({expression})"):
            assert monotonic() < deadline, f"still false: {expression}"
            self.js("new Promise(resolve => setTimeout(resolve, 10))")

    def texts(self, selector: str) -> list[str]:
        """The text of the visible elements."""
        found: list[str] = self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".filter(element => element.checkVisibility()).map(element => element.innerText)"
        )
        return found

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """The position of each element, in pixels."""
        found: list[dict[str, float]] = self.js(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map(element => element.getBoundingClientRect().toJSON())"
        )
        return found

    def assert_quiet(self) -> None:
        """Assert that nothing was logged and that only the file itself was requested."""
        assert self.problems == []
        assert len(self.requests) == 1
        assert self.requests[0].startswith("file:")

    def click(self, selector: str) -> None:
        """Click the middle of the first matching element."""
        x, y = self.js(
            f"(element => {{ element.scrollIntoView({{block: 'center'}}); "
            "const box = element.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **where)

    def press(self, key: str) -> None:
        code, text = _KEYS[key]
        named = {"key": key, "windowsVirtualKeyCode": code}
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, **named, **typed)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if width < 600 else 1,
            mobile=width < 600,
        )

    def media(self, *, scheme: str = "light", kind: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def screenshot(self, file: Path, *, top: float = 0, height: float = 2500) -> None:
        """Save a picture of the page, from ``top`` and at most ``height`` pixels."""
        file.parent.mkdir(parents=True, exist_ok=True)
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        height = min(height, size["height"] - top)
        clip = {"x": 0, "y": top, "width": size["width"], "height": height, "scale": 1}
        shot = self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.close()
