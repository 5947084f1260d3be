"""The scripted model: answers from a file of rules or from a Python function."""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import ModelError, SettingsError
from pytest_upskill.models import ModelSpec, providers
from pytest_upskill.models.model import ModelName
from pytest_upskill.models.scripted import ScriptedModel, load_script
from pytest_upskill.skills.case import Role
from pytest_upskill.skills.skill import estimated_tokens
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Step, Tool, ToolCall, ToolResult
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of

PLAIN = "You are a helpful assistant."


def question(text: str, system: str = PLAIN) -> Question:
    earlier: tuple[tuple[Role, str], ...] = (
        ("user", "Tell me of doors."),
        ("assistant", "Doors!"),
    )
    return Question("scripted", system, (*earlier, ("user", text)), 100, 1)


def scripted(name: str) -> ModelSpec:
    return providers.resolve(ModelName(f"scripted:{name}"), {})


def ask(name: str, text: str = "Hello?", system: str = PLAIN) -> Answer:
    return answers_of(scripted(name), question(text, system))[0]


def answered(reply: Any) -> Answer:
    return asyncio.run(ScriptedModel(lambda _: reply).ask(question("Hello?")))


def refused(name: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_script(scripted(name))
    assert caught.value.where == f"models scripted:{name}"
    return caught.value


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "system", "answer"),
    [
        ("How do I open the GATE?", "The gate book.", "both fit"),
        ("How do I open the gate?", PLAIN, "the question fits"),
        ("How are you?", "The gate book.", "the system fits"),
        ("How are you?", "The GATE book.", "nothing else fits"),
        ("Doors?", PLAIN, "nothing else fits"),
    ],
)
def test_the_first_rule_that_fits_answers(text: str, system: str, answer: str) -> None:
    rules = [
        {"question": "open the gate", "system": "gate book", "answer": "both fit"},
        {"question": "Open the Gate", "answer": "the question fits"},
        {"system": "gate book", "answer": "the system fits"},
        {"question": "tell me of doors", "answer": "only the last message counts"},
        {"answer": "nothing else fits"},
    ]
    Path("answers.json").write_text(json.dumps(rules))
    assert ask("answers.json", text, system).text == answer


def test_a_question_that_no_rule_fits_has_no_answer() -> None:
    Path("answers.json").write_text('[{"question": "gate", "answer": "up"}]')
    with pytest.raises(ModelError, match=r"no rule in answers\.json matches"):
        ask("answers.json", "Hello?")


def test_a_function_in_a_file_answers() -> None:
    Path("answers.py").write_text(
        "def reply(question):\n    return question.messages[-1][1] * 2\n"
    )
    assert ask("answers.py:reply", "ab").text == "abab"


def test_a_script_may_hold_what_any_module_may() -> None:
    text = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class Mood:\n"
        "    word: str = 'good'\n"
        "def reply(question):\n"
        "    return Mood().word\n"
    )
    Path("answers.py").write_text(text)
    assert ask("answers.py:reply").text == "good"


def test_a_function_in_a_module_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pack").mkdir()
    Path("pack", "__init__.py").touch()
    Path("pack", "scripted_answers.py").write_text(
        "def reply(question):\n    return 'mine'\n"
    )
    monkeypatch.syspath_prepend(str(Path.cwd()))
    try:
        assert ask("pack.scripted_answers:reply").text == "mine"
    finally:
        for name in ("pack", "pack.scripted_answers"):
            sys.modules.pop(name, None)


def test_a_text_gets_an_estimated_usage() -> None:
    asked = question("Hello?")
    tokens = estimated_tokens(PLAIN) + sum(
        estimated_tokens(text) for _, text in asked.messages
    )
    assert answered("x" * 40) == Answer("x" * 40, Usage(tokens, 10, 0))


def test_a_whole_answer_is_passed_on_as_it_is() -> None:
    whole = Answer("text", Usage(1, None, 3), stop="length", seconds=9.0)
    assert answered(whole) is whole


def test_a_refusal_may_be_empty() -> None:
    assert answered(Answer("", stop="refusal")).stop == "refusal"


@pytest.mark.parametrize("reply", ["", " \n", Answer("")])
def test_an_empty_answer_is_an_answer(reply: str | Answer) -> None:
    assert answered(reply).is_empty


@pytest.mark.parametrize("reply", [None, 7, ["text"], b"text"])
def test_a_reply_that_is_no_text_is_no_answer(reply: object) -> None:
    with pytest.raises(ModelError):
        answered(reply)


def test_a_script_that_raises_gives_no_answer_and_is_quoted() -> None:
    Path("answers.py").write_text("def reply(question):\n    raise KeyError('gate')\n")
    with pytest.raises(ModelError, match=r"the script raised KeyError\('gate'\)"):
        ask("answers.py:reply")


def test_a_model_error_of_a_script_is_passed_on_as_it_is() -> None:
    error = ModelError("out of order", fatal=True)

    def script(_: Question) -> str:
        raise error

    with pytest.raises(ModelError) as caught:
        asyncio.run(ScriptedModel(script).ask(question("Hello?")))
    assert caught.value is error


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[{]", "answers.json:1:3: invalid JSON"),
        ('{"answer": "x"}', "answers.json:1: the file: must be a list"),
        ('[{"answer": "x"}, {"question": "x"}]', "answers.json:1: [1].answer: missing"),
        ('[{"answer": 1}]', "answers.json:1: [0].answer: must be a string"),
        (
            '[{"answer": "x", "anwser": "y"}]',
            '[0].anwser: unknown key (did you mean "answer"?)',
        ),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_place(
    content: str, problem: str
) -> None:
    Path("answers.json").write_text(content)
    error = refused("answers.json")
    assert problem in error.problem
    assert error.hint.startswith("Write [{")


def test_a_file_that_is_not_utf8_is_refused() -> None:
    Path("answers.json").write_bytes(b'[{"answer": "caf\xe9"}]')
    assert "answers.json" in refused("answers.json").problem


@pytest.mark.parametrize("name", ["nothing.json", "nothing.py:reply"])
def test_a_file_that_is_not_there_is_refused(name: str) -> None:
    file = name.partition(":")[0]
    assert refused(name).problem == f"{file}: no such file or folder"
    assert refused(name).hint == "Check the path."


def test_a_name_that_is_neither_file_nor_function_is_refused() -> None:
    assert "neither a .json file nor a function" in refused("answers.txt").problem


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (
            "x = 1\ny = (\n",
            "answers.py:reply",
            "answers.py:2: SyntaxError: '(' was never closed",
        ),
        (
            "1 / 0\n",
            "answers.py:reply",
            "answers.py: ZeroDivisionError: division by zero",
        ),
        ("reply = 1\n", "answers.py:reply", "has no function 'reply'"),
        ("", "answers.py:reply", "has no function 'reply'"),
        (
            "",
            "no_such_module_of_ours:reply",
            "No module named 'no_such_module_of_ours'",
        ),
        ("", "answers.py:", "has no function ''"),
    ],
)
def test_a_script_that_can_not_be_loaded_is_refused(
    content: str, name: str, problem: str
) -> None:
    Path("answers.py").write_text(content)
    assert problem in refused(name).problem


def offering(*tools: str) -> Question:
    return replace(
        question("Report."), tools=tuple(Tool(name, "", "{}") for name in tools)
    )


def play(first: Question, script: Callable[[Question], str | Answer]) -> list[Answer]:
    """The turns of an agent whose tools answer with their name and arguments."""

    async def turns() -> list[Answer]:
        model, asked, answers = ScriptedModel(script), first, list[Answer]()
        while (not answers or answers[-1].calls) and len(answers) < 9:
            answers.append(await model.ask(asked))
            calls = answers[-1].calls
            told = (
                ToolResult(call.id, f"{call.name} {call.arguments}") for call in calls
            )
            step = Step(answers[-1].text, calls, tuple(told), answers[-1].raw)
            asked = replace(asked, steps=(*asked.steps, step))
        return answers

    return asyncio.run(turns())


AGENT = [
    {"question": "report", "calls": [{"tool": "skill", "arguments": {"name": "pdf"}}]},
    {
        "calls": [
            {"tool": "bash", "arguments": {"command": "ls"}},
            {"tool": "bash", "arguments": {"command": "pwd"}},
        ],
        "answer": "I look around.",
    },
    {"calls": [{"tool": "read"}]},
    {"after": "pwd", "turn": 3, "offered": "skill", "answer": "All done."},
    {"offered": "skill", "answer": "Out of turn."},
    {"after": "pwd", "answer": "Done without a skill."},
    {"answer": "Nothing to do."},
]


def names_of(answers: list[Answer]) -> list[list[str]]:
    return [[call.name for call in answer.calls] for answer in answers]


def script_of(rules: object) -> Callable[[Question], str | Answer]:
    Path("answers.json").write_text(json.dumps(rules))
    return load_script(scripted("answers.json"))


def test_rules_play_an_agent_turn_by_turn() -> None:
    answers = play(offering("skill", "bash"), script_of(AGENT))
    assert names_of(answers) == [["skill"], ["bash", "bash"], []]
    assert [answer.stop for answer in answers] == ["tools", "tools", "end"]
    assert [answer.text for answer in answers] == ["", "I look around.", "All done."]
    assert answers[0].calls[0].arguments == '{"name": "pdf"}'
    assert len({call.id for answer in answers for call in answer.calls}) == 3


def test_rules_use_only_tools_that_are_offered() -> None:
    answers = play(offering("bash"), script_of(AGENT))
    assert names_of(answers) == [["bash", "bash"], []]
    assert answers[-1].text == "Done without a skill."
    assert play(offering(), script_of(AGENT))[0].text == "Nothing to do."


def test_the_turns_of_an_agent_get_an_estimated_usage() -> None:
    first, second, _ = play(offering("skill", "bash"), script_of(AGENT))
    assert (second.usage.input or 0) > (first.usage.input or 0) > 0
    assert first.usage.output == 1 + estimated_tokens('skill {"name": "pdf"}')


def test_a_rule_may_break_its_arguments() -> None:
    rules = [
        {"calls": [{"tool": "bash", "arguments": '{"command": '}]},
        {"answer": "Oh."},
    ]
    first, last = play(offering("bash"), script_of(rules))
    assert first.calls[0].arguments == '{"command": '
    assert last.text == "Oh."


def test_a_function_sees_the_steps_and_may_call_tools() -> None:
    def script(asked: Question) -> str | Answer:
        if asked.steps:
            return f"It said {asked.steps[-1].results[0].text}"
        return Answer(
            "", calls=(ToolCall("", "bash", "{}"), ToolCall("", "bash", "[]"))
        )

    first, last = play(offering("bash"), script)
    assert len({call.id for call in first.calls}) == 2
    assert (first.stop, last.text) == ("tools", "It said bash {}")


def test_a_function_calls_nothing_if_there_are_no_tools() -> None:
    assert answered(Answer("", calls=(ToolCall("1", "bash", "{}"),))).calls == ()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"calls": []}, "[0].answer: missing"),
        ({"calls": [{"arguments": {}}]}, "[0].calls[0].tool: missing"),
        (
            {"calls": [{"tool": "bash", "argument": {}}]},
            'unknown key (did you mean "arguments"?)',
        ),
        ({"turn": 0, "answer": "x"}, "[0].turn: must be 1 or more"),
    ],
)
def test_a_rule_with_wrong_calls_is_refused(rule: object, problem: str) -> None:
    Path("answers.json").write_text(json.dumps([rule]))
    assert problem in refused("answers.json").problem


DOCS = Path(__file__).parents[2] / "docs/models.md"


def examples(language: str) -> list[str]:
    section = DOCS.read_text("utf-8").partition("## A fake model for tests")[2]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_the_rules_in_the_docs_play_both_arms() -> None:
    [_, rules] = examples("json")
    script = script_of(json.loads(rules))
    answers = play(offering("bash", "skill"), script)
    assert names_of(answers) == [["skill"], ["bash"], []]
    assert answers[-1].text == "I could not find the total."
    answers = play(offering("bash"), script)
    assert names_of(answers) == [["bash"], []]
    assert answers[-1].text == "I do not know."


def test_the_function_in_the_docs_calls_a_tool() -> None:
    [text] = examples("python")
    Path("answers.py").write_text(text)
    first, last = play(offering("bash"), load_script(scripted("answers.py:reply")))
    assert first.calls == (ToolCall("1", "bash", '{"command": "ls"}'),)
    assert last.text == 'bash {"command": "ls"}'
