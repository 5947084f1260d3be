"""The user's side of a conversation with an agent: the same for every agent."""

import asyncio

from ..errors import NoAnswerError
from ..trials.answer import Answer, NoAnswer
from ..trials.trial import Question, Turns
from ..trials.user import (
    MAX_OUTPUT,
    User,
    asks_user,
    has_ended,
    message_text,
    system_text,
    words_of,
)
from .agent import Call
from .recorder import Recorder


class UserTurns:
    """Answers an agent that ends its turn with a question, if its case has a user."""

    def __init__(self, recorder: Recorder, call: Call) -> None:
        self._recorder = recorder
        self._call = call
        self._given = 0  # answers
        task = recorder.question.task
        self._user = task.user if task else None

    async def answer_to(self, reply: Answer) -> str:
        """What the user says to the last reply of an agent;
        empty if the conversation is over.

        The agent must send it to its model as it is. NoAnswerError if
        the user's model gave none.
        """
        user = self._user
        if user is None or reply.refused or reply.calls or self._given >= user.most:
            return ""
        if not asks_user(reply.text):
            return ""
        began = asyncio.get_running_loop().time()
        words = (
            await self._words(user, reply) if user.facts else user.replies[self._given]
        )
        if words:
            self._given += 1
            self._recorder.expect_answer(
                words, asyncio.get_running_loop().time() - began
            )
        return words

    async def _words(self, user: User, reply: Answer) -> str:
        question = self._recorder.question
        task = "\n\n".join(text for role, text in question.messages if role == "user")
        shown: Turns = (("user", message_text(task, reply.text)),)
        asked = Question(user.model, system_text(user), shown, MAX_OUTPUT, question.run)
        said = await self._call(asked)
        if isinstance(said, NoAnswer):
            raise NoAnswerError(f"the user gave no answer: {said.reason}")
        self._recorder.add_user_call(user.model, said.usage)
        words = words_of(said)
        if said.refused or not words:
            how = "refused to answer" if said.refused else "said nothing"
            raise NoAnswerError(
                f"the user ({user.model}) {how}. Try another model as the user"
            )
        return "" if has_ended(words) else words
