"""The browsers of these tests notice what they are to notice."""

from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from support.axe import violations
from support.browser import Page
from support.chromium import chromium
from support.firefox import Firefox
from support.firefox import firefox as firefox_path


@pytest.mark.parametrize(
    ("path", "name"), [(chromium, "Chromium"), (firefox_path, "Firefox")]
)
def test_without_a_browser_ci_fails_and_a_developer_skips(
    path: Callable[[], str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match=f"no {name}: "):
        path()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"no {name}: "):
        path()


def opened(page: Page, folder: Path, body: str, policy: str = "") -> None:
    meta = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        if policy
        else ""
    )
    file = folder / "page.html"
    ready = "<script>document.documentElement.dataset.ready = 'yes'</script>"
    file.write_text(
        f"<!doctype html>{meta}<title>t</title>{body}{ready}", encoding="utf-8"
    )
    page.open(file)


@pytest.mark.parametrize(
    ("body", "policy", "found"),
    [
        ("<script>console.error('loud')</script>", "", "loud"),
        ("<script>throw new Error('thrown')</script>", "", "thrown"),
        (
            "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>",
            "img-src 'none'",
            "Content Security Policy",
        ),
    ],
)
def test_problems_are_noticed(
    page: Page, tmp_path: Path, body: str, policy: str, found: str
) -> None:
    opened(page, tmp_path, body, policy)
    with pytest.raises(AssertionError):
        page.assert_quiet()
    assert [problem for problem in page.problems if found in problem]


def test_requests_are_noticed(page: Page, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        opened(
            page, tmp_path, f"<img src='http://127.0.0.1:{server.server_port}/spy.png'>"
        )
        page.js("0")
        server.shutdown()
    assert [url for url in page.requests if url.endswith("/spy.png")]


@pytest.mark.nightly
def test_keys_clicks_and_typing_arrive(page: Page, tmp_path: Path) -> None:
    opened(
        page,
        tmp_path,
        "<input id=a><button id=b>b</button><script>window.keys ="
        " [];addEventListener('keydown', (event) => keys.push([event.key,"
        " event.shiftKey]));b.onclick = () => keys.push(['click', false])</script>",
    )
    page.click("#a")
    page.type("é x")
    page.press("Shift+Tab")
    page.press("j")
    page.press("?")
    page.press("ArrowDown")
    page.click("#b")
    assert page.js("a.value") == "é x"
    told = page.js("keys")
    pressed = [key for key, _ in told if len(key) > 1 or key in "j?"]
    assert [key for key in pressed if key != "Shift"] == [
        "Tab",
        "j",
        "?",
        "ArrowDown",
        "click",
    ]
    assert ["Tab", True] in told


@pytest.mark.nightly
def test_a_page_behind_another_takes_keys(firefox: Firefox, tmp_path: Path) -> None:
    page = firefox.new_page()
    opened(page, tmp_path, "<button id=b onclick='window.clicked = true'>b</button>")
    with closing(page), closing(firefox.new_page()):
        page.js("b.focus()")
        page.press("Enter")
        assert page.js("window.clicked")


@pytest.mark.nightly
def test_what_not_everybody_can_use_is_found(page: Page, tmp_path: Path) -> None:
    opened(
        page,
        tmp_path,
        "<p style='color: #ccc; background: #fff'>pale<img src='data:,'>",
    )
    assert {"color-contrast", "html-has-lang", "image-alt"} <= {
        rule.partition(":")[0] for rule in violations(page)
    }
