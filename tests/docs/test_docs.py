"""The examples in the documentation can be read, and its links lead somewhere."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import site_hooks
from pytest_upskill.features.judge.agreement import load_labels
from pytest_upskill.features.queries.catalogue import EXAMPLE as ROUTES
from pytest_upskill.features.queries.catalogue import Catalogue, load_routes
from pytest_upskill.features.queries.suite import load as load_triggers
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.prices import parse_prices
from pytest_upskill.models.providers import resolve
from pytest_upskill.models.scripted import load_script
from pytest_upskill.skills.loaded_cases import all_cases
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.documentation import PAGES, ROOT, blocks, without_blocks
from support.kit import write_skill


def test_the_costs_of_many_trials_are_those_that_were_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from trial_costs import table

    assert table() in (ROOT / "docs/scale.md").read_text()


def test_json_examples_load(tmp_path: Path) -> None:
    seen = 0
    (tmp_path / "assets").mkdir()
    (tmp_path / "fixtures/march").mkdir(parents=True)
    (tmp_path / "assets/orders.csv").write_text("1042;late\n")
    for page, text in blocks("json"):
        file = tmp_path / "example.json"
        file.write_text(text)
        if page == "models.md":
            load_script(resolve(ModelName(f"scripted:{file}"), {}))
        elif '"passed"' in text:
            assert load_labels(file)
        elif '"should_trigger"' in text:
            set_file = tmp_path / "evals/triggers.json"
            set_file.parent.mkdir(exist_ok=True)
            set_file.write_text(text)
            assert len(all_cases(load_triggers(tmp_path, set_file))) == 2
        elif '"expected_skill"' in text and page == "studies.md":
            assert text.strip() == ROUTES
            folders = [write_skill(tmp_path / name, []) for name in ("docx", "pdf")]
            catalogue = Catalogue.of(
                load_skill(folder / "SKILL.md") for folder in folders
            )
            assert len(load_routes(file, catalogue).routes) == 3
        else:
            assert load_cases(file).require_all()
        seen += 1
    assert seen >= 4


def test_lint_page_lists_every_code() -> None:
    package = ROOT / "src/pytest_upskill"
    files = [
        *package.glob("lint/*.py"),
        *package.glob("features/*/lint.py"),
        *package.glob("features/*/rules.py"),
        *(package / f"skills/{n}.py" for n in ("skill", "frontmatter")),
    ]
    source = "".join(file.read_text() for file in files)
    given = set(
        re.findall(
            r'"((?:skill|cases|reference|check|no|any|empty|near|few|expected|baseline|tool|trigger|listing|evals)-[a-z-]+|leak|example)"',
            source,
        )
    )
    page = (ROOT / "docs/lint.md").read_text()
    assert given == set(re.findall(r"^\| `(\w[a-z-]+)` \|", page, re.M))


def test_example_prices_parse() -> None:
    written = [
        tomllib.loads(text)["tool"]["pytest"]["ini_options"]
        for _, text in blocks("toml")
    ]
    assert [
        len(parse_prices(keys["skill_prices"]))
        for keys in written
        if "skill_prices" in keys
    ]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), re.M)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_links_between_pages_lead_somewhere() -> None:
    wrong = []
    for file in PAGES:
        for name, anchor in re.findall(
            r"\]\(([^)#:]*)(?:#([^)]+))?\)", file.read_text()
        ):
            target = file.parent / name if name else file
            if not target.is_file() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{file.relative_to(ROOT)}: {name}#{anchor}")
    assert wrong == []


def test_a_page_has_one_title_and_begins_with_a_sentence() -> None:
    wrong = []
    for file in PAGES:
        title, first = file.read_text().split("\n\n")[:2]
        titles = re.findall("^# ", without_blocks(file), re.M)
        begins_with_a_sentence = re.match(r"[A-Za-z`\[][^|]*[.:?]", first)
        if len(titles) != 1 or not title.startswith("# ") or not begins_with_a_sentence:
            wrong.append(str(file.relative_to(ROOT)))
    assert wrong == []


def test_links_out_of_docs_become_links_of_the_site() -> None:
    text = (
        "[a](../CHANGELOG.md#x) [b](../examples/harbour-manifest/SKILL.md)"
        " [c](cases.md) [d](no)"
    )
    assert (
        site_hooks.with_site_links(text, "docs/agents.md") == "[a](changes.md#x)"
        f" [b]({site_hooks.SOURCE}examples/harbour-manifest/SKILL.md) "
        "[c](cases.md) [d](no)"
    )
    assert (
        site_hooks.with_site_links("[a](docs/ci.md#gitlab)", "CONTRIBUTING.md")
        == "[a](ci.md#gitlab)"
    )


@pytest.mark.parametrize(
    "name", ["wick", "conventional-commits", "kernel-builder-cuda-kernels"]
)
def test_bundled_skills_ask_fair_questions(name: str) -> None:
    cases = load_cases(ROOT / "skills" / name / "skill_meta.json").require_all()
    assert len(cases) >= 8
    for case in cases:
        asked = json.dumps([case.input, case.files], ensure_ascii=False).casefold()
        leaked = [
            text for text in case.expected["contains"] if text.casefold() in asked
        ]
        assert not leaked, f"{case.id}: the question contains {leaked}"
