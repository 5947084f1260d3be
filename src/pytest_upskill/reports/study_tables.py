"""The tables of any study, for the terminal, Markdown and the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .._util.texts import one_line, percent, unsigned_points, whole
from ..results.contrasts import Contrast, Study, StudyArm, span_words

NO_CHANGE: Final = ("no change shown", "not known", "no effect shown", "can't tell")
_UNKNOWN: Final = "-"
_MOST_SKILLS: Final = 4


@dataclass(frozen=True)
class StudyTable:
    """Texts of a table, without the columns of which nothing is known;
    names may be long.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[str, ...] = ()  # the verdict of each row, if it has one
    folded: str = ""  # rows that are left out, in words

    @classmethod
    def of(
        cls,
        headers: Sequence[str],
        rows: Sequence[Sequence[str]],
        words: Sequence[str] = (),
        folded: str = "",
    ) -> "StudyTable":
        names, *columns = zip(headers, *rows, strict=True)
        known = [column for column in columns if set(column[1:]) - {_UNKNOWN}]
        heads, *lines = zip(names, *known, strict=True) if known else [()]
        return cls(heads, tuple(lines), tuple(words), folded)


@dataclass(frozen=True)
class Block:
    """A table with what it is about and what it shows."""

    title: str
    facts: str
    conclusions: Sequence[str]  # sentences; the last one is to be remembered
    table: StudyTable
    legend: str


def study_block(study: Study, most: int | None = None, *, brief: bool = False) -> Block:
    table = contrast_table(study, most, brief=brief)
    legend = _legend(study)
    return Block(study.title, _facts(study), study.conclusions, table, legend)


def contrast_table(
    study: Study, most: int | None = None, *, brief: bool = False
) -> StudyTable:
    """Of more than ``most`` contrasts, those without a change are folded into words.

    If it is ``brief``, tokens have no interval.
    """
    contrasts = study.contrasts
    if most is not None and len(contrasts) > most:
        contrasts = tuple(c for c in contrasts if c.word not in NO_CHANGE)[:most]
    hidden = [
        contrast.word for contrast in study.contrasts if contrast not in contrasts
    ]
    counts = [f"{hidden.count(word):,} {word}" for word in dict.fromkeys(hidden)]
    folded = f"{len(hidden):,} more: {', '.join(counts)}" if hidden else ""
    words = [contrast.word for contrast in contrasts]
    headers = ("contrast", "change", "tokens", "verdict")
    return StudyTable.of(
        headers, [_contrast_row(c, brief) for c in contrasts], words, folded
    )


def _contrast_row(contrast: Contrast, brief: bool) -> tuple[str, str, str, str]:
    """``without Links``, ``-4 (-12 to +4)``, ``-31``, ``not known``."""
    return (
        contrast.name,
        span_words(contrast.lift) if contrast.lift else _UNKNOWN,
        _UNKNOWN if contrast.tokens is None else _tokens(contrast, brief),
        contrast.word,
    )


def _tokens(contrast: Contrast, brief: bool) -> str:
    """``-31``, ``-31 (-36 to -26)``."""
    mean, *bounds = (
        _signed(tokens) for tokens in (contrast.tokens, *(contrast.tokens_span or ()))
    )
    differ = len(set(bounds)) > 1 and not brief
    return f"{mean} ({' to '.join(bounds)})" if differ else mean


def _signed(tokens: float | None) -> str:
    number = round(tokens or 0.0)
    return f"{number:+,}" if number else "0"


def arm_table(study: Study, *, every: bool) -> StudyTable:
    """Unless ``every``, only the arms of a change that is shown."""
    shown = [
        contrast for contrast in study.contrasts if contrast.word in ("hurts", "helps")
    ]
    names = {name for contrast in shown for name in (*contrast.plus, *contrast.minus)}
    rows = [_arm_row(arm) for arm in study.arms if every or arm.name in names]
    return StudyTable.of(("arm", "score", "tokens", "opened"), rows)


def _arm_row(arm: StudyArm) -> tuple[str, str, str, str]:
    """``pdf alone``, ``80%``, ``1,131``, ``pdf 6 of 6``."""
    names = sorted(arm.opened, key=lambda name: (-arm.opened[name], name))
    opened = [
        f"{one_line(name, 30)} {arm.opened[name]:,}" for name in names[:_MOST_SKILLS]
    ]
    return (
        arm.name,
        _UNKNOWN if arm.rate is None else percent(arm.rate),
        _UNKNOWN if arm.tokens is None else whole(arm.tokens),
        f"{', '.join(opened) or 'none'} of {arm.trials:,}" if arm.trials else _UNKNOWN,
    )


def _legend(study: Study) -> str:
    """What the numbers of the contrasts are."""
    contrasts, sentences = study.contrasts, [study.legend]
    if len(contrasts) > 1:
        sentences[0] += (
            f"; the intervals hold for all {len(contrasts):,} of them together"
        )
    if margin := next(
        (contrast.margin for contrast in contrasts if contrast.margin), None
    ):
        sentences.append(
            f"A loss below {unsigned_points(margin)} points does not count"
        )
    return ". ".join(sentences)


def _facts(study: Study) -> str:
    """``haiku · 24 cases × 2 runs · 96 trials``."""
    facts = (one_line(study.label, 60), study.size, study.spent)
    return " · ".join(filter(None, facts))
