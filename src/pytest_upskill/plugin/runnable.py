"""Which cases can run with the settings and agents of a run, and why others can't."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from .._util.json_forms import Location, cases_error
from ..checks import AnyCheck, CheckedCase, load_checked_cases, rubric_of, why_agent
from ..errors import InputError, SettingsError
from ..settings import Settings
from ..skills.case import Case
from ..skills.case_loading import broken_case
from ..skills.loaded import LoadedCases
from ..trials.outfit import start_files
from ..trials.subject import CHAT
from .paths import SkillSource

_NO_JUDGE: Final = "this needs a judge; add --skill-judge MODEL"
_NO_AGENT: Final = "add --skill-agent loop"
_NO_NETWORK: Final = "this needs the network; add --skill-allow-network"
_NAME_ONE: Final = "Name one: --skill-judge MODEL. To see the cases: --collect-only."


def require_judge(sources: Sequence[SkillSource], settings: Settings) -> None:
    """One error for all skills, if none of several can be tested without a judge."""
    asked = [one for one in sources if one.asks_triggers(settings, *settings.agents)]
    if len(sources) > 1 and not asked and all(map(_needs_judge, sources)):
        problem = f"all cases of these {len(sources):,} skills need a judge"
        raise SettingsError("judge", problem, _NAME_ONE)


def _needs_judge(source: SkillSource) -> bool:
    """Whether every case has a rubric; False if the file has other problems to report."""
    try:
        loaded = load_checked_cases(source.cases_file or source.file, folder=source.folder)
    except InputError:
        return False
    judged = _with_rubric(loaded)
    return bool(judged) and not loaded.broken and len(judged) == len(loaded.cases)


def _with_rubric(loaded: LoadedCases[CheckedCase]) -> list[Case]:
    return [case for case, checks in loaded.cases if rubric_of(checks).texts]


def why_not(
    case: Case,
    checks: Sequence[AnyCheck],
    *,
    settings: Settings,
    agents: Collection[str],
    asks: bool,
) -> tuple[Location, str] | None:
    """Why a case can't run with these settings and agents, and where that is written."""
    if asks and rubric_of(checks).texts and not settings.judge:
        return case.place, _NO_JUDGE
    if agents == {CHAT}:
        why = why_agent(case, checks) if asks else ""
        return (case.place, f"{why}; {_NO_AGENT}") if why else None
    if asks and case.sandbox.network and not settings.allow_network:
        return case.place, _NO_NETWORK
    try:
        start_files(case)
    except ValueError as error:
        return case.place_of("context", "files"), str(error)
    return None


def only_runnable(
    loaded: LoadedCases[CheckedCase],
    why_not: Callable[[Case, Sequence[AnyCheck]], tuple[Location, str] | None],
) -> LoadedCases[CheckedCase]:
    """Without cases that can't run; if no other can either, that is one error for the file."""
    refused = {
        case.place: (case, problem)
        for case, checks in loaded.cases
        if (problem := why_not(case, checks))
    }
    if refused and len(refused) == len(loaded.cases):
        raise cases_error(loaded.file, [next(iter(refused.values()))[1]])
    return loaded.only(
        [one for one in loaded.cases if one[0].place not in refused],
        [broken_case(loaded.file, case, [problem]) for case, problem in refused.values()],
    )
