"""The matrix of neighbours as JSON, and back."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from ..trials.number_types import Amount, Runs, Whole
from ..trials.subject import Subject
from .effect_forms import EffectForm, LiftForm
from .effects import effect_json, lift_json
from .neighbours import Alone, Matrix, Neighbour, Openings, pair_name, sentences


def matrix_report(matrix: Matrix) -> dict[str, Any]:
    """``other`` is null for all others together."""
    return {
        "agent": matrix.agent,
        "model": Subject.of(matrix.agent, matrix.model).model,
        "skills": list(matrix.skills),
        "alone": [
            {
                "skill": one.skill,
                **lift_json("lift", one.lift),
                "cases": one.cases,
                "runs": one.runs,
                **_openings(one.openings),
            }
            for one in matrix.alone
        ],
        "pairs": [
            {
                "skill": one.skill,
                "other": one.other,
                "verdict": one.word,
                **effect_json(one.effect),
                "cases_to_tell": one.cases_to_tell,
                **lift_json("lift", one.lift),
                **_openings(one.openings),
            }
            for one in matrix.pairs
        ],
        "listing_tokens": dict(matrix.listing),
        "listing_tokens_seen": dict(matrix.listing_seen),
        "not_measured": dict(matrix.not_measured),
        "trials": matrix.trials,
        "errored": matrix.errored,
        "error": matrix.error or None,
        "most_runs": matrix.most_runs,
        "cost": matrix.cost,
        "sentences": sentences(matrix),
    }


def _openings(openings: Openings) -> dict[str, Any]:
    return {
        "trials": openings.trials,
        "opened": dict(openings.opened),
        "opened_first": dict(openings.first),
    }


class _Opened(LiftForm):
    trials: Whole
    opened: dict[str, Whole]
    opened_first: dict[str, Whole]

    def openings(self) -> Openings:
        return Openings(self.trials, self.opened, self.opened_first)


class _Alone(_Opened):
    skill: str
    cases: Whole
    runs: Whole


class _Pair(_Opened, EffectForm):
    skill: str
    other: str | None
    cases_to_tell: Whole | None = None


class MatrixForm(BaseModel):
    """A matrix in a file; words and sentences are derived again."""

    model_config = ConfigDict(extra="ignore", strict=True)

    agent: str
    model: str
    skills: list[str]
    alone: list[_Alone]
    pairs: list[_Pair]
    listing_tokens: dict[str, Whole]
    listing_tokens_seen: dict[str, Whole] = {}
    not_measured: dict[str, str] = {}
    trials: Whole = 0
    errored: Whole = 0
    error: str | None = None
    most_runs: Runs = 1
    cost: Amount | None = None

    def value(self) -> Matrix:
        return Matrix(
            agent=self.agent,
            model=Subject(self.agent, self.model).label,
            skills=tuple(self.skills),
            alone=tuple(
                Alone(one.skill, one.lift_value(), one.cases, one.runs, one.openings())
                for one in self.alone
            ),
            pairs=tuple(
                Neighbour(
                    one.skill,
                    one.other,
                    one.effect(pair_name(one.skill, one.other)),
                    one.lift_value(),
                    one.openings(),
                    one.cases_to_tell,
                )
                for one in self.pairs
            ),
            listing=self.listing_tokens,
            listing_seen=self.listing_tokens_seen,
            not_measured=self.not_measured,
            trials=self.trials,
            errored=self.errored,
            error=self.error or "",
            most_runs=self.most_runs,
            cost=self.cost,
        )
