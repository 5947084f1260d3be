"""The building blocks of pages: their policy, their scripts, packed data."""

import base64
import hashlib
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.html import html_report, shell
from pytest_upskill.reports.html.markup import packed, resource
from support.made import made_run
from support.pages import Elements, data_of


@pytest.mark.parametrize("script", [True, False])
def test_the_policy_allows_only_the_hashes_of_script_and_style(script: bool) -> None:
    page = html_report(made_run()) if script else shell("A title", "<p>Plain</p>")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    inlined = {
        "style-src": re.search(r"<style>(.*?)</style>", page, re.S),
        "script-src": re.search(r'<script type="module">(.*?)</script>', page, re.S),
    }
    for name, text in inlined.items():
        if text is None:
            assert rules[name] == "'none'"
        else:
            digest = hashlib.sha256(text[1].encode()).digest()
            assert rules[name] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_the_scripts_only_set_text_and_have_no_addresses() -> None:
    for name in ("diff.js", "case.js", "table.js"):
        text = resource(name)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|import\(|WebSocket", text)
    for name in ("page.css", "overview.css"):
        assert "url(" not in resource(name)
        assert "@import" not in resource(name)


@given(st.text(), st.text())
def test_any_text_is_packed_whole(answer: str, name: str) -> None:
    text = answer + "\ud800"
    page = shell(name, "", "", packed({"answer": text}))
    page.encode()
    assert data_of(page) == {"answer": text}
    assert Elements(page).texts.get("p") is None
