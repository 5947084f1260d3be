"""Headless Firefox, driven by WebDriver BiDi over its own web socket."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from websockets.sync.client import connect

from .browser import PATIENCE, Page, installed, split_keys

# Nothing is looked up, updated or reported; pages see a light theme.
_PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.download.alwaysOpenPanel": False,  # it would take the focus
    "browser.newtabpage.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "layout.css.prefers-color-scheme.content-override": 1,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "nimbus.rollouts.enabled": False,
    "services.settings.server": "data:,nothing",
    "toolkit.telemetry.enabled": False,
    "ui.prefersReducedMotion": 1,
    "ui.useOverlayScrollbars": 1,
}
_EVENTS = (
    "browsingContext.userPromptOpened",
    "log.entryAdded",
    "network.beforeRequestSent",
    "script.message",
)
# Firefox does not tell what a policy forbids as other problems.
_TELL_VIOLATIONS = """(tell) => addEventListener("securitypolicyviolation",
  ({ effectiveDirective: directive, blockedURI }) =>
    tell(`Content Security Policy: ${directive} ${blockedURI}`))"""
# The page may hear of keys and clicks only after Firefox said that all is done.
# A key that moves the focus out of the page, or a click beside it, is never heard of.
_LISTEN = """(kind, times) => {
  globalThis.heard = new Promise((done) => {
    addEventListener(kind, () => { times -= 1; if (times === 0) done(); },
      { capture: true });
    setTimeout(done, 10000);
  });
}"""
_KEYS = {
    "Enter": "\ue007",
    "Tab": "\ue004",
    "Escape": "\ue00c",
    "Backspace": "\ue003",
    "Home": "\ue011",
    "End": "\ue010",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Alt": "\ue00a",
    "Control": "\ue009",
    "Meta": "\ue03d",
    "Shift": "\ue008",
}


def firefox() -> str:
    return installed("Firefox", "firefox-esr", "firefox")


class Firefox:
    """A Firefox process and the socket to it."""

    def __init__(self, profile: Path) -> None:
        self.downloads = profile / "saved"
        self.downloads.mkdir()
        saving = {
            "browser.download.dir": str(self.downloads),
            "browser.download.folderList": 2,
        }
        known = _PREFERENCES | saving
        lines = [
            f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in known.items()
        ]
        (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        self._log = profile / "firefox.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(
                        firefox(),
                        "--headless",
                        "--no-remote",
                        "--remote-debugging-port=0",
                    ),
                    *("--profile", str(profile)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._number = 0
        self._pages: dict[str, FirefoxPage] = {}
        try:
            # With any limit, a page's picture may be too large. Pings draw
            # random numbers on a thread of their own, and Hypothesis takes
            # that for a test that does.
            address = f"{self._address()}/session"
            self._context = connect(address, max_size=None, ping_interval=None)
            self._socket = self._context.__enter__()
            self.call("session.new", capabilities={})
            self.call("session.subscribe", events=_EVENTS)
            channel = {"type": "channel", "value": {"channel": "policy"}}
            told = {"functionDeclaration": _TELL_VIOLATIONS, "arguments": [channel]}
            self.call("script.addPreloadScript", **told)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _address(self) -> str:
        deadline = monotonic() + PATIENCE
        while monotonic() < deadline and self._process.poll() is None:
            said = self._log.read_text("utf-8", "replace")
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)\n", said):
                return found[1]
        raise AssertionError(f"Firefox did not start: see {self._log}")

    def new_page(self) -> "FirefoxPage":
        context = self.call("browsingContext.create", type="tab")["context"]
        page = self._pages[context] = FirefoxPage(self, context)
        return page

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._socket.send(
            json.dumps({"id": number, "method": method, "params": params})
        )
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == number:
                assert message["type"] == "success", f"{method}: {message}"
                result: dict[str, Any] = message["result"]
                return result
            self._happened(message.get("method", ""), message.get("params", {}))

    def _happened(self, event: str, params: dict[str, Any]) -> None:
        context = params.get("context") or params.get("source", {}).get("context")
        if page := self._pages.get(context or ""):
            page.happened(event, params)

    def close(self) -> None:
        try:
            self.call("browser.close")
            self._process.wait(20)
        except Exception:  # it is only to be gone
            self._process.kill()
            self._process.wait()
        self._context.__exit__(*sys.exc_info())


class FirefoxPage(Page):
    def __init__(self, browser: Firefox, context: str) -> None:
        super().__init__(browser.downloads)
        self._browser, self._context = browser, context
        self._had_focus = False

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, context=self._context, **params)

    def happened(self, event: str, params: dict[str, Any]) -> None:
        if event == "network.beforeRequestSent":
            if not params.get("navigation"):
                self.requested(params["request"]["url"])
        elif event == "browsingContext.userPromptOpened":
            self.problems.append(f"dialog: {params['message']}")
        elif event == "script.message":
            self.problems.append(f"log: {params['data']['value']}")
        elif event == "log.entryAdded" and params["level"] in ("error", "warn"):
            self.problems.append(f"{params['type']}: {params.get('text')}")

    def navigate(self, address: str) -> None:
        self._had_focus = False
        self.call("browsingContext.navigate", url=address, wait="complete")

    def js(self, expression: str) -> Any:
        made = f"async () => JSON.stringify((await ({expression})) ?? null)"
        target = {"context": self._context}
        done = self._browser.call(
            "script.callFunction",
            functionDeclaration=made,
            target=target,
            awaitPromise=True,
        )
        assert done["type"] == "success", done
        return json.loads(done["result"]["value"])

    def run(self, script: str) -> None:
        target = {"context": self._context}
        done = self._browser.call(
            "script.evaluate", expression=script, target=target, awaitPromise=False
        )
        assert done["type"] == "success", done

    def click_at(self, x: float, y: float) -> None:
        move = {"type": "pointerMove", "x": int(x), "y": int(y)}
        press = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._act(
            {"type": "pointer", "id": "mouse", "actions": [move, *press]}, "click", 1
        )

    def press(self, key: str) -> None:
        modifiers, last = split_keys(key)
        keys = [_KEYS.get(one, one) for one in (*modifiers, last)]
        down = [{"type": "keyDown", "value": one} for one in keys]
        up = [{"type": "keyUp", "value": one} for one in reversed(keys)]
        self._act(
            {"type": "key", "id": "keys", "actions": [*down, *up]}, "keyup", len(up)
        )

    def type(self, text: str) -> None:
        kinds = ("keyDown", "keyUp")
        actions = [{"type": kind, "value": letter} for letter in text for kind in kinds]
        self._act({"type": "key", "id": "keys", "actions": actions}, "keyup", len(text))

    def _take_focus(self) -> None:
        """Let a new page have the focus: without it, it hears of keys,
        and nothing comes of them.

        Later, a key may move the focus out of the page.
        """
        deadline = monotonic() + PATIENCE
        while not self._had_focus:
            assert monotonic() < deadline, "the page never gets the focus"
            self.call("browsingContext.activate")
            self._had_focus = self.js("document.hasFocus()")

    def _act(self, actions: dict[str, Any], last: str, times: int) -> None:
        """Act, until the page has heard the last event so many times."""
        self._take_focus()
        aside = {"context": self._context, "sandbox": "acts"}
        values = [{"type": "string", "value": last}, {"type": "number", "value": times}]
        listen = {"functionDeclaration": _LISTEN, "arguments": values}
        self._browser.call(
            "script.callFunction", **listen, target=aside, awaitPromise=False
        )
        self.call("input.performActions", actions=[actions])
        heard = "globalThis.heard"  # gone with its page, if that was left
        self._browser.call(
            "script.evaluate", expression=heard, target=aside, awaitPromise=True
        )

    def resize(self, width: int, height: int) -> None:
        view = {"width": width, "height": height}
        self.call("browsingContext.setViewport", viewport=view)

    def screenshot(self, file: Path, *, top: float = 0, height: float = 2500) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        width, whole = self.js(
            "[document.documentElement.scrollWidth,"
            " document.documentElement.scrollHeight]"
        )
        clip = {
            "type": "box",
            "x": 0,
            "y": top,
            "width": width,
            "height": min(height, whole - top),
        }
        shot = self.call(
            "browsingContext.captureScreenshot", origin="document", clip=clip
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self.call("browsingContext.close")
