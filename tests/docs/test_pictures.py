"""The pictures in the documentation."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.chromium import ChromiumPage

PICTURES = Path(__file__).parents[2] / "docs/pictures"


@pytest.fixture
def terminal_svg(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(PICTURES)
    monkeypatch.delitem(sys.modules, "terminal_svg", raising=False)
    import terminal_svg

    return terminal_svg.terminal_svg


def test_terminal_output_becomes_coloured_text(terminal_svg: object) -> None:
    assert callable(terminal_svg)
    written = "one\r\n\x1b[32;1mtwo\x1b[0m   <three>\r\n"
    drawn = ElementTree.fromstring(terminal_svg(written, 80, "A & B"))
    texts = [element for element in drawn.iter() if element.tag.endswith("}text")]
    assert [element.text for element in texts] == ["one", "two", "<three>"]
    one, two, three = texts
    assert one.get("x") == two.get("x")
    assert float(three.get("x", 0)) - float(two.get("x", 0)) == pytest.approx(6 * 8.4)
    assert two.get("font-weight") == "bold"
    assert two.get("fill") != three.get("fill")


def test_pages_use_every_picture_and_no_other() -> None:
    pages = [page.read_text() for page in PICTURES.parent.glob("*.md")]
    named = {name for page in pages for name in re.findall(r"\(pictures/([^)]+)\)", page)}
    assert "docs/pictures/run.svg)" in (PICTURES.parents[1] / "README.md").read_text()
    there = {file.name for file in PICTURES.iterdir() if file.suffix in (".svg", ".png")}
    assert named == there


def test_an_animated_run_types_the_command_and_fills_the_row_of_dots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(PICTURES)
    import terminal_svg

    text = terminal_svg.animated_svg("$ pytest\r\nx.json ..  [100%]\r\nhelps\r\n", 80, "A run")
    drawn = ElementTree.fromstring(text)
    rows = [one for one in drawn.iter() if one.get("class") == "row"]
    assert [len(row.findall("{*}rect")) for row in rows] == [1, 1, 0]  # covers
    starts = [float(re.findall("[0-9.]+", row.get("style") or "")[0]) for row in rows]
    assert starts == sorted(set(starts))


def test_the_run_of_the_readme_is_small_and_needs_nothing_else() -> None:
    text = (PICTURES / "run.svg").read_text()
    assert len(text) < 200_000
    assert "prefers-reduced-motion: no-preference" in text
    assert not re.findall(r"<script|<image|(?:href|src)=|url\(|@import|infinite", text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert "from { opacity: 0 }" in style  # hidden by the animation only, and only before it


@pytest.mark.nightly
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_run_ends_on_a_readable_frame(page: ChromiumPage, motion: str) -> None:
    features = [{"name": "prefers-reduced-motion", "value": motion}]
    page.call("Emulation.setEmulatedMedia", media="", features=features)
    page.navigate((PICTURES / "run.svg").as_uri())
    page.wait("document.readyState === 'complete'")
    playing = page.js("document.getAnimations().length")
    assert (playing == 0) == (motion == "reduce")
    page.js("document.getAnimations().forEach((one) => one.finish())")
    opacities = "[...document.querySelectorAll('%s')].map((one) => getComputedStyle(one).opacity)"
    assert set(page.js(opacities % ".row")) == {"1"}
    assert set(page.js(opacities % ".cover")) == {"0"}


def test_the_picture_of_the_concepts_has_a_text_alternative_and_dark_colours() -> None:
    text = (PICTURES / "concepts.svg").read_text()
    drawn = ElementTree.fromstring(text)
    (told,) = drawn.findall("{*}desc")
    assert f"![{told.text}](pictures/concepts.svg)" in (PICTURES.parent / "concepts.md").read_text()
    assert "prefers-color-scheme: dark" in text
    assert not re.findall(r"<script|<image|(?:href|src)=|@import", text)
