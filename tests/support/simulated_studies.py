"""Simulated studies: variants with known pass rates, asked look by look as a lab does."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pytest_upskill.measure.study import Contrast, differences
from pytest_upskill.results.losses import MARGIN
from pytest_upskill.stats import Family

Rates = Mapping[str, list[float]]  # by variant: the chance of each case to pass


@dataclass(frozen=True)
class Simulated:
    """Variants and contrasts, and the effect of each contrast over all cases there could be."""

    rates: Rates
    contrasts: tuple[Contrast, ...]
    true: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    family: Family
    asked: int  # trials
    whole: int  # trials if every variant had got all runs


def carry_out(draw: random.Random, study: Simulated, plan: tuple[int, ...]) -> Outcome:
    """The looks of a study; variants that no open contrast needs are asked no more."""
    family = Family((one.name for one in study.contrasts), plan)
    passed: dict[str, list[list[float]]] = {
        name: [[] for _ in own] for name, own in study.rates.items()
    }
    asked = 0
    for before, runs in pairwise((0, *plan)):
        open_ones = [one for one in study.contrasts if one.name in family.open]
        needed = {name for one in open_ones for name in (*one.plus, *one.minus)}
        for name in study.rates:
            if name in needed:
                for chance, own in zip(study.rates[name], passed[name], strict=True):
                    own += [float(draw.random() < chance) for _ in range(runs - before)]
                asked += len(study.rates[name]) * (runs - before)
        scores = {
            name: {str(case): [own] for case, own in enumerate(cases)}
            for name, cases in passed.items()
            if name in needed
        }
        found = {
            one.name: differences(
                [scores[name] for name in one.plus],
                [scores[name] for name in one.minus],
                runs,
                one.margin,
            )
            for one in open_ones
        }
        family.look({name: own for name, own in found.items() if own})
        if not family.open:
            break
    whole = sum(len(own) for own in study.rates.values()) * plan[-1]
    return Outcome(family, asked, whole)


LIFT = 0.4  # of the skills, on average over all cases that there could be

Pair = tuple[float, float]  # chances of a case without the skill, and with it
Case = Callable[[random.Random], Pair]


def matrix_study(
    draw: random.Random, case: Case, cases: int, skills: int, harm: float = 0.0
) -> Simulated:
    """Skills beside each other; the first loses ``harm`` of its lift beside the second."""
    rates, contrasts, true = dict[str, list[float]](), list[Contrast](), dict[str, float]()
    for one in range(skills):
        own = [case(draw) for _ in range(cases)]
        others = [str(other) for other in range(skills) if other != one]
        others += ["all"] if len(others) > 1 else []
        for other in ("alone", *others):
            hurt = harm if one == 0 and other in ("1", "all") else 0.0
            rates[f"{one} {other} baseline"] = [without for without, _ in own]
            rates[f"{one} {other} skill"] = [s - hurt * (s - b) for b, s in own]
            if other != "alone":
                name = f"{one} {other}"
                plus = (f"{name} skill", f"{one} alone baseline")
                contrasts.append(Contrast(name, plus, (f"{name} baseline", f"{one} alone skill")))
                true[name] = -hurt * LIFT
    return Simulated(rates, tuple(contrasts), true)


def parts_study(
    draw: random.Random,
    case: Case,
    cases: int,
    parts: int,
    loss: float = 0.0,
    *,
    mixed: bool = False,
) -> Simulated:
    """A skill without each of its parts; without the first it loses ``loss`` of its lift.

    ``mixed``: leaving out a part helps some cases and hurts others, as often as not.
    """
    own = [case(draw) for _ in range(cases)]
    rates = {"whole": [with_it for _, with_it in own]}
    contrasts, true = list[Contrast](), dict[str, float]()
    for part in range(parts):
        name = str(part)
        lost = loss if part == 0 else 0.0
        rates[name] = [s - lost * (s - b) for b, s in own]
        if mixed:
            rates[name] = [s + draw.choice((-1, 1)) * min(0.4, s, 1 - s) for s in rates[name]]
        contrasts.append(Contrast(name, (name,), ("whole",), MARGIN))
        true[name] = -lost * LIFT
    return Simulated(rates, tuple(contrasts), true)
