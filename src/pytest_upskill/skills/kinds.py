"""Kinds of cases: what sets the cases of a kind apart from others.

Most are of the kind `CASE`. Features add kinds of their own, which are found by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from ..registry import features


@dataclass(frozen=True)
class CaseKind:
    """What sets the cases of a kind apart; cases of one ``noun`` are counted together.

    ``arms`` are those that they are asked in, all if there are none. ``runs`` and
    ``threshold`` name the settings that hold for a case that says nothing itself.
    """

    name: str
    noun: str = "case"
    mark: str = ""  # pytest's, which selects them
    prefix: str = ""  # of all their ids
    arms: tuple[str, ...] = ()
    runs: str = "runs"
    threshold: str = "case_threshold"  # without one, more than half of the runs
    until_opened: bool = False  # a trial ends once it is decided what it opens
    in_lift: bool = True  # whether lift and verdicts are of them
    gates: tuple[str, ...] = ()  # settings that limit what comes of them
    section: str = ""  # "module:class" in the feature: the results that tell of them
    agent: str = ""  # which carries them out, and asks no model
    # The module that grades these, with `why_skipped`, `choose_checks`,
    # `find_faults` and, for lint, `find_mistakes`
    rules: str = ""
    arm_titles: tuple[tuple[str, str], ...] = ()  # if they are not the usual ones

    @property
    def is_case_apart(self) -> bool:
        """Whether they are cases, but those that no lift can be of."""
        is_in_none = not self.in_lift and not self.agent
        return is_in_none and self.noun == CASE.noun


CASE: Final = CaseKind(
    "case", gates=("min_lift", "min_pass_rate", "max_token_growth", "no_worse")
)
# All of their checks are of answers with the skill, so no arm can be compared.
SKILL_ALONE: Final = CaseKind("skill alone", arms=("skill",), in_lift=False)
OPENING: Final = CaseKind("opening", arms=("skill",), until_opened=True, in_lift=False)


@cache
def case_kinds() -> Mapping[str, CaseKind]:
    """All kinds by name, those of features too."""
    kinds = {kind.name: kind for kind in (CASE, SKILL_ALONE, OPENING)}
    for feature in features().values():
        for kind in feature.kinds:
            kinds[kind.name] = kind
    return kinds


@cache
def kinds_by_agent() -> Mapping[str, CaseKind]:
    """The kinds of cases that no model is asked, by the agent that has no model."""
    return {kind.agent: kind for kind in case_kinds().values() if kind.agent}


def rules_of(kind: CaseKind) -> Any:
    """The module that grades the cases of a kind without a model."""
    return import_module(kind.rules)


def kind_of_id(name: str) -> CaseKind:
    """The kind of a case with this id."""
    for kind in case_kinds().values():
        if kind.prefix and name.startswith(kind.prefix):
            return kind
    return CASE


def kind_named(name: str) -> CaseKind:
    """The kind of this name; ValueError if no feature has it."""
    kinds = case_kinds()
    if name not in kinds:
        raise ValueError(f"must be a kind of cases: {', '.join(kinds)}")
    return kinds[name]
