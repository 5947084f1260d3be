"""A request as a question: what the engine counts, and what a model without a server is asked."""

from dataclasses import replace

from ...skills.case import Role
from ...trials.tools import Step, ToolCall, ToolResult
from ...trials.trial import Question
from .protocols import Asked, Item


def question_of(asked: Asked, trial: Question) -> Question:
    """The question that a request of a trial's agent asks."""
    messages, steps, said = list[tuple[Role, str]](), list[Step](), ""
    for item in asked.items:
        if item.kind == "call":
            _add_call(item, said, steps)
            said = ""
        elif item.kind == "result" and steps:
            result = ToolResult(item.call, item.text, item.failed)
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, result))
        elif item.kind == "assistant":
            said = item.text
        elif item.kind == "thinking":
            continue
        elif steps:  # said after a result: a model sees it there
            _add_to_result(item, steps)
        else:
            messages += [("assistant", said)] if said else []
            messages.append(("user", item.text))
            said = ""
    return Question(
        trial.model,
        asked.system,
        tuple(messages) or (("user", ""),),
        asked.max_output or trial.max_output,
        trial.run,
        tools=() if asked.forbids else asked.tools,
        steps=tuple(steps),
    )


def _add_call(item: Item, said: str, steps: list[Step]) -> None:
    """A call begins a step, unless another of its turn has begun it."""
    call = ToolCall(item.call, item.tool, item.text)
    if steps and not steps[-1].results:
        steps[-1] = replace(steps[-1], calls=(*steps[-1].calls, call))
    else:
        steps.append(Step(said, (call,), ()))


def _add_to_result(item: Item, steps: list[Step]) -> None:
    *before, last = steps[-1].results or (ToolResult(steps[-1].calls[-1].id, ""),)
    last = replace(last, text=f"{last.text}\n{item.text}" if last.text else item.text)
    steps[-1] = replace(steps[-1], results=(*before, last))
