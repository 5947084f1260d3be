"""What cases need that settings or agents of a run may lack."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from .._util.json_forms import Location
from ..agents.task_sandbox import skipped_if_unrunnable
from ..checks import AnyCheck, rubric_of, why_agent
from ..errors import spelled
from ..settings import Settings
from ..skills.case import Case
from ..skills.kinds import kinds_by_agent, rules_of
from ..trials.subject import CHAT, asks_model
from ..trials.trial import start_files
from .pytest_options import spell
from .run import Run


def find_problem(
    case: Case, checks: Sequence[AnyCheck], run: Run, agents: Collection[str]
) -> tuple[Location, str] | None:
    """The first reason why a case can't run with these settings and agents, and where
    that is written; with --collect-only, what it lacks is only counted.
    """
    if lack := _find_lack(case, checks, run.settings, agents):
        if run.asks:
            return case.place, f"{lack.reason}; add {lack.option}"
        run.lacking[lack.option] += 1
    if agents != {CHAT}:
        try:
            start_files(case)
        except ValueError as error:
            return case.place_of("context", "files"), str(error)
    return None


class _Lack(NamedTuple):
    reason: str
    option: str


def _find_lack(
    case: Case, checks: Sequence[AnyCheck], settings: Settings, agents: Collection[str]
) -> _Lack | None:
    """An option without which a case can't run."""
    # An agent without a model skips what needs a judge.
    needs_judge = rubric_of(checks).texts and any(map(asks_model, agents))
    if needs_judge and not settings.judge:
        return _Lack("this needs a judge", "--skill-judge MODEL")
    if agents == {CHAT} and (reason := why_agent(case, checks)):
        return _Lack(reason, "--skill-agent loop")
    if agents != {CHAT} and case.sandbox.network and not settings.allow_network:
        return _Lack("this needs the network", "--skill-allow-network")
    return None


def skip_if_unrunnable(case: Case, settings: Settings, agents: Collection[str]) -> Case:
    """Skipped if it has an image of its own that can't run here."""
    if agents == {CHAT} or settings.cluster:  # whose workers may differ
        return case
    return skipped_if_unrunnable(case, settings.sandbox, settings.image or "")


def played_by(agent: str, case: Case) -> Case:
    """The case as an agent has it: without a model there is nobody to whom servers,
    a user or an expected failure matter.
    """
    kind = kinds_by_agent().get(agent)
    if kind is None:
        return case

    parts = tuple(part for part in case.parts if not part.servers)
    return replace(case, kind=kind, parts=parts, user=None, xfail=None)


def why_unplayed(case: Case, checks: Sequence[AnyCheck], settings: Settings) -> str:
    """Why an agent without a model skips a case; empty if it does not."""
    if not case.kind.agent:
        return ""
    reason = rules_of(case.kind).why_skipped(case, checks, settings)
    return spelled(reason, spell)
