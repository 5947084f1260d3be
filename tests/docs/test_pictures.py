"""The pictures in the documentation."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

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
    named = {
        name for page in pages for name in re.findall(r"\(pictures/([^)]+)\)", page)
    }
    assert "docs/pictures/run.svg)" in (PICTURES.parents[1] / "README.md").read_text()
    there = {
        file.name for file in PICTURES.iterdir() if file.suffix in (".svg", ".png")
    }
    assert named == there


def test_the_run_of_the_readme_is_small_still_and_needs_nothing_else() -> None:
    text = (PICTURES / "run.svg").read_text()
    assert len(text) < 50_000
    assert not re.findall(
        r"<script|<image|<style|<animate|(?:href|src)=|url\(|@import", text
    )


def test_the_picture_of_the_concepts_has_a_text_alternative_and_dark_colours() -> None:
    text = (PICTURES / "concepts.svg").read_text()
    drawn = ElementTree.fromstring(text)
    (told,) = drawn.findall("{*}desc")
    assert (
        f"![{told.text}](pictures/concepts.svg)"
        in (PICTURES.parent / "concepts.md").read_text()
    )
    assert "prefers-color-scheme: dark" in text
    assert not re.findall(r"<script|<image|(?:href|src)=|@import", text)
