"""What changed since an earlier run: a section of the page with links to its cases."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..._util.texts import counted, one_line, percent
from ...results.arm_comparison import unit_of
from ...results.case_changes import ChangedCase, ChangeKind, Changes, Place
from ...results.contrasts import points_words
from ...results.run import RunResults
from ...results.run_comparison import PairComparison
from ...trials.plan import Count
from .case_data import case_anchor
from .markup import commit_tag, text, time_tag

_MOST_LISTED: Final = 25  # cases of a kind
_NAME_LIMIT: Final = 100
# In the order of the page: what is to be mended comes first.
_KINDS: Final[Mapping[ChangeKind, tuple[str, str]]] = {
    "broke": ("Broke", "passed in the run before, and fail now"),
    "fixed": ("Fixed", "failed in the run before, and pass now"),
    "fell": ("Passes fewer runs", "on the same side of the threshold as before"),
    "rose": ("Passes more runs", "on the same side of the threshold as before"),
    "checks": ("Other checks pass", "as often as before"),
    "edited": ("Edited", "another question or other checks, so the results are not compared"),
    "new": ("New", "not in the run before"),
    "answer": ("Only the answer changed", "passes as often as before"),
}


def changed_section(results: RunResults, changes: Changes) -> str:
    """Which run it is, what each model shows, and the cases by what became of them."""
    groups, notes = _groups(changes), "".join(f"<li>{text(note)}</li>" for note in _notes(changes))
    several, compared = len(results.skills) > 1, changes.comparison.pairs
    if not groups and all(pair.same_skill and not _about_pair(pair) for pair in compared):
        compared = ()  # nothing changed, which takes one line
    pairs = "".join(_pair(pair, several) for pair in compared)
    listed = f'<ul class="verdicts">{pairs}</ul>' if pairs else ""
    notes_list = f'<ul class="notes">{notes}</ul>' if notes else ""
    return (
        '<section id="changed" class="changed"><h2>Changed since the run before</h2>'
        f'<p class="facts">{_about(changes)}</p>{listed}'
        f"{notes_list}{groups or _nothing(changes)}</section>"
    )


def _about(changes: Changes) -> str:
    run = changes.earlier.results
    facts = [
        f"compared with <code>{text(one_line(changes.earlier.id, _NAME_LIMIT))}</code>",
        time_tag(run.started),
    ]
    if run.commit:
        facts.append(commit_tag(run.commit))
    return " · ".join([*facts, f"{counted(changes.compared, 'test')} in both"])


def _pair(pair: PairComparison, several: bool) -> str:
    """What the statistics say of a skill on a model; the numbers alone if they say nothing."""
    name = f"{pair.skill} on {pair.title}" if several else pair.title
    skill = "the same skill" if pair.same_skill else "the skill was edited"
    about = [skill, *_about_pair(pair)]
    facts = f'<p class="facts">{text("; ".join(about))}</p>'
    change = pair.change
    if change is None or pair.before is None or pair.after is None:
        none = f"<p><b>{text(name)}</b> no {pair.noun} in common</p>"
        return f"<li>{_word('not compared')}<div>{none}{facts}</div></li>"
    points = points_words(change.lift, change.unit)
    rates = f"{percent(pair.before)} → {percent(pair.after)}{unit_of(pair.score)}"
    cases = f"over {counted(pair.cases, pair.noun)} with the skill"
    return (
        f"<li>{_word(change.word)}<div><p><b>{text(name)}</b> {rates}, {points} {cases}</p>"
        f"{facts}</div></li>"
    )


def _about_pair(pair: PairComparison) -> list[str]:
    worse = [f"worse: {pair.change.worse}"] if pair.change and pair.change.worse else []
    return [*worse, *pair.differences, *_left_out(pair)]


def _word(word: str) -> str:
    kind = {"better": "helps", "worse": "hurts"}.get(word, "")
    return f'<span class="word {kind}">{text(word)}</span>'


def _left_out(pair: PairComparison) -> Iterator[str]:
    counts = pair.left_out
    numbers = {
        "edited, so not compared": counts.edited,
        "not answered in both": counts.unanswered,
    }
    for reason, number in numbers.items():
        if number:
            yield f"{counted(number, pair.noun)} {reason}"


def _notes(changes: Changes) -> Iterator[str]:
    for group, number in changes.not_asked.items():
        name = one_line(str(group.pair), 2 * _NAME_LIMIT)
        yield f"{name}: {counted(number, group.noun)} asked in only one of the runs."
    yield from (f"{line[0].upper()}{line[1:]}." for line in changes.comparison.differences)
    both = (
        ("this run", changes.comparison.only_after),
        ("the run before", changes.comparison.only_before),
    )
    for place, pairs in both:
        if pairs:
            names = ", ".join(map(str, pairs))
            yield f"Only in {place}: {one_line(names, 300)}."


def _groups(changes: Changes) -> str:
    groups = [_group(kind, changes) for kind in _KINDS]
    if changes.gone:
        names = [f"{test.case} on {test.label}" for test in changes.gone]
        items = [f"<li>{text(one_line(name, 2 * _NAME_LIMIT))}</li>" for name in names]
        groups.append(_listed("gone", "Gone", "in the run before, and not in this one", items))
    return "".join(groups)


def _nothing(changes: Changes) -> str:
    if not changes.compared:
        return ""
    same = f"{counted(changes.compared, 'test')} with the same results and the same answers"
    return f'<p class="note">Nothing changed: {same}.</p>'


def _group(kind: ChangeKind, changes: Changes) -> str:
    title, about = _KINDS[kind]
    items = [_item(place, changes.cases[place]) for place in changes.of_kind(kind)]
    return _listed(kind, title, about, items)


def _listed(kind: str, title: str, about: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    hidden = len(items) - _MOST_LISTED
    note = f'<p class="note">and {hidden:,} more</p>' if hidden > 0 else ""
    return (
        f'<div class="group-of {kind}">'
        f"<h3>{title} <b>{len(items):,}</b> <small>{about}</small></h3>"
        f"<ul>{''.join(items[:_MOST_LISTED])}</ul>{note}</div>"
    )


def _item(place: Place, change: ChangedCase) -> str:
    (skill, subject), case = place
    model = subject.label
    link = f'<a href="#{case_anchor(skill, case, model)}">{text(one_line(case, _NAME_LIMIT))}</a>'
    return (
        f"<li>{link} on {text(one_line(model, _NAME_LIMIT))} <small>{counts(change)}</small></li>"
    )


def counts(change: ChangedCase) -> str:
    """``passed 3/5 → 1/5``, and whether that is more than chance."""
    if change.kind == "edited":
        return ""
    if change.kind == "new":
        return f"passed {_share(change.now)}" if change.now else "not answered"
    words = f"passed {_share(change.was)} → {_share(change.now)}"
    old, new = change.thresholds
    if change.kind in ("broke", "fixed", "fell", "rose"):
        better = change.kind in ("fixed", "rose")
        words += f", {'better' if better else 'worse'}" if change.shown else ", could be chance"
    return f"{words}; another threshold" if old != new else words


def _share(count: Count | None) -> str:
    return f"{count.passes}/{count.runs}" if count else "–"
