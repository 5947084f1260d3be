"""Ask a model to choose a skill: by a tool, or by JSON where tools are not
supported.
"""

from dataclasses import astuple, replace

from .._util.texts import one_line
from ..errors import ModelError, Setting
from ..trials.answer import Answer
from ..trials.transcript import Activity, Turn
from ..trials.trial import Question, by_schema
from ..trials.written_calls import ADVICE, PROBLEM, Offer, writes_call
from .model import Model


class Chooser:
    """Asks one model, and remembers whether its server supports tools."""

    def __init__(self, *, takes_tools: bool = True) -> None:
        self._takes_tools = takes_tools

    async def ask(self, model: Model, question: Question) -> Answer:
        """The answer to a question with a choice; its activity says what was chosen."""
        assert question.choice
        if self._takes_tools:
            try:
                answer = await model.ask(question)
            except ModelError as error:
                if not error.no_tools:
                    raise
                self._takes_tools = False
            else:
                called = question.choice.called_in(answer)
                if answer.calls and answer.stop == "length" and not called.opened:
                    raise _half_a_call(answer)
                if _writes_call(question, answer):
                    raise ModelError(PROBLEM, ADVICE, paid=astuple(answer.usage))
                return _chosen(question, answer, called)
        answer = await model.ask(by_schema(question))
        chose_none = answer.refused or answer.is_empty
        activity = (
            Activity(1, 0, activated=False)
            if chose_none
            else question.choice.written_in(answer)
        )
        if activity is None:
            problem = (
                f"the reply does not choose a skill: {one_line(answer.text, 80)!r}"
            )
            hint = "This model supports neither tools nor JSON schemas: use another one"
            raise ModelError(problem, hint, paid=astuple(answer.usage))
        return _chosen(question, answer, activity)


def _writes_call(question: Question, answer: Answer) -> bool:
    """It chose by a text, which a server should have parsed."""
    if answer.calls or answer.refused or not question.choice:
        return False
    offer, (_, query) = Offer(), question.messages[-1]
    offer.add_tools(question.tools)
    offer.add_skills(question.choice.names)
    return writes_call(answer.text or f"<think>{answer.thinking}", offer, query)


def _half_a_call(answer: Answer) -> ModelError:
    """It does not mean that no skill was chosen."""
    problem, hint = (
        "the choice was cut off by the output limit",
        ("Raise ", Setting("max_output")),
    )
    return ModelError(problem, hint, paid=astuple(answer.usage))


def _chosen(question: Question, answer: Answer, activity: Activity) -> Answer:
    """The answer with its choice as activity and transcript, as an agent's has."""
    reply_turns = (
        [Turn("thinking", answer.thinking, reply=1)] if answer.thinking else []
    )
    reply_turns += (
        [Turn("assistant", answer.text, reply=1)] if answer.text.strip() else []
    )
    reply_turns += [
        Turn("call", call.arguments, call.name, reply=1) for call in answer.calls
    ]
    question_turns = [Turn("user", text) for _, text in question.messages]
    return replace(
        answer,
        activity=activity,
        transcript=(*question_turns, *reply_turns),
        calls=(),
        raw="",
    )
