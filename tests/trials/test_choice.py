"""Skills as a model is offered them, and what it chose, whatever it says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.keys import hide_keys, know
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.choice import BY_JSON, Choice, Listed, skill_list, skill_tool
from pytest_upskill.trials.transcript import ToolCall

CHOICE = Choice(
    ("pdf",), (Listed("docs", "Writes docs."), Listed("pdf", "Reads <PDF> files."))
)


def called(*calls: tuple[str, object], text: str = "") -> Answer:
    made = [
        ToolCall(str(number), name, args if isinstance(args, str) else json.dumps(args))
        for number, (name, args) in enumerate(calls)
    ]
    return Answer(text, calls=tuple(made))


def test_skills_are_listed_as_our_agent_lists_them() -> None:
    assert skill_list(()) == ""
    assert CHOICE.by_tool.endswith(
        "<available_skills>\n  <skill>\n    <name>docs</name>\n    <description>Writes"
        " docs.</description>\n  </skill>\n  <skill>\n    <name>pdf</name>\n   "
        " <description>Reads &lt;PDF&gt; files.</description>\n "
        " </skill>\n</available_skills>"
    )
    assert json.loads(skill_tool(CHOICE.names).schema)["properties"] == {
        "name": {"type": "string", "enum": ["docs", "pdf"]}
    }


@pytest.mark.parametrize(
    ("answer", "opened", "finding"),
    [
        (called(("skill", {"name": "pdf"})), ("pdf",), ""),
        (called(("skill", {"skill": "pdf"})), ("pdf",), ""),
        (called(("skill", '"pdf"')), ("pdf",), ""),
        (
            called(("skill", {"name": "docs"}), ("skill", {"name": "pdf"})),
            ("docs", "pdf"),
            "",
        ),
        (
            called(("bash", {"name": "pdf"})),
            (),
            "called a tool that is not there: bash",
        ),
        (called(("bash", {}), ("skill", {"name": "pdf"})), ("pdf",), "bash"),
        (
            called(("skill", {"name": "word"})),
            (),
            'chose no skill that is there: {"name": "word"}',
        ),
        (called(("skill", {"name": ["pdf"]})), (), "chose no skill"),
        (called(("skill", {"name": "pdf", "or": "docs"})), (), "chose no skill"),
        (called(("skill", "{")), (), "chose no skill"),
        (called(("skill", "[" * 100_000)), (), "chose no skill"),
        (Answer('I would use the skill pdf: {"name": "pdf"}'), (), ""),
    ],
)
def test_what_a_call_chooses(
    answer: Answer, opened: tuple[str, ...], finding: str
) -> None:
    made = CHOICE.called_in(answer)
    assert (made.opened, made.activated) == (opened, "pdf" in opened)
    assert finding in " ".join(made.findings)
    assert bool(finding) == bool(made.findings)


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ('{"skill": "pdf"}', ("pdf",)),
        ('Sure! ```json\n{"skill": " pdf "}\n``` as asked', ("pdf",)),
        ('<think>{"skill": "docs"}?</think>{"skill": "pdf"}', ("pdf",)),
        ('{"why": {}} {"skill": "docs"}', ("docs",)),
        ('{"skill": "none"}', ()),
        ('{"skill": "word"}', ()),
        ("`pdf`.", ("pdf",)),
        ("none", ()),
    ],
)
def test_what_a_text_chooses(text: str, opened: tuple[str, ...]) -> None:
    made = CHOICE.written_in(Answer(text))
    assert made
    assert (made.opened, made.activated) == (opened, "pdf" in opened)
    assert BY_JSON in made.findings


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would use pdf.",
        '{"skill": 7}',
        '{"skill": "pdf"} {"skill": "docs"}',
        "{" * 10_000,
    ],
)
def test_what_is_no_choice(text: str) -> None:
    assert CHOICE.written_in(Answer(text)) is None


def test_a_skill_may_be_called_none() -> None:
    choice = Choice(("none",), (Listed("none", "Does nothing."),))
    assert json.loads(choice.schema)["properties"]["skill"]["enum"] == [
        "none",
        "none of them",
    ]
    assert "'none of them'" in choice.by_schema
    one, other = (
        choice.written_in(Answer(json.dumps({"skill": word})))
        for word in choice_words()
    )
    assert one
    assert other
    assert (one.activated, other.activated) == (True, False)


def choice_words() -> tuple[str, str]:
    return "none", "none of them"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    made = CHOICE.written_in(Answer(text))
    assert made is None or set(made.opened) <= set(CHOICE.names)


@given(st.text(), st.text())
def test_any_call_is_read(name: str, arguments: str) -> None:
    assert set(CHOICE.called_in(called((name, arguments))).opened) <= set(CHOICE.names)


def test_no_key_of_this_process_goes_to_a_server() -> None:
    know("sk-secret-0123456789")
    listed = Listed("pdf", "Needs sk-secret-0123456789 to work.")
    assert "0123456789" not in hide_keys(Choice(("pdf",), (listed,))).by_schema
