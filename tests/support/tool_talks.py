"""Talks with models that call tools, through the real SDKs."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

from pytest_upskill.models import ModelSpec
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.transcript import Step, Tool, ToolResult
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
BASH = Tool("bash", "Run a command.", json.dumps(SCHEMA))
QUESTION = Question(
    "m", "Be brief.", (("user", "What is here?"),), 64, 1, tools=(BASH,)
)
TURN = replace(QUESTION, shared=("system", "steps"))  # as the engine asks for an agent
LS = ("bash", {"command": "ls"})
CACHED = {"cache_control": {"type": "ephemeral"}}
Script = Callable[[Asked], Reply | Fault]


def answer_to(provider: str, script: Script, question: Question = QUESTION) -> Answer:
    with LoopbackServer(script) as server:
        return answers_of(spec_of(provider, server.url), question)[0]


def after(question: Question, answer: Answer, *texts: str) -> Question:
    """The next turn, with the results of the calls."""
    results = [
        ToolResult(call.id, text)
        for call, text in zip(answer.calls, texts, strict=True)
    ]
    step = Step(answer.text, answer.calls, tuple(results), answer.raw)
    return replace(question, steps=(*question.steps, step))


def talk(
    provider: str, script: Script, *results: str
) -> tuple[list[Answer], list[Asked]]:
    """Ask until there are no more calls; each turn has one call,
    which gets the next result.
    """

    async def run(spec: ModelSpec) -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        question = TURN if provider == "anthropic" else QUESTION
        answers = [await model.ask(question)]
        for result in results:
            question = after(question, answers[-1], result)
            answers.append(await model.ask(question))
        await model.close()
        return answers

    with LoopbackServer(script) as server:
        return asyncio.run(run(spec_of(provider, server.url))), server.asked


def talk_all(provider: str, *replies: Reply) -> tuple[list[Answer], list[Asked]]:
    """Two turns with the same reply, all of whose calls get a result, and a last
    one.
    """

    async def run(spec: ModelSpec) -> list[Answer]:
        model = await spec.provider.open(spec, 20)
        question, answers = QUESTION, list[Answer]()
        try:
            while not answers or answers[-1].calls:
                answers.append(await model.ask(question))
                question = after(
                    question, answers[-1], *("done" for _ in answers[-1].calls)
                )
        finally:
            await model.close()
        return answers

    def script(_: Asked) -> Reply:
        return replies[0] if len(server.asked) < 3 else Reply("Done.")

    with LoopbackServer(script) as server:
        return asyncio.run(run(spec_of(provider, server.url))), server.asked
