"""The tables of the documentation that are made from the code."""

import re
from collections import Counter
from pathlib import Path

import pytest

import make_reference
from pytest_upskill.checks.skill_meta_schema import schema_of_cases
from pytest_upskill.cli.command_table import COMMANDS
from pytest_upskill.plugin.pytest_options import FLAGS, OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    page for page in sorted(DOCS.rglob("*.md")) if "<!-- reference:" in page.read_text()
]


def test_the_tables_of_all_pages_are_up_to_date() -> None:
    texts = {page.name: page.read_text() for page in PAGES}
    old = [
        name for name, text in texts.items() if make_reference.with_tables(text) != text
    ]
    assert old == [], "run `make reference`"


def test_the_schema_of_results_is_up_to_date() -> None:
    text = (DOCS / make_reference.RESULTS_SCHEMA).read_text()
    assert text == make_reference.results_schema_text(), "run `make reference`"


def test_every_option_is_in_one_table() -> None:
    words = make_reference.words_of((DOCS / "options.md").read_text(), "options")
    assert Counter(words) == Counter(FLAGS.values()), (
        "name it in a table of docs/options.md"
    )


def test_a_row_has_the_key_the_default_and_the_page_of_an_option() -> None:
    (row,) = make_reference.options(["--skill-noise"])[2:]
    names = "| [`--skill-noise N`](triggers.md#among-many-skills)<br>`skill_noise` |"
    assert row.startswith(f"{names} Also install N unrelated skills ")
    assert row.endswith(" | 0 |")


def test_the_help_of_an_option_names_its_default() -> None:
    named = re.compile(r"default: [^)]+\)")
    with_default = [option for option in OPTIONS.values() if option.default_words]
    assert [one.flag for one in with_default if not named.search(one.help_text())] == []


def test_every_key_of_a_file_of_cases_is_explained() -> None:
    pages = "".join(
        (DOCS / name).read_text() for name in ("cases.md", "checks.md", "agents.md")
    )
    schema = schema_of_cases()
    forms = [schema, *schema["$defs"].values()]
    keys = {key for form in forms for key in form.get("properties", {})}
    assert {
        key for key in keys if not re.search(rf"\b{re.escape(key.strip('$'))}\b", pages)
    } == set()


def test_every_command_has_a_line_and_an_example() -> None:
    page = (DOCS / "commands.md").read_text()
    assert [one.name for one in COMMANDS if f"| `{one.example}` |" not in page] == []


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(make_reference.ReferenceError, match="no option"):
        make_reference.with_tables(
            "<!-- reference: options --skill-nothing -->\n<!-- end -->"
        )
