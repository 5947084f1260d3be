"""What it amounts to for each skill: sentences, pictures and numbers, in plain HTML."""

from collections.abc import Sequence
from typing import Final

from ...summary import Summary
from ...texts import counted, dollars, points
from ...trials import SkillInfo
from ...verdict import Verdict, signal_lines, sweet_spot
from ..tables import checks_text
from .data import anchor
from .plots import dumbbell, frontier, points_of
from .shell import text

_UNKNOWN: Final = "–"
_HEADERS: Final = (
    ("model", ""),
    ("without", "num"),
    ("with", "num"),
    ("lift", "num"),
    ("checks", "num"),
    ("tokens", "num"),
    ("$ per 1000", "num"),
    ("seconds", "num"),
    ("errors", "num"),
    ("verdict", ""),
)


def skill_section(skill: SkillInfo, verdicts: Sequence[Verdict], title: str) -> str:
    rows = [verdict.summary for verdict in verdicts]
    cases, runs = max(row.cases for row in rows), max(row.runs for row in rows)
    size = f"{counted(cases, 'case')} × {counted(runs, 'run')}"
    spot = sweet_spot(verdicts)
    told = f'<p class="spot-told"><b>Sweet spot:</b> {text(spot)}</p>' if spot else ""
    return (
        f'<section class="skill" id="{skill_anchor(skill.name)}"><h2>{text(title)}</h2>'
        f'<p class="facts">{size} · about {counted(skill.tokens, "token")} · '
        f"<code>{text(skill.path)}</code></p>"
        f'<ul class="verdicts">{"".join(map(_verdict, verdicts))}</ul>{told}'
        f"{_plots(skill, verdicts)}{_numbers(verdicts)}</section>"
    )


def skill_anchor(name: str) -> str:
    return f"skill-{anchor(name)}"


def _verdict(verdict: Verdict) -> str:
    since = [verdict.since.sentence] if verdict.since else []
    more = "".join(f"<li>{text(line)}</li>" for line in [*since, *signal_lines(verdict)])
    return (
        f"<li>{_word(verdict)}<div><p><b>{text(verdict.summary.model)}</b> "
        f"{text(verdict.sentence)}.</p>{f'<ul>{more}</ul>' if more else ''}</div></li>"
    )


def _word(verdict: Verdict) -> str:
    word = verdict.word or "no baseline"
    return f'<span class="word {word.replace(" ", "-")}">{word}</span>'


def _plots(skill: SkillInfo, verdicts: Sequence[Verdict]) -> str:
    if all(verdict.summary.skill_rate is None for verdict in verdicts):
        return '<p class="note">Nothing was answered, so there is nothing to draw.</p>'
    first = _figure("Pass rate", dumbbell(verdicts), _arms(skill, verdicts))
    known, plane = points_of(verdicts), frontier(verdicts)
    if not plane or not known:
        return (
            f'<div class="plots">{first}<p class="note">Neither prices nor tokens of all models '
            "are known, so cost is not drawn.</p></div>"
        )
    unit = "$ per 1000 answers" if known[1].is_cost else "tokens per answer"
    scale = ", logarithmic" if known[1].is_log else ""
    keys = [_key("steps", "efficient frontier")]
    keys += [_key("ring", "sweet spot")] if sweet_spot(verdicts) and known[1].is_cost else []
    second = _figure(f"Pass rate against {unit}{scale}", plane, keys)
    # One row is too low to stand beside the other picture.
    kind = "plots" if len(verdicts) > 1 else "plots stacked"
    return f'<div class="{kind}">{first}{second}</div>'


def _arms(skill: SkillInfo, verdicts: Sequence[Verdict]) -> list[str]:
    """What the marks of the first picture are; only those that it has."""
    compared = any(verdict.summary.baseline_rate is not None for verdict in verdicts)
    it = "it" if compared else "the skill"
    keys = [_key("hollow", "without the skill")] if compared else []
    keys += [_key("rhomb", f"with {it} at {skill.against}")] if skill.against else []
    return [*keys, _key("filled", f"with {it}"), _key("whisker", "95 % interval")]


def _figure(title: str, drawn: str, keys: Sequence[str]) -> str:
    legend = f'<p class="legend">{"".join(keys)}</p>'
    return f"<figure><figcaption>{title}</figcaption>{drawn}{legend}</figure>"


def _key(kind: str, told: str) -> str:
    return f'<span><i class="{kind}" aria-hidden="true"></i>{text(told)}</span>'


def _numbers(verdicts: Sequence[Verdict]) -> str:
    """What the pictures show, and more, in figures."""
    rows = [_cells(verdict) for verdict in verdicts]
    shown = [i for i, (name, _) in enumerate(_HEADERS) if name != "$ per 1000" or _paid(verdicts)]
    head = "".join(
        f'<th scope="col" class="{kind}">{name}</th>'
        for name, kind in (_HEADERS[index] for index in shown)
    )
    body = "".join(f"<tr>{''.join(row[index] for index in shown)}</tr>" for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Numbers of each model">'
        f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _paid(verdicts: Sequence[Verdict]) -> bool:
    return any(v.summary.baseline_cost or v.summary.skill_cost for v in verdicts)


def _cells(verdict: Verdict) -> list[str]:
    row, lift = verdict.summary, verdict.lift
    told = _UNKNOWN
    if lift:
        told = f"{points(lift.lift)} <small>{points(lift.low)} to {points(lift.high)}</small>"
    costs = [cost and 1000 * cost for cost in (row.baseline_cost, row.skill_cost)]
    values = [
        _percent(row.baseline_rate),
        _percent(row.skill_rate),
        told,
        checks_text(row) or _UNKNOWN,
        _arrow([value and f"{value:,.0f}" for value in (row.baseline_tokens, row.skill_tokens)]),
        _arrow([None if cost is None else dollars(cost) for cost in costs]),
        _arrow([value and f"{value:.1f}" for value in (row.baseline_seconds, row.skill_seconds)]),
        f"{row.errored:,}",
    ]
    name = f'<th scope="row">{text(row.model)}<small>{text(row.model_id)}</small></th>'
    return [
        name,
        *(f'<td class="num">{value}</td>' for value in values),
        f"<td>{_word(verdict)}</td>",
    ]


def _percent(rate: float | None) -> str:
    return _UNKNOWN if rate is None else f"{rate:.0%}"


def _arrow(values: Sequence[object]) -> str:
    return " → ".join(str(value) for value in values if value is not None) or _UNKNOWN


def matrix(by_skill: Sequence[tuple[SkillInfo, list[Verdict]]], models: Sequence[str]) -> str:
    """Many skills at a glance: a row each, a column for each model."""
    head = "".join(f'<th scope="col">{text(model)}</th>' for model in models)
    rows = []
    for skill, verdicts in by_skill:
        known = {verdict.summary.model: verdict for verdict in verdicts}
        cells = "".join(f"<td>{_cell(known.get(model))}</td>" for model in models)
        link = f'<a href="#{skill_anchor(skill.name)}">{text(skill.name)}</a>'
        rows.append(f'<tr><th scope="row">{link}</th>{cells}</tr>')
    return (
        '<section><h2>Skills</h2><div class="scroll" tabindex="0" role="region" '
        f'aria-label="All skills on all models"><table class="matrix"><thead><tr>'
        f'<th scope="col">skill</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        "</div></section>"
    )


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return _UNKNOWN
    row, lift = verdict.summary, verdict.lift
    rates = _arrow([rate if rate is None else f"{rate:.0%}" for rate in _rates(row)])
    told = f"<b>{points(lift.lift)}</b> " if lift else ""
    return f"{told}{_word(verdict)}<small>{rates}</small>"


def _rates(row: Summary) -> tuple[float | None, float | None]:
    return row.baseline_rate, row.skill_rate
