"""Frontmatter as people really write it: what is read of it,
and which line is at fault.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.skills.frontmatter import Parsed, parse, with_description

GOOD = "name: gate\ndescription: About a gate.\n"
FIELDS = {"name": "gate", "description": "About a gate."}


def faults(parsed: Parsed) -> list[tuple[int, str]]:
    assert all(fault.hint for fault in parsed.faults)
    return [(fault.line, fault.code) for fault in parsed.faults]


def read(frontmatter: str) -> Parsed:
    return parse(f"---\n{frontmatter}---\nBody.\n")


def test_good_frontmatter() -> None:
    parsed = parse(f"---\n{GOOD}---\n\nBody.\n\n---\n\nMore.\n")
    assert parsed == Parsed(
        FIELDS,
        {"name": 2, "description": 3},
        "Body.\n\n---\n\nMore.",
        5,
        (),
        has_frontmatter=True,
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"\n\n---\n{GOOD}---\nBody.", 1, "text before the frontmatter"),
        (
            f"<!-- a\nb -->\n<!-- c -->\n---\n{GOOD}---\nBody.",
            1,
            "text before the frontmatter",
        ),
        (f"\ufeff---\n{GOOD}---\nBody.", 1, "a byte order mark before the frontmatter"),
        (f"-----\n{GOOD}---\nBody.", 1, "must start with '---'"),
        (f"---\n{GOOD}----\nBody.", 4, "must end with '---'"),
        (f"---\n{GOOD}...\nBody.", 4, "must end with '---'"),
        (f"---\n{GOOD} ---\nBody.", 4, "must end with '---'"),
        (f"{GOOD}---\nBody.", 1, "no '---' before the frontmatter"),
        (f"---\n{GOOD}\nBody.", 1, "frontmatter not closed"),
        (f"---\n{GOOD}# Not a comment\n\nBody.", 1, "frontmatter not closed"),
    ],
)
def test_misplaced_lines_around_it(text: str, line: int, message: str) -> None:
    parsed = parse(text)
    (fault,) = parsed.faults
    assert (fault.line, fault.code, fault.level) == (line, "skill-frontmatter", "error")
    assert message in fault.message
    assert parsed.fields == FIELDS
    assert parsed.body.endswith("Body.")
    assert "description" not in parsed.body
    lines = text.split("\n")
    assert parsed.body == "\n".join(lines[parsed.body_line - 1 :]).strip()


def test_rule_in_the_body_does_not_close_it() -> None:
    parsed = parse(f"---\n{GOOD}\n# Title\n\nProse text.\n\n---\n\nMore.\n")
    assert faults(parsed) == [(1, "skill-frontmatter")]
    assert parsed.fields == FIELDS
    assert parsed.body == "# Title\n\nProse text.\n\n---\n\nMore."


@pytest.mark.parametrize(
    "text",
    [
        "# Gates\n\nBody.",
        "Body.",
        "---\n\n# Gates\n\nA rule above, no frontmatter.\n\n---\n\nBody.",
        "---\n\n# Gates\n\nBody.",
        "---\njust words\n---\nBody.",
        "---\n- a list\n---\nBody.",
        "--- not a rule\nBody.",
        "```yaml\n---\nname: gate\n---\n```\nBody.",
        "name: a line of prose\n\nBody.",
    ],
)
def test_text_without_frontmatter_is_all_body(text: str) -> None:
    parsed = parse(f"{text}\n")
    assert (parsed.fields, parsed.body, parsed.body_line) == ({}, text, 1)
    assert faults(parsed) == [(1, "skill-frontmatter")]
    assert not parsed.has_frontmatter


@pytest.mark.parametrize("head", ["", "\n", "# only a comment\n"])
def test_empty_frontmatter_has_no_fields(head: str) -> None:
    parsed = read(head)
    assert (parsed.fields, parsed.body, parsed.faults) == ({}, "Body.", ())


@pytest.mark.parametrize(
    ("written", "description"),
    [
        ("Use when: you see a gate", "Use when: you see a gate"),
        ('Use when: it\'s a "gate"', 'Use when: it\'s a "gate"'),
        ("Use when: a\n  gate: is there\n", "Use when: a gate: is there"),
        ("Gates: open them # always", "Gates: open them # always"),
        ('"Gates" and doors', '"Gates" and doors'),
        ('"Gates', "Gates"),
        ("'it's a gate'", "it's a gate"),
        ("@gate", "@gate"),
        ("`gate`", "`gate`"),
        ("%gate", "%gate"),
        ("*gate*", "*gate*"),
        ("[gate] opens", "[gate] opens"),
        ("{gate}: opens", "{gate}: opens"),
        ("a\tgate: opens", "a\tgate: opens"),
        (">\n  Gates: yes\n   more\n  less", "Gates: yes\n more\nless"),
        ("|\n\tGates", "Gates"),
        ("Gates: yes\nand more text\n", "Gates: yes and more text"),
        ("Gates: a\x07b", "Gates: a\x07b"),
    ],
)
def test_small_yaml_faults_are_read_anyway(written: str, description: str) -> None:
    end = "" if written.endswith("\n") else "\n"
    parsed = read(
        f"name: gate\nlicense: MIT\ndescription: {written}{end}metadata:\n  a: b\n"
    )
    if written.startswith(">"):  # that is YAML
        assert parsed.faults == ()
        return
    assert parsed.fields["description"] == description
    assert parsed.fields["name"] == "gate"
    assert parsed.fields["license"] == "MIT"
    assert parsed.fields["metadata"] == {"a": "b"}
    (fault,) = parsed.faults
    assert (fault.code, fault.level) == ("skill-yaml", "error")
    first = 4
    assert first <= fault.line <= first + 1 + written.count("\n")
    assert parsed.lines == {
        "name": 2,
        "license": 3,
        "description": 4,
        "metadata": 5 + written.rstrip("\n").count("\n"),
    }


def test_unquoted_colon_is_named_with_its_key_and_line() -> None:
    parsed = read("name: gate\ndescription: Use when: you see a gate\n")
    (fault,) = parsed.faults
    assert fault.line == 3
    assert "the value of 'description' has a ':' and no quotes" in fault.message
    assert fault.hint == "Put the value in quotes."


def test_missing_space_after_the_colon() -> None:
    parsed = read("name:gate\ndescription:About a gate.\n")
    assert parsed.fields == FIELDS
    assert faults(parsed) == [(2, "skill-frontmatter")]


def test_key_that_is_indented_by_mistake() -> None:
    parsed = read(
        "name: gate\n  description: Use when: a gate\n   is there\nlicense: MIT\n"
    )
    assert parsed.fields == {
        "name": "gate",
        "description": "Use when: a gate is there",
        "license": "MIT",
    }
    assert parsed.lines["description"] == 3
    nested = read("name: gate\nmetadata:\n  name: a: b\n")
    assert nested.fields == {"name": "gate", "metadata": "name: a: b"}


def test_tab_as_indent() -> None:
    parsed = read("name: gate\ndescription: d\nmetadata:\n\ta: b\n")
    assert parsed.fields["metadata"] == {"a": "b"}
    assert faults(parsed) == [(5, "skill-yaml")]


def test_last_of_two_equal_keys_counts() -> None:
    parsed = read("name: door\ndescription: d\nname: gate\n")
    assert parsed.fields["name"] == "gate"
    assert parsed.lines["name"] == 4
    assert faults(parsed) == [(4, "skill-yaml")]


def test_huge_frontmatter_is_read_in_part() -> None:
    parsed = read(f"{GOOD}license: {'x' * 60_000}\n")
    assert parsed.fields["name"] == "gate"
    assert "60,0" in parsed.faults[0].message
    assert parsed.body == "Body."


def test_one_fault_hides_no_other_field() -> None:
    parsed = read("name: *gate\ndescription: d\n? [a, b]\n: c\nlicense: MIT\n")
    assert parsed.fields == {
        "name": "*gate",
        "description": "d ? [a, b] : c",
        "license": "MIT",
    }


@pytest.mark.parametrize(
    "written",
    [
        "".join(
            f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
        ),
        "".join(
            f"  a{n}: &a{n}\n    <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 25)
        ),
    ],
)
def test_aliases_that_multiply_are_not_written_out(written: str) -> None:
    text = (
        "---\nname: gate\ndescription: d\nmetadata:\n  a0: &a0 {x:"
        f" 1}}\n{written}---\n\nBody."
    )
    parsed = parse(text)
    assert parsed.fields["name"] == "gate"
    assert "more than 10,000 values" in parsed.faults[0].message
    assert len(str(parsed.fields)) < 10_000


def test_an_alias_is_fine() -> None:
    parsed = parse("---\nname: &n gate\ndescription: *n\n---\n\nBody.")
    assert (parsed.fields["description"], parsed.faults) == ("gate", ())


NEW = "Fill: in 'forms' # when \"asked\", or {so} – ünï"
QUOTED = "'Fill: in ''forms'' # when \"asked\", or {so} – ünï'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("description: old one # why", f"description: {QUOTED} # why"),
        ("description: 'old\n  one'", f"description: {QUOTED}"),
        (
            "description: >-\n  old\n  one\n\n# a note",
            f"description: {QUOTED}\n\n# a note",
        ),
        (
            "description: |\r\n  old\r\nmodel: x\r",
            f"description: {QUOTED}\r\nmodel: x\r",
        ),
        ("description:", f"description: {QUOTED}"),
        ("description: no: quotes", f"description: {QUOTED}"),
        ('"description" : "old"', f'"description" : {QUOTED}'),
    ],
)
def test_only_the_value_changes(before: str, after: str) -> None:
    start, end = (
        "---\nname: x\n",
        "\nlicense:   MIT\n---\n\ndescription: old\n---\n\tBody  \n\n",
    )
    assert with_description(start + before + end, NEW) == start + after + end


def test_a_byte_order_mark_and_a_comment_before_it_stay() -> None:
    for before in ("\ufeff", "<!-- of mine -->\n"):
        text = f"{before}---\nname: x\ndescription: old\n---\nBody"
        assert with_description(text, "New.") == text.replace("old", "New.")


@pytest.mark.parametrize(
    "text",
    [
        "Body",
        "---\nname: x\n---\nBody",
        "---\nname: x\ndescription: &a old\nmetadata: {a: *a}\n---\nBody",
        "---\nname: x\ndescription: has: colon\n  and: another\n---\nBody",
    ],
)
def test_what_would_change_more_is_refused(text: str) -> None:
    assert with_description(text, NEW) is None


@given(st.text(min_size=1).map(lambda text: " ".join(text.split())).filter(bool))
def test_any_line_can_be_a_description(said: str) -> None:
    text = "---\nname: x\ndescription: >\n  old\n  one\nlicense: MIT\n---\nBody\n"
    new = with_description(text, said)
    if new is not None:  # YAML has no way to write some characters
        assert parse(new).fields == {"name": "x", "description": said, "license": "MIT"}
        assert new.endswith("\nlicense: MIT\n---\nBody\n")
    assert new is not None or not said.isprintable()
