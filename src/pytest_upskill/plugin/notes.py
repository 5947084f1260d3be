"""Notes on the results of a run: below the tables of the terminal and of reports."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from .._util import grouped
from .._util.texts import counted, dollars, harmless
from ..models import ModelSpec
from ..models.local import LABEL, LocalProvider
from ..results.causes import cause_lines
from ..results.run import NOTHING_TESTED, RunResults, first_names
from ..results.run_notes import run_notes, untested_notes
from ..trials.answer import SideCalls
from ..trials.records import Record
from .pytest_options import spell
from .run import Run


def comment_results(run: Run, results: RunResults) -> list[str]:
    """What a reader must know to trust the numbers, and what features add to that."""
    return [*run_notes(results, spell), *run.notes]


def collect_notes(
    run: Run, results: RunResults, *, with_causes: bool = True
) -> list[str]:
    """All notes; those on causes of errors are for those who have not seen these."""
    notes = comment_results(run, results)
    if run.ledger:
        if not run.settings.replay_file:
            notes += _note_stored(results.records)
        if run.settings.judge:
            notes += _note_judge(run.settings.judge, results.records)
        notes += _note_users(results.records)
    notes += _note_new_skills(run)
    notes += collect_problems(run, results, with_causes=with_causes)
    for spec in run.subjects.specs.values():
        if is_small(spec):
            note = f"{spec.name} is {LABEL}, a small model for trying things out"
            notes.append(f"{note}; don't judge a skill by it.")
    return notes


def collect_problems(
    run: Run, results: RunResults, *, with_causes: bool = True
) -> list[str]:
    """The notes that are shown with -q, too."""
    notes: list[str] = []
    if with_causes:
        notes += cause_lines(results.causes)
    if run.spending:
        notes += run.spending.notes()
    if run.asking.engine and run.asking.engine.progress.agents_note:
        notes.append(run.asking.engine.progress.agents_note)
    return [*notes, *run.lines]


def explain_nothing_tested(results: RunResults) -> list[str]:
    """Why there is no answer, or none that has a verdict."""
    if results.records:
        return untested_notes(results) or [NOTHING_TESTED]

    reasons = []
    for reason, names in results.untested_by_reason:
        reasons.append(f"{NOTHING_TESTED} of {names}: {reason}")
    return reasons or [NOTHING_TESTED]


def is_small(spec: ModelSpec) -> bool:
    """Whether this is the embedded model, whose numbers mean little."""
    return isinstance(spec.provider, LocalProvider) and not spec.file


def _note_new_skills(run: Run) -> list[str]:
    against = run.settings.against
    if not against or not run.ledger:
        return []
    new = [skill.name for skill in run.ledger.skills if not skill.against]
    if not new:
        return []

    verb = "is" if len(new) == 1 else "are"
    ref = harmless(against)
    return [f"{first_names(new)} {verb} new since {ref}: nothing to compare."]


def _note_stored(records: Sequence[Record]) -> Iterator[str]:
    """How many answers came from the cache, and what that saved."""
    stored = [record for record in records if record.stored]
    if stored:
        usd = sum(record.cost or 0.0 for record in stored)
        tokens = sum(record.tokens or 0 for record in stored)
        saved = dollars(usd) if usd else counted(tokens, "token")
        share = f"{len(stored):,} of {counted(len(records), 'answer')}"
        yield f"{share} from cache (saved {saved}); --skill-fresh asks again."


def _note_judge(judge: str, records: Iterable[Record]) -> Iterator[str]:
    """What the judge used, apart from the models under test."""
    answers = 0
    uses = {}
    for record in records:
        if record.judge:
            answers += 1
            # The judge is asked once about what it sees as the same answer.
            seen = (record.output, record.transcript, record.files)
            uses[record.skill, record.case, *seen] = record.judge
    if uses:
        who = f"judged by {judge}: {counted(answers, 'answer')},"
        yield _note_use(who, uses.values())


def _note_users(records: Iterable[Record]) -> Iterator[str]:
    """What the users took who are models, apart from the agents."""
    users = [record.user for record in records if record.user]
    for model, uses in grouped(users, lambda user: user.model).items():
        yield _note_use(f"users played by {model}:", uses)


def _note_use(who: str, uses: Collection[SideCalls]) -> str:
    calls = sum(use.calls for use in uses)
    tokens = sum(use.usage.tokens for use in uses)
    parts = [f"{who} {counted(calls, 'call')}", counted(tokens, "token")]
    if usd := sum(use.cost or 0.0 for use in uses):
        parts.append(dollars(usd))
    return f"{', '.join(parts)}; not in the table."
