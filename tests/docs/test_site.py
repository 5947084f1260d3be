"""The documentation site, as `make docs` builds it; the gate only builds it."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import site_hooks
from support.browser import Page
from support.chromium import ChromiumPage

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[2]
LOADED = {
    "script",
    "img",
    "iframe",
    "source",
    "video",
    "audio",
    "embed",
    "object",
    "use",
    "image",
}


class Parsed(HTMLParser):
    """What a page of the site refers to, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads, self.links, self.ids = list[str](), list[str](), set[str]()
        self.headings = 0
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if name := given.get("id"):
            self.ids.add(name)
        self.headings += tag == "h1"
        addresses = [
            given[key] or ""
            for key in ("src", "href", "data", "srcset")
            if key in given
        ]
        is_loaded = tag in LOADED or (tag == "link" and given.get("rel") != "canonical")
        (self.loads if is_loaded else self.links).extend(addresses)


def build(project: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command of `make docs`."""
    makefile = (ROOT / "Makefile").read_text()
    (words,) = re.findall(r"^docs:.*\n\t\$\(BIN\)/python (.*)$", makefile, re.M)
    command = [sys.executable, *words.split(), "--site-dir", str(folder)]
    # A proxy that nobody answers: the build needs no network.
    nowhere = {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    environ = {**os.environ, **nowhere}
    return subprocess.run(
        command, cwd=project, env=environ, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    made = build(ROOT, folder)
    assert made.returncode == 0, made.stderr
    return folder


def test_links_that_lead_nowhere_and_pages_outside_of_the_menu_fail(
    tmp_path: Path,
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/make_reference.py", "docs/site_hooks.py", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text("# Outside")
    config = (tmp_path / "mkdocs.yml").read_text()
    (tmp_path / "mkdocs.yml").write_text(
        config.partition("\nnav:")[0]
        + "\nnav: [README.md, changes.md, contributing.md]\n"
    )
    (tmp_path / "docs/README.md").write_text(
        "# A\n\n[1](#no) [2](no.md) [3](../no.py)\n"
    )
    (tmp_path / "docs/lost.md").write_text("# B\n")
    made = build(tmp_path, tmp_path / "site")
    assert made.returncode == 1
    for wrong in ("'#no'", "'no.md'", "'../no.py'", "lost.md"):
        assert wrong in made.stderr, made.stderr


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {page: Parsed(page) for page in sorted(site.rglob("*.html"))}


def test_pages_load_nothing_from_other_hosts(
    site: Path, pages: dict[Path, Parsed]
) -> None:
    loaded = {address for page in pages.values() for address in page.loads}
    assert not [address for address in loaded if urlsplit(address).netloc]
    styles = "".join(file.read_text("utf-8") for file in site.rglob("*.css"))
    assert not re.findall(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"']+""", styles)


def test_code_is_no_part_of_the_site(site: Path) -> None:
    assert not [file for file in site.rglob("*") if file.suffix in (".py", ".pyc")]


def test_every_link_leads_to_a_page_and_an_anchor(
    site: Path, pages: dict[Path, Parsed]
) -> None:
    wrong = []
    for page, parsed in pages.items():
        for address in parsed.links + parsed.loads:
            url = urlsplit(address)
            if url.netloc or url.scheme:
                continue
            base = site if page.name == "404.html" else page.parent
            path = unquote(url.path).removeprefix("/pytest-upskill/")
            target = (base / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(url.fragment)
            if not target.is_file() or (anchor and anchor not in pages[target].ids):
                wrong.append(f"{page.relative_to(site)}: {address}")
    assert not wrong


def test_links_to_the_source_lead_to_files(pages: dict[Path, Parsed]) -> None:
    links = {address for parsed in pages.values() for address in parsed.links}
    sources = {link for link in links if link.startswith(site_hooks.SOURCE)}
    assert sources
    for link in sources:
        assert (ROOT / urlsplit(link.removeprefix(site_hooks.SOURCE)).path).exists(), (
            link
        )


def test_every_page_has_one_title(site: Path, pages: dict[Path, Parsed]) -> None:
    titles = {
        page.relative_to(site).as_posix(): parsed.headings
        for page, parsed in pages.items()
    }
    assert {page: number for page, number in titles.items() if number != 1} == {}


def test_search_works_in_pages_opened_from_a_disk(site: Path, page: Page) -> None:
    page.navigate((site / "index.html").as_uri())
    page.wait("location.protocol === 'file:' && document.readyState === 'complete'")
    page.js("document.querySelector('.md-search__input').focus()")
    page.type("bubblewrap")
    page.wait(
        "document.querySelector('.md-search-result__link[href*=\"agents.html\"]')"
    )
    assert page.problems == []
    assert all(address.startswith("file:") for address in page.requests)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_on_phones_and_desktops(
    site: Path, page: ChromiumPage, width: int, scheme: str
) -> None:
    page.size(width)
    page.media(scheme=scheme)
    for name in ("index", "concepts", "reports", "options", "checks", "coming-from"):
        page.navigate((site / f"{name}.html").as_uri())
        page.wait(
            f"location.href.endsWith('{name}.html') && document.readyState ==="
            " 'complete'"
        )
        assert page.js("document.documentElement.scrollWidth <= innerWidth"), name
        page.screenshot(ROOT / f"build/screenshots/site-{name}-{width}-{scheme}.png")
