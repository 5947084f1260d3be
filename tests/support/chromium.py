"""Headless Chromium, driven over two pipes by its DevTools protocol."""

import base64
import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from .browser import PATIENCE, Page, installed, split_keys

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
    "--disable-ipc-flooding-protection",  # tests open hundreds of cases in a second
    # A page is never in the background, whatever other pages are open.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
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
_KEYS = {  # the virtual key code, and what is typed
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Home": (36, ""),
    "End": (35, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}


def chromium() -> str:
    return installed("Chromium", "chromium", "chromium-browser")


class Chromium:
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
        self._pages: dict[str, ChromiumPage] = {}
        self.downloads = profile / "saved"
        saving = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self.call("Browser.setDownloadBehavior", **saving)

    def new_page(self) -> "ChromiumPage":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        page = self._pages[session] = ChromiumPage(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        page.media()
        return page

    def call(
        self, method: str, session: str | None = None, /, **params: Any
    ) -> dict[str, Any]:
        number = self.send(method, session, params)
        deadline = monotonic() + PATIENCE
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
            ready, _, _ = select.select(
                [self._reply], [], [], max(0.0, deadline - monotonic())
            )
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


class ChromiumPage(Page):
    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        super().__init__(browser.downloads)
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def happened(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            if params["type"] != "Document":
                self.requested(params["request"]["url"])
        elif event == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {params['message']}")
            handle = ("Page.handleJavaScriptDialog", self._session, {"accept": True})
            self._browser.send(*handle)
        elif event == "Runtime.exceptionThrown":
            self.problems.append(f"exception: {params['exceptionDetails']}")
        elif event == "Log.entryAdded" and params["entry"]["level"] in (
            "error",
            "warning",
        ):
            self.problems.append(f"log: {params['entry']['text']}")
        elif event == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
        ):
            self.problems.append(f"console: {params['args']}")

    def navigate(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def open_without_script(self, file: Path) -> None:
        """Load a page with scripts disabled, in a new tab; ``wait`` needs scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.navigate(file.as_uri())
        deadline = monotonic() + PATIENCE
        while self.js("location.protocol + document.readyState") != "file:complete":
            assert monotonic() < deadline, f"never loaded: {file}"

    def js(self, expression: str) -> Any:
        done = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def run(self, script: str) -> None:
        done = self.call("Runtime.evaluate", expression=script)
        assert "exceptionDetails" not in done, done["exceptionDetails"]

    def click_at(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **where)

    def press(self, key: str) -> None:
        modifiers, last = split_keys(key)
        code, text = _KEYS.get(last) or (ord(last.upper()), last)
        held = sum(_MODIFIERS[modifier] for modifier in modifiers)
        named = {"key": last, "windowsVirtualKeyCode": code, "modifiers": held}
        for kind in ("keyDown", "keyUp"):
            typed = (
                {"text": text} if text and kind == "keyDown" and held in (0, 8) else {}
            )
            self.call("Input.dispatchKeyEvent", type=kind, **named, **typed)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def resize(self, width: int, height: int) -> None:
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
        file.parent.mkdir(parents=True, exist_ok=True)
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        height = min(height, size["height"] - top)
        clip = {"x": 0, "y": top, "width": size["width"], "height": height, "scale": 1}
        shot = self.call(
            "Page.captureScreenshot",
            format="png",
            clip=clip,
            captureBeyondViewport=True,
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
