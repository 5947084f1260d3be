"""--skill-accept: write what the cases of a run reached."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from ..._util.texts import counted, first_few
from ...errors import Setting, SettingsError, shown
from ...reports.writers import Writer
from ...results.outcomes import count_passes
from ...results.planned_cases import DIGITS, short_digest
from ...results.row import SELECTED_BY_OUTCOME
from ...results.run import RunResults
from ...trials.arm import BASELINE
from ...trials.plan import PlannedCase, Unmatched
from ...trials.subject import SkillOnSubject, asks_model
from .results import (
    MAX_NAMES,
    RESULTS_NAME,
    Accepted,
    compare_case,
    find_new,
    read_results,
    write_results,
)


def find_reached(test: PlannedCase, results: RunResults) -> Accepted | None:
    """What a case reached; None without all answers."""
    records = results.records_of(test)
    count = count_passes(records)
    if not count or not test.compared:
        return None

    (skill,) = [skill for skill in results.skills if skill.name == test.skill]
    skill_digest = skill.digest[:DIGITS]
    model_id = results.model_ids[test.label]
    version = results.agents.get(test.agent, "")
    return Accepted(
        count,
        results.started.date().isoformat(),
        version=version,
        baseline=count_passes(records, BASELINE),
        model_id=model_id,
        case=test.case,
        skill_digest=skill_digest,
        setup=short_digest(skill_digest, model_id, version, test.asked),
    )


def accept(
    results: RunResults,
    missing: Sequence[Unmatched],
    notes: list[str],
    *,
    lower: bool,
) -> Iterator[Writer]:
    """Write what each skill reached on a model, with a note on it."""
    for pair in dict.fromkeys(test.pair for test in (*results.tests, *missing)):
        if asks_model(pair.subject.agent):
            of_pair = [result for result in missing if result.pair == pair]
            yield "accept", partial(_accept, results, pair, of_pair, notes, lower)


def _accept(
    results: RunResults,
    pair: SkillOnSubject,
    missing: Sequence[Unmatched],
    notes: list[str],
    lower: bool,
) -> list[Path]:
    """Nothing is accepted if anything would fall, and unchanged cases keep their runs.

    To take only what rose would choose the lucky runs: soon the unchanged skill would
    look worse than what was accepted.
    """
    _require_all(results, pair)
    tests = [test for test in results.tests if test.pair == pair]
    folder = Path((tests or missing)[0].folder)
    models = read_results(folder)
    before = models.get(pair.subject.label, {})
    edited = {result.case: result for result in missing if result.why == "changed"}
    gone = [result.case for result in missing if result.why != "changed"]

    reached = {}
    lowered = []
    for test in tests:
        now = find_reached(test, results)
        was = before.get(test.digest)
        expected = was or edited.get(test.case)
        if now and expected and now.was.share < expected.was.share:
            lowered.append(f"{test.case} ({expected.was} to {now.was})")
        elif now and was and was.is_as_good_as(now) and not lower:
            now = replace(was, case=test.case)
        if now:
            reached[test.digest] = now
        else:
            edited.pop(test.case, None)

    losses = []
    for verb, names in (("lowered", lowered), ("dropped", gone)):
        if names:
            losses.append(f"{verb}: {first_few(names, MAX_NAMES)}")
    if losses and not lower:
        words = "; would be ".join([f"{pair}: accepted cases are kept", *losses])
        hint = ("To accept that as well: ", Setting("accept_lower"), ".")
        raise SettingsError("accept", f"{words}.", hint)

    after = {}
    for digest, was in before.items():
        if was.case not in gone and was.case not in edited:
            after[digest] = was
    after |= reached
    if after != before:
        write_results(folder, {**models, pair.subject.label: after})
    cases = counted(len(reached), "case")
    words = f"{pair}: accepted {cases} in {shown(folder / RESULTS_NAME)}"
    notes.append("; ".join([words, *losses]))
    return []


def _require_all(results: RunResults, pair: SkillOnSubject) -> None:
    """SettingsError if the results of a skill on a model tell nothing."""
    withheld = {row.pair: row.why_withheld for row in results.rows}
    why = SELECTED_BY_OUTCOME if results.selected_to_fail else withheld.get(pair)
    if why:
        raise SettingsError("accept", f"nothing accepted of {pair}: {why}.")


def find_news(results: RunResults) -> Literal["", "new", "better"]:
    """Whether there is something to accept: results of new or changed cases, or better
    ones after a change.

    What is better without a change is luck, and so is what failed and was selected
    because it did: to accept it would make the skill look worse later.
    """
    is_gone = any(result.why != "changed" for result in results.unmatched)
    if is_gone or results.selected_to_fail:
        return ""

    news: Literal["", "new", "better"] = ""
    if results.unmatched or find_new(results):
        news = "new"
    for test in results.tests:
        case = compare_case(test, results.records_of(test))
        now = find_reached(test, results)
        if not case or not now:
            continue
        if case.passes.now.share < case.passes.before.share:
            return ""
        was = case.expected
        is_changed = isinstance(was, Accepted) and was.setup != now.setup
        if is_changed and case.standing.kind == "better":
            news = "better"
    return news
