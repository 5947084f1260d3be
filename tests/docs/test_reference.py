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
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "<!-- reference:" in page.read_text()]


def test_the_tables_of_all_pages_are_up_to_date() -> None:
    texts = {page.name: page.read_text() for page in PAGES}
    old = [name for name, text in texts.items() if make_reference.with_tables(text) != text]
    assert old == [], "run `make reference`"


def test_the_schema_of_results_is_up_to_date() -> None:
    text = (DOCS / make_reference.RESULTS_SCHEMA).read_text()
    assert text == make_reference.results_schema_text(), "run `make reference`"


def test_every_option_is_in_one_table() -> None:
    words = make_reference.words_of((DOCS / "options.md").read_text(), "options")
    assert Counter(words) == Counter(FLAGS.values()), "name it in a table of docs/options.md"


def test_a_row_has_the_key_the_default_and_the_page_of_an_option() -> None:
    (row,) = make_reference.options(["--skill-runs"])[2:]
    assert row.startswith("| `--skill-runs N`<br>`skill_runs` | Ask every question N times; ")
    assert row.endswith(" See [Fewer runs](running.md#fewer-runs). | 1 |")


def test_the_help_of_an_option_names_its_default() -> None:
    named = re.compile(r"default: [^)]+\)")
    with_default = [option for option in OPTIONS.values() if option.default_words]
    assert [one.flag for one in with_default if not named.search(one.help_text())] == []


def test_every_check_is_in_one_table() -> None:
    words = make_reference.words_of((DOCS / "checks.md").read_text(), "checks")
    wanted = schema_of_cases()["$defs"]["Expected"]["properties"]
    assert Counter(words) == Counter(list(wanted)), "name it in a table of docs/checks.md"


def test_every_form_of_the_schema_has_a_section() -> None:
    page = (DOCS / "schema.md").read_text()
    explained = {*make_reference.words_of(page, "schema"), *make_reference.words_of(page, "keys")}
    assert explained == {"file", *schema_of_cases()["$defs"]} - {"Expected"}


def test_every_command_has_a_row_a_status_and_its_arguments() -> None:
    names = ("arguments", "commands", "exit-status")
    arguments, commands, statuses = ((DOCS / f"{name}.md").read_text() for name in names)
    for command in COMMANDS:
        section = arguments.partition(f"\n## {command.name}\n")[2].partition("\n## ")[0]
        assert command.example in section
        assert f"Exit status: {command.status}." in section
        assert f"| [`{command.name}`](" in commands
        assert f"| `{command.name}` | {command.status} |" in statuses


def test_a_row_of_an_argument_has_all_its_names_and_its_default() -> None:
    rows = make_reference.arguments([])
    assert "| `-n N`, `--limit N` | Maximum number of lines | 20, or all with `--json`, " in str(
        rows
    )


def test_a_value_is_told_in_words() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    told = make_reference.value_in_words
    assert told({"anyOf": [text, {"type": "array", "items": text}, {"type": "null"}]}) == (
        "text or list of texts"
    )
    assert told({"type": "object", "additionalProperties": number}) == "object of numbers"
    assert told({"enum": ["user", "assistant"]}) == '`"user"` or `"assistant"`'
    cases = {"type": "array", "items": {"$ref": "#/$defs/CaseForm"}}
    assert told(cases) == "list of [cases](schema.md#a-case)"
    assert told({}) == "anything"


@pytest.mark.parametrize(
    ("table", "word", "message"),
    [("options", "--skill-nothing", "no option"), ("checks", "contians", "no check")],
)
def test_what_is_not_there_is_an_error(table: str, word: str, message: str) -> None:
    with pytest.raises(make_reference.ReferenceError, match=message):
        make_reference.with_tables(f"<!-- reference: {table} {word} -->\n<!-- end -->")
