"""What commands answer, as people write it, and which calls an answer fits."""

import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from ..._util.json_forms import Strict
from ...skills.case_files import is_path


def _joined(value: Any) -> Any:
    return shlex.join(map(str, value)) if isinstance(value, list) else value


def _words(text: str) -> str:
    try:
        shlex.split(text)
    except ValueError:
        raise ValueError("a quote is not closed; write a list of words") from None
    return text


def _path(text: str) -> str:
    if not is_path(text) or text.startswith("/"):
        raise ValueError("must be a path in the workspace, such as out/list.txt")
    return text


# The words of a command line, in which * stands for anything.
Words = Annotated[
    str,
    AfterValidator(_words),
    BeforeValidator(_joined, json_schema_input_type=str | list[str]),
]


def fits(pattern: str, words: Sequence[str]) -> bool:
    """Whether a command line is as a pattern says."""
    written = " ".join(shlex.split(pattern))
    # A star at the end stands for any further words, also for none.
    if not written.endswith(" *"):
        written += " "
    only_stars = re.sub(r"[\[?]", r"[\g<0>]", written)
    return fnmatchcase(" ".join(words) + " ", only_stars)


class AnswerForm(Strict):
    """The answer to some calls of a command."""

    args: Words = "*"
    stdout: str = ""
    stderr: str = ""
    exit: Annotated[int, Field(strict=False, ge=0, le=255)] = 0
    files: dict[Annotated[str, AfterValidator(_path)], str] = Field(
        default_factory=dict
    )


def _reachable(answers: list[AnswerForm]) -> list[AnswerForm]:
    for number, answer in enumerate(answers):
        for earlier in answers[:number]:
            if fits(earlier.args, shlex.split(answer.args)):
                raise ValueError(
                    f"{earlier.args!r} comes first and fits all calls of"
                    f" {answer.args!r}: move it down"
                )
    return answers


_Answers = Annotated[list[AnswerForm], Field(min_length=1), AfterValidator(_reachable)]
ANSWERS: Final[TypeAdapter[Any]] = TypeAdapter(_Answers)
BY_COMMAND: Final = TypeAdapter(dict[str, list[AnswerForm]])
