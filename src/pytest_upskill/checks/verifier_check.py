"""``verifier``: a task's own script grades what an agent left,
and writes a reward from 0 to 1.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, TypeAdapter

from .._util.json_forms import Strict
from .._util.texts import end_of, first_few, one_line, plain
from ..errors import CheckError
from ..skills.task_files import verifier_files
from ..skills.task_forms import MOST_SECONDS, Variables
from ..trials.answer import STOPPED
from .check import CheckContext, CheckKind, Measured, Result, Text
from .final_workspace import Verified, Verifier
from .time_budget import not_counted
from .verifier_run import MOST_REWARD, REWARDS

_DEFAULT_SECONDS: Final = 600.0
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ROUNDING: Final = 1e-9
_SHOWN: Final = 300  # characters of the output in an error
_SUPPLY: Final = "put it into the image, or allow verifiers the network"


class VerifierForm(Strict):
    """A script that grades what an agent left."""

    run: Text = Field(
        description=(
            "A script below a folder of the skill, such as 'tests/test.sh'. That folder"
            " is put to /tests, and the script writes /logs/verifier/reward.txt or"
            " reward.json."
        )
    )
    timeout: Annotated[float, Field(gt=0, le=MOST_SECONDS)] = Field(
        _DEFAULT_SECONDS, description="Seconds that it may take (default: 600)."
    )
    env: Variables = Field(
        default_factory=dict, description="Environment variables of the script."
    )


def verifier_kind(folder: Path | None = None) -> CheckKind:
    """``verifier`` of a skill or task in ``folder``."""

    def verifier(form: VerifierForm) -> Verifier:
        if folder is None:
            raise ValueError(f"{form.run!r} is in no skill's folder")
        path = PurePosixPath(form.run)
        files = verifier_files(folder, form.run)
        script, env = str(path.relative_to(path.parts[0])), tuple(form.env.items())
        return Verifier(script, path.parts[0], files, form.timeout, env, folder.name)

    argument: TypeAdapter[Any] = TypeAdapter(
        Annotated[VerifierForm, AfterValidator(verifier)]
    )
    return CheckKind(
        "verifier",
        argument,
        _results,
        needs_agent=True,
        of_files=True,
        measure=_measured,
        grades_anything=True,
    )


def _results(context: CheckContext) -> Iterator[Result]:
    if context.why_not_gradable:
        yield None, context.why_not_gradable
        return
    reward = _reward(context)
    limit = context.answer.why_not_gradable
    aside = f"; {limit}" if limit.startswith(STOPPED) and reward < 1 else ""
    yield reward >= 1, f"reward {plain(reward)}{aside}"


def _measured(context: CheckContext) -> Measured:
    reward = _reward(context)
    return Measured(reward, "" if reward >= 1 else _verified(context).output)


def _verified(context: CheckContext) -> Verified:
    with not_counted():
        return context.workspace.verify(context.value)


def _reward(context: CheckContext) -> float:
    """CheckError if the verifier does not say how good it is."""
    verifier, verified = context.value, _verified(context)
    problem, reward = verified.problem, 0.0
    if not problem:
        try:
            reward = reward_in(verified)
        except ValueError as error:
            crlf = b"\r\n" in next(
                f.data for f in verifier.files if f.path == verifier.script
            )
            problem = f"{error}{'; its lines end with CR LF' if crlf else ''}"
    if verified.missing and (problem or reward < 1):
        line = one_line(verified.missing, 200)
        problem = f"it needs what is not there ({line}): {_SUPPLY}"
    if reward >= 1 and not problem:
        problem = verified.unfinished
    if problem:
        end = end_of(verified.output, _SHOWN)
        raise CheckError(
            f"{verifier.name}: {problem}{f'; it ended: {end}' if end else ''}"
        )
    return reward


def reward_in(verified: Verified) -> float:
    """The reward that a verifier wrote; ValueError says why there is none."""
    if not verified.rewards:
        raise ValueError(
            f"it wrote neither {' nor '.join(REWARDS)} into /logs/verifier"
        )
    name, data = verified.rewards[0]
    if data is None:
        raise ValueError(f"{name} is no file")
    if len(data) >= MOST_REWARD:
        raise ValueError(f"{name} is too long")
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise ValueError(f"{name} is empty")
    if name.endswith(".json"):
        text = _number_in(name, text)
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} has no number: {one_line(text, 60)}")
    if not -_ROUNDING <= number <= 1 + _ROUNDING:
        raise ValueError(
            f"{name} has a reward that is not from 0 to 1: {one_line(text, 60)}"
        )
    return min(max(0.0, number), 1.0)  # 0 instead of -0


def _number_in(name: str, text: str) -> str:
    """The number of a JSON file: the only one, or that named reward."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is no JSON: {one_line(text, 60)}") from None
    if isinstance(value, dict):
        if "reward" not in value and len(value) != 1:
            names = first_few([one_line(key, 30) for key in value], 5) or "nothing"
            raise ValueError(f'{name} has no "reward", but {names}')
        value = value.get("reward", next(iter(value.values())))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} has no number: {one_line(text, 60)}")
    return repr(value)
