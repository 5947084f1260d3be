"""Checks of the answer as a whole: its length in tokens, its time, how it ended."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from .._util.texts import plain
from ..trials.answer import Answer
from .kind import COUNT, TEXT, Given, Kind, Said, quoted


def _max_output_tokens(answer: Answer, most: int, _: Given) -> Iterator[Said]:
    tokens = answer.usage.output
    if tokens is None:
        yield None, "the server does not tell how many tokens the answer has"
    else:
        yield tokens <= most, f"the answer has {tokens:,} tokens; at most {most:,} may be"


def _max_seconds(answer: Answer, most: float, _: Given) -> Iterator[Said]:
    took = f"the answer took {plain(round(answer.seconds, 3))} s"
    yield answer.seconds <= most, f"{took}; at most {plain(most)} s may be"


def _refused(answer: Answer, wanted: bool, _: Given) -> Iterator[Said]:
    refused = answer.stop == "refusal"
    yield refused is wanted, f"the model {'refused' if refused else 'did not refuse'} to answer"


def _stop(answer: Answer, wanted: str, _: Given) -> Iterator[Said]:
    yield answer.stop == wanted, f"the answer stopped with {quoted(answer.stop)}"


_SECONDS: TypeAdapter[Any] = TypeAdapter(
    Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
)
_YES_OR_NO: TypeAdapter[Any] = TypeAdapter(Annotated[bool, Field(strict=True)])

KINDS = (
    Kind("max_output_tokens", COUNT, _max_output_tokens),
    Kind("max_seconds", _SECONDS, _max_seconds),
    Kind("refused", _YES_OR_NO, _refused),
    Kind("stop", TEXT, _stop),
)
