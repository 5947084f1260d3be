"""The README, which is also the page of the package."""

import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest

from make_reference import anchor_of
from support.documentation import blocks

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = "https://github.com/pytest-upskill/pytest-upskill"
SITE = "https://pytest-upskill.github.io/pytest-upskill/"
FILES = (
    f"{REPOSITORY}/blob/main/",
    "https://raw.githubusercontent.com/pytest-upskill/pytest-upskill/main/",
)


class Rendered(HTMLParser):
    """Its links and pictures, as a page shows them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses, self.pictures, self.shown = (
            list[str](),
            list[dict[str, str | None]](),
            "",
        )
        self.feed(cmarkgfm.github_flavored_markdown_to_html(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [given[key] or "" for key in ("href", "src") if key in given]
        if tag == "img":
            self.pictures.append(given)

    def handle_data(self, data: str) -> None:
        self.shown += data


PAGE = Rendered(README)


def missing(address: str) -> str:
    """What a link to this project lacks, if anything."""
    path, _, anchor = address.partition("#")
    for start in FILES:
        if path.startswith(start):
            file = ROOT / path.removeprefix(start)
            if not file.is_file():
                return f"no file {file}"
            headings = (
                re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.M)
                if anchor
                else []
            )
            return (
                ""
                if not anchor or anchor in map(anchor_of, headings)
                else f"no #{anchor}"
            )
    if path.startswith(SITE) and path != SITE:
        page = path.removeprefix(SITE).replace(".html", ".md")
        return "" if (ROOT / "docs" / page).is_file() else f"no page {page}"
    return ""


def test_the_first_link_and_the_picture_come_soon() -> None:
    before = README[: re.search(r"\]\(", README).start()]  # type: ignore[union-attr]
    assert before.count("\n") <= 60
    assert README.index("![") < README.index("\n## ")


def test_all_links_and_pictures_are_absolute() -> None:
    assert PAGE.addresses
    assert not [
        address for address in PAGE.addresses if not address.startswith("https://")
    ]


def test_links_to_this_project_lead_somewhere() -> None:
    addresses = sorted({*PAGE.addresses, *PROJECT["urls"].values()})
    assert [f"{one}: {missing(one)}" for one in addresses if missing(one)] == []


def test_a_link_that_leads_nowhere_would_be_found() -> None:
    assert missing(f"{FILES[0]}docs/nothing.md")
    assert missing(f"{FILES[0]}docs/options.md#nothing")
    assert missing(f"{FILES[0]}docs/options.md#agents") == ""
    assert missing(f"{SITE}nothing.html")


def test_it_renders_with_nothing_left_of_the_markup() -> None:
    assert not re.findall(r"!\[|\]\(|^```|^#+ ", PAGE.shown, re.M)
    (picture,) = PAGE.pictures
    assert len(picture["alt"] or "") > 40


def test_it_shows_the_demo_then_the_tests_then_ones_own_skill() -> None:
    commands = [text for page, text in blocks("console") if page == "README.md"]
    demo, own_skill, model = [text.splitlines() for text in commands]
    assert demo == [
        f"$ git clone {REPOSITORY}",
        "$ cd pytest-upskill",
        "$ make demo",
        "$ make test",
    ]
    assert own_skill[0] == f'$ pip install "pytest-upskill[local] @ git+{REPOSITORY}"'
    assert own_skill[-1] == "$ pytest"
    assert model[-1].endswith("--model haiku")
    assert README.count("\n") <= 90


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_the_demo_sets_everything_up_in_a_clone(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    command = ["make", "-C", str(folder), f"PYTHON={sys.executable}", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n✔ wick helps: +" in done.stdout


def test_it_is_the_page_of_the_package() -> None:
    assert PROJECT["readme"] == "README.md"
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(PROJECT["urls"])
