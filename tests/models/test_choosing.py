"""The choice of a skill by a model without an agent:
through the engine and the real SDKs.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.checks import checks_of
from pytest_upskill.checks.grading import ToGrade, records_of
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.engine.store import Store, StoredAnswers
from pytest_upskill.features.queries import QUERY
from pytest_upskill.models import Model
from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import OPENS, Case
from pytest_upskill.trials.arm import Arm, SkillCopy
from pytest_upskill.trials.choice import BY_JSON
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import trials_of
from pytest_upskill.trials.written_calls import PROBLEM
from support.endpoints import KEY, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

DESCRIPTIONS = {"docs": "Writes docs.", "pdf": "Fills in PDF forms."}
COPIES = tuple(
    SkillCopy.bundled(name, f"---\nname: {name}\ndescription: {text}\n---\nDo it.\n")
    for name, text in DESCRIPTIONS.items()
)
ARM = Arm("skill", skills=COPIES, tested=("pdf",))
SUBJECT = Subject(CHAT, "m")
PDF = ("skill", {"name": "pdf"})
Script = Callable[[Asked], Reply | Fault]
REFUSALS = [
    Fault(
        "status", 400, message="model-1 does not support tools", error_type="api_error"
    ),
    Fault("status", 500, message="tools param requires --jinja flag"),
    Fault(
        "status",
        400,
        message='"auto" tool choice requires --enable-auto-tool-choice to be set',
    ),
]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(params=["anthropic", "openai", "gemini"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chosen(
    provider: str,
    script: Script,
    queries: Sequence[str] = ("Fill in this form.",),
    *,
    takes_tools: bool = True,
    store: Path | None = None,
) -> tuple[list[Record], list[Asked]]:
    """The records of queries that should open the skill, asked one after another."""
    cases = [
        Case(query, query, {"skill_activated": True}, tags=(OPENS,), kind=QUERY)
        for query in queries
    ]
    trials = [
        trials_of("pdf", case, SUBJECT, [ARM], settings=Settings(), runs=[1])[0]
        for case in cases
    ]
    with LoopbackServer(script) as server:
        spec = spec_of(provider, server.url)

        async def open_model(_: str) -> Model:
            return await spec.provider.open(spec, 20)

        answers = store and StoredAnswers(
            lambda: Store(store), lambda _: "id", fresh=False
        )
        engine = Engine(
            ModelFacts(
                open_model, timeout=lambda _: 60, takes_tools=lambda _: takes_tools
            ),
            concurrency=4,
            answers=answers or None,
        )
        try:
            records = [
                records_of(
                    [ToGrade(trial, case, checks_of(case, KINDS, {}))], engine.ask
                )[0]
                for trial, case in zip(trials, cases, strict=True)
            ]
        finally:
            engine.close()
    return records, list(server.asked)


def reason(record: Record) -> str:
    return record.error or record.checks[0].reason


def test_a_call_of_the_tool_is_the_choice(provider: str) -> None:
    [record], [asked] = chosen(provider, lambda _: Reply("I look.", calls=(PDF,)))
    assert reason(record) == "the skill was opened"
    assert record.outcome == "passed"
    assert record.activity
    assert (record.activity.opened, record.activity.activated) == (("pdf",), True)
    assert (record.tokens, record.output) == (15, "I look.")
    assert [(turn.kind, turn.tool) for turn in record.transcript] == [
        ("user", ""),
        ("assistant", ""),
        ("call", "skill"),
    ]
    assert asked.tools == ("skill",)
    assert asked.question == "Fill in this form."
    assert "<description>Fills in PDF forms.</description>" in asked.system


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("Open a pdf viewer. I used the pdf skill."), "the skill was not opened"),
        (
            Reply(calls=(("skill", {"name": "docs"}),)),
            "the skill was not opened; opened instead: docs",
        ),
        (Reply(calls=(("skill", {"name": "word"}),)), "the skill was not opened"),
        (Reply(calls=(("bash", {"name": "pdf"}),)), "the skill was not opened"),
        (Reply(calls=(("bash", {}), PDF)), "the skill was opened"),
        (Reply(calls=(("pdf", {"file": "form.pdf"}),)), "the skill was opened"),
        (Reply(calls=(("skill", {"name": "docs"}), PDF)), "the skill was opened"),
        (
            Reply("I can't help with that.", stop="refusal"),
            "the skill was not opened (the model refused to answer)",
        ),
        (
            Reply("It was a long", stop="length"),
            "the skill was not opened (cut off by the output limit)",
        ),
    ],
)
def test_all_else_is_none(provider: str, reply: Reply, told: str) -> None:
    [record], [_] = chosen(provider, lambda _: reply)
    assert reason(record) == told


@pytest.mark.parametrize(
    "text",
    [
        '{"skill": "pdf"}',
        '<tool_call>\n{"name": "skill", "arguments": {"name": "pdf"}}\n</tool_call>',
        '```json\n{"name": "pdf", "arguments": {}}\n```',
    ],
)
def test_a_server_that_does_not_parse_calls_is_an_error(
    provider: str, text: str
) -> None:
    [record], [_] = chosen(provider, lambda _: Reply(text))
    assert record.outcome == "errored"
    assert record.error
    assert record.error.startswith(f"m: {PROBLEM}. ")


@pytest.mark.parametrize("text", ["", "<think>What to do"])
@pytest.mark.parametrize("tools", [True, False])
def test_an_empty_reply_chooses_none(provider: str, text: str, tools: bool) -> None:
    def script(asked: Asked) -> Reply | Fault:
        return Reply(text) if tools or not asked.tools else REFUSALS[0]

    [record], asked = chosen(provider, script)
    assert (record.outcome, reason(record)) == ("failed", "the skill was not opened")
    # Not asked again
    assert len([one for one in asked if bool(one.tools) is tools]) == 1


def test_half_a_call_is_an_error() -> None:
    reply = Reply(calls=(("skill", '{"name": "p'),), stop="length")
    [record], _ = chosen("openai", lambda _: reply)
    assert reason(record).startswith("m: the choice was cut off by the output limit")


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_server_without_tools_gets_a_schema(provider: str, refusal: Fault) -> None:
    def script(asked: Asked) -> Reply | Fault:
        if asked.tools:
            return refusal
        return Reply(
            json.dumps({"skill": "pdf" if "form" in asked.question else "none"})
        )

    queries = ["Fill in this form.", "Tell me a joke.", "And this form."]
    records, asked = chosen(provider, script, queries)
    assert [reason(one) for one in records] == [
        "the skill was opened",
        "the skill was not opened",
        "the skill was opened",
    ]
    assert all(one.activity and BY_JSON in one.activity.findings for one in records)
    with_tools = [bool(one.tools) for one in asked]
    # What the first query learnt holds for all
    assert with_tools[-3:] == [False, False, False]
    # Anthropic's adapter tries the same without marks for the cache first.
    assert with_tools.count(True) <= 2
    plain = asked[-3]
    assert "<name>pdf</name>" in plain.system
    assert "tool" not in plain.system
    assert '"enum": ["docs", "pdf", "none"]' in json.dumps(plain.body)


def test_a_model_that_is_known_to_take_no_tools_is_not_offered_any(
    provider: str,
) -> None:
    [record], [asked] = chosen(
        provider, lambda _: Reply('{"skill": "pdf"}'), takes_tools=False
    )
    assert record.outcome == "passed"
    assert asked.tools == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('Sure!\n```json\n{"skill": "pdf"}\n```', "the skill was opened"),
        ('{"skill": "docs"}', "the skill was not opened; opened instead: docs"),
        ('{"skill": "word"}', "the skill was not opened"),
        (
            "I would take pdf.",
            "m: the reply does not choose a skill: 'I would take pdf.'. This ",
        ),
        (
            '{"skill": "pdf"} or {"skill": "docs"}',
            "m: the reply does not choose a skill",
        ),
    ],
)
def test_what_a_schema_brings(text: str, told: str) -> None:
    [record], asked = chosen("openai", lambda _: Reply(text), takes_tools=False)
    assert reason(record).startswith(told)
    assert len(asked) == 1
    assert (record.outcome == "errored") == told.startswith("m:")


def test_another_refusal_is_an_error_without_a_second_question(provider: str) -> None:
    [record], asked = chosen(provider, lambda _: Fault("status", 401))
    assert record.outcome == "errored"
    assert "401" in reason(record)
    assert len(asked) == 1


def test_a_choice_is_stored(tmp_path: Path) -> None:
    def script(asked: Asked) -> Reply | Fault:
        return Reply(calls=(PDF,)) if "form" in asked.question else Reply("Why did …")

    queries = ["Fill in this form.", "Tell me a joke."]
    file = tmp_path / "answers.sqlite"
    first, asked = chosen("anthropic", script, queries, store=file)
    assert len(asked) == 2
    second, asked = chosen("anthropic", script, queries, store=file)
    assert asked == []
    assert [replace(one, stored=False) for one in second] == first
    assert all(one.stored for one in second)
