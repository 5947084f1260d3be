"""--skill-accept: write what the cases of a run reached."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from ..._util import grouped
from ..._util.texts import counted, first_few, one_line
from ...errors import Setting, SettingsError, shown
from ...reports.writers import Writer
from ...results.gates import judged
from ...results.outcomes import count_passes
from ...results.planned_cases import DIGITS, short_digest
from ...results.row import SELECTED_BY_OUTCOME
from ...results.run import RunResults
from ...trials.arm import BASELINE, SKILL
from ...trials.plan import PlannedCase, Unmatched
from ...trials.subject import ORACLE, SkillOnSubject
from .comparison import MAX_NAMES, compare_case
from .file import (
    NOTHING,
    RESULTS_NAME,
    CaseResult,
    ModelResults,
    read_results,
    write_results,
)


def find_reached(tests: Sequence[PlannedCase], results: RunResults) -> ModelResults:
    """What the cases of a skill on a model reached that have all answers."""
    first = tests[0]
    (skill,) = [skill for skill in results.skills if skill.name == first.skill]
    digest = skill.digest[:DIGITS]
    model_id = results.model_ids[first.label]
    version = results.agents.get(first.agent, "")
    cases = {}
    for test in tests:
        records = results.records_of(test)
        baseline = count_passes(records, BASELINE)
        tokens = [
            record.tokens
            for record in records
            if record.arm == SKILL and record.tokens is not None
        ]
        if test.compared and (count := count_passes(records)):
            cases[test.case] = CaseResult(
                passes=count.passes,
                runs=count.runs,
                baseline_passes=baseline.passes if baseline else None,
                tokens=round(fmean(tokens)) if len(tokens) == count.runs else None,
                case_digest=test.digest,
                setup=short_digest(digest, model_id, version, test.asked),
            )
    date = results.started.date().isoformat()
    return ModelResults(model_id, date, digest, cases, version)


def accept(
    results: RunResults, missing: Iterable[Unmatched], notes: list[str], *, lower: bool
) -> Iterator[Writer]:
    """Write what each skill reached on a model, with a note on it."""
    withheld = {row.pair: row.why_withheld for row in results.rows if row.is_apart}
    for group in results.selected_to_fail:
        withheld[group.pair] = SELECTED_BY_OUTCOME
    gone = [found for found in judged(missing, results.tests) if found.why != "changed"]
    dropped = grouped(gone, lambda result: result.pair)
    tests = grouped(results.tests, lambda test: test.pair)
    for pair in {**tests, **dropped}:
        if pair.subject.agent != ORACLE:

            def write(pair: SkillOnSubject = pair) -> list[Path]:
                if pair in withheld:
                    words = f"nothing accepted of {pair}: {withheld[pair]}."
                    raise SettingsError("accept", words)
                of_pair = tests.get(pair, [])
                notes.append(_accept(of_pair, dropped.get(pair, []), results, lower))
                return []

            yield "accept", write


def _accept(
    tests: Sequence[PlannedCase],
    missing: Sequence[Unmatched],
    results: RunResults,
    lower: bool,
) -> str:
    """Nothing is accepted if anything would fall, and unchanged cases keep their runs.

    To take only what rose would choose the lucky runs: soon the unchanged skill would
    look worse than what was accepted.
    """
    first = tests[0] if tests else missing[0]
    folder = Path(first.folder)
    models = read_results(folder)
    before = models.get(first.label, NOTHING)
    now = find_reached(tests, results) if tests else NOTHING
    cases = dict(now.cases)
    lowered = []
    for test in tests:
        result = cases.get(test.case)
        # It may have been edited.
        was = before.find(test.case, test.digest) or before.cases.get(test.case)
        if not result or not was:
            continue
        if result.count.share < was.count.share:
            lowered.append(f"{test.case} ({was.count} to {result.count})")
        elif was.setup == result.setup and was.runs >= result.runs and not lower:
            cases[test.case] = was

    losses = []
    dropped = [result.case for result in missing]
    for verb, names in (("lowered", lowered), ("dropped", dropped)):
        if names:
            losses.append(f"{verb}: {first_few(names, MAX_NAMES)}")
    if losses and not lower:
        words = "; would be ".join([f"{first.pair}: accepted cases are kept", *losses])
        hint = ("To accept that as well: ", Setting("accept_lower"), ".")
        raise SettingsError("accept", f"{words}.", hint)

    after = before.update(replace(now, cases=cases), dropped)
    if after != before:
        write_results(folder, {**models, first.label: after})
    notes = [*_accepted_words(tests, cases, folder), *losses]
    return f"{first.pair}: {'; '.join(notes)}"


def _accepted_words(
    tests: Iterable[PlannedCase], cases: Collection[str], folder: Path
) -> Iterator[str]:
    """``accepted 4 cases and 2 queries in FILE``, and which were not."""
    nouns = Counter[str]()
    missing = []
    for test in tests:
        if test.case in cases:
            nouns[test.kind.noun] += 1
        else:
            missing.append(one_line(test.case, 60))
    counts = " and ".join(counted(number, noun) for noun, number in nouns.items())
    yield f"accepted {counts or '0 cases'} in {shown(folder / RESULTS_NAME)}"
    if missing:
        yield f"not accepted: {first_few(missing, MAX_NAMES)}"


def find_news(results: RunResults) -> Literal["", "new", "better"]:
    """Whether there is something to accept: results of new or changed cases, or better
    ones after a change.

    What is better without a change is luck, and so is what failed and was selected
    because it did: to accept it would make the skill look worse later.
    """
    unmatched = {result.why for result in judged(results.unmatched, results.tests)}
    if results.withheld or results.selected_to_fail or unmatched - {"changed"}:
        return ""

    news: Literal["", "new", "better"] = "new" if unmatched else ""
    for tests in grouped(results.tests, lambda test: test.pair).values():
        reached = find_reached(tests, results).cases
        for test in tests:
            case = compare_case(test, results.records_of(test))
            if case and case.now.share < case.was.was.share:
                return ""
            if case and case.standing.kind == "better":
                if reached[test.case].setup != case.was.setup:
                    news = "better"
            elif test.new and test.case in reached:
                news = news or "new"
    return news
