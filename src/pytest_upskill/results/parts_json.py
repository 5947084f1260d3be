"""The parts of a skill as JSON, and back."""

from typing import Any

from ..skills.skill_parts import By, PartKind
from ..trials.number_types import Amount, Number, Share, Whole
from ..trials.subject import CHAT, Subject
from .effect_forms import EffectForm, LiftForm, lift_of
from .effects import effect_json, lift_json
from .losses import MARGIN, standing_of
from .parts import PartEffect, Parts, Saved, Version, sentences


def parts_report(found: Parts) -> dict[str, Any]:
    """``change`` is what leaving a part out does: below 0 if it is missed."""
    return {
        "skill": found.skill,
        "agent": found.agent,
        "model": Subject.of(found.agent, found.model).model,
        "by": found.by,
        "tokens": found.tokens,
        **lift_json("lift", found.lift),
        "margin": found.margin,
        "parts": [_part(one, found.margin) for one in found.parts],
        "not_measured": dict(found.not_measured),
        **lift_json("held_out", found.held_out),
        "versions": [_version(one, found.margin) for one in found.versions],
        "trials": found.trials,
        "errored": found.errored,
        "error": found.error or None,
        "cost": found.cost,
        "notes": list(found.notes),
        "sentences": sentences(found),
    }


def _part(part: PartEffect, margin: float) -> dict[str, Any]:
    saved = part.saved or (None, None, None)
    return {
        "name": part.name,
        "kind": part.kind,
        "line": part.line or None,
        "tokens": part.tokens,
        **dict(zip(("saved", "saved_low", "saved_high"), saved, strict=True)),
        **effect_json(part.effect),
        "tokens_per_point": part.tokens_per_point,
        "standing": part.standing(margin),
        "could_go": part.could_go,
    }


def _version(version: Version, margin: float) -> dict[str, Any]:
    return {
        "tokens": version.tokens,
        **lift_json("lift", version.lift),
        **lift_json("change", version.change),
        "standing": standing_of(version.change, margin),
        "left_out": list(version.parts),
        "folder": version.folder or None,
        "cases": version.cases,
        "cases_needed": version.cases_needed,
    }


class _Part(EffectForm):
    name: str
    kind: PartKind
    line: Whole | None
    tokens: Whole
    saved: Number | None = None
    saved_low: Number | None = None
    saved_high: Number | None = None
    could_go: bool

    def value(self) -> PartEffect:
        saved = None
        if self.saved is not None:
            saved = Saved(self.saved, self.saved_low, self.saved_high)
        effect = self.effect(self.name)
        about = (self.name, self.kind, self.line or 0, self.tokens)
        return PartEffect(*about, effect, self.could_go, saved)


class _Version(LiftForm):
    tokens: Whole
    change: Number | None = None
    change_low: Number | None = None
    change_high: Number | None = None
    change_p_value: Share | None = None
    left_out: list[str]
    folder: str | None = None
    cases: Whole = 0
    cases_needed: Whole | None = None

    def value(self) -> Version:
        change = lift_of(self.change, self.change_low, self.change_high, self.change_p_value)
        return Version(
            self.tokens,
            self.lift_value(),
            change,
            tuple(self.left_out),
            self.folder or "",
            self.cases,
            self.cases_needed,
        )


class PartsForm(LiftForm):
    """Parts in a file; words and sentences are derived again."""

    skill: str
    agent: str = CHAT
    model: str
    by: By = "section"
    tokens: Whole
    margin: Share = MARGIN
    parts: list[_Part]
    not_measured: dict[str, str]
    held_out: Number | None = None
    held_out_low: Number | None = None
    held_out_high: Number | None = None
    held_out_p_value: Share | None = None
    versions: list[_Version]
    trials: Whole = 0
    errored: Whole = 0
    error: str | None = None
    cost: Amount | None = None
    notes: list[str]

    def value(self) -> Parts:
        held = (self.held_out, self.held_out_low, self.held_out_high, self.held_out_p_value)
        return Parts(
            self.skill,
            Subject(self.agent, self.model).label,
            self.tokens,
            self.lift_value(),
            tuple(one.value() for one in self.parts),
            tuple(one.value() for one in self.versions),
            lift_of(*held),
            self.margin,
            self.trials,
            self.cost,
            self.agent,
            self.by,
            self.not_measured,
            self.errored,
            self.error or "",
            tuple(self.notes),
        )
