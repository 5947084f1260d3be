"""Effects of a study: how much one way to install skills differs from another, paired by case."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._util.texts import counted, dollars
from ..stats import Lift

if TYPE_CHECKING:
    from .neighbours import Matrix
    from .parts import Parts

# shown: the interval excludes 0, adjusted for all effects of the study; none shown: all runs were
# made; dropped: more runs could hardly have shown anything; incomplete: answers are missing.
State = Literal["shown", "none shown", "dropped", "incomplete"]


@dataclass(frozen=True)
class Effect:
    """A contrast of variants: a mean over cases, of -1 to 1 (of two lifts: -2 to 2)."""

    name: str  # of the contrast
    lift: Lift | None  # adjusted; None if no case has an answer in all of its variants
    cases: int
    runs: int
    state: State
    cases_needed: int | None = None  # that would show an effect of this size; None: too many


def lift_json(name: str, lift: Lift | None) -> dict[str, float | None]:
    """A lift as flat keys: ``lift``, ``lift_low``, ``lift_high`` and ``lift_p_value``."""
    values = tuple(lift) if lift else (None,) * 4
    return dict(zip([name, *(f"{name}_{of}" for of in _OF_LIFT)], values, strict=True))


def effect_json(effect: Effect) -> dict[str, Any]:
    """An effect as flat keys; ``change`` is its size."""
    return {
        **lift_json("change", effect.lift),
        "cases": effect.cases,
        "runs": effect.runs,
        "state": effect.state,
        "cases_needed": effect.cases_needed,
    }


_OF_LIFT = ("low", "high", "p_value")


def spent(study: "Matrix | Parts") -> str:
    """``480 trials, 3 without an answer, $1.20``."""
    words = [counted(study.trials, "trial")]
    words += [f"{study.errored:,} without an answer"] if study.errored else []
    return ", ".join([*words, *([dollars(study.cost)] if study.cost else [])])
