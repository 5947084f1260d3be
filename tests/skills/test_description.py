"""Another description in a SKILL.md, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.skills.description import with_description
from pytest_upskill.skills.frontmatter import parse

NEW = "Fill: in 'forms' # when \"asked\", or {so} – ünï"
QUOTED = "'Fill: in ''forms'' # when \"asked\", or {so} – ünï'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("description: old one # why", f"description: {QUOTED} # why"),
        ("description: 'old\n  one'", f"description: {QUOTED}"),
        ("description: >-\n  old\n  one\n\n# a note", f"description: {QUOTED}\n\n# a note"),
        ("description: |\r\n  old\r\nmodel: x\r", f"description: {QUOTED}\r\nmodel: x\r"),
        ("description:", f"description: {QUOTED}"),
        ("description: no: quotes", f"description: {QUOTED}"),
        ('"description" : "old"', f'"description" : {QUOTED}'),
    ],
)
def test_only_the_value_changes(before: str, after: str) -> None:
    start, end = "---\nname: x\n", "\nlicense:   MIT\n---\n\ndescription: old\n---\n\tBody  \n\n"
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
