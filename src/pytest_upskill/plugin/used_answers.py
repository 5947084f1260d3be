"""What the answers of a run took that the table does not show, and all of them for a
recording.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .._util import grouped
from .._util.texts import counted, dollars
from ..checks.judging import all_questions
from ..engine import Engine
from ..engine.recording import Recorded
from ..models.prices import cost
from ..trials.answer import Answer, total_usage
from ..trials.records import Record
from ..trials.trial import Trial
from .ledger import Ledger
from .paths import relative
from .run import Run


def note_stored(records: Sequence[Record]) -> Iterator[str]:
    """How many answers came from the cache, and what that saved."""
    stored = [record for record in records if record.stored]
    if stored:
        usd = sum(record.cost or 0.0 for record in stored)
        tokens = sum(record.tokens or 0 for record in stored)
        saved = dollars(usd) if usd else counted(tokens, "token")
        share = f"{len(stored):,} of {counted(len(records), 'answer')}"
        yield f"{share} from cache (saved {saved}); --skill-fresh asks again."


def note_judge(run: Run, ledger: Ledger, engine: Engine) -> Iterator[str]:
    """What the judge used, apart from the models under test; the same answer is judged
    once.
    """
    judged = sum(bool(record.judge) for record in ledger.records())
    if not judged:
        return

    keys = set()
    for test in ledger.planned:
        for trial in test.all_trials:
            if trial.rubric:
                _, *of_judge = _find_keys(trial, engine)
                keys.update(of_judge)
    replies = [engine.known_reply(key) for key in keys]
    usages = [reply.usage for reply in replies if isinstance(reply, Answer)]
    judge = run.settings.judge or ""
    price = run.subjects.models.price_of(judge)
    costs = [cost(price, usage) for usage in usages]
    spent = total_usage(usages)
    tokens = None if spent.input is None else spent.input + (spent.output or 0)
    usd = None if None in costs else sum(filter(None, costs))
    words = f"judged by {judge}: {counted(judged, 'answer')},"
    yield _note_use(words, len(usages), tokens, usd)


def note_users(records: Iterable[Record]) -> Iterator[str]:
    """What the users took who are models, apart from the agents."""
    users = [record.user for record in records if record.user]
    for model, of_model in grouped(users, lambda user: user.model).items():
        yield _note_use(
            f"users played by {model}:",
            sum(user.calls for user in of_model),
            sum(user.usage.tokens for user in of_model),
            sum(user.cost or 0.0 for user in of_model),
        )


def _note_use(who: str, calls: int, tokens: int | None, usd: float | None) -> str:
    parts = [f"{who} {counted(calls, 'call')}"]
    if tokens is not None:
        parts.append(counted(tokens, "token"))
    if usd:
        parts.append(dollars(usd))
    return f"{', '.join(parts)}; not in the table."


def find_recorded(ledger: Ledger, engine: Engine, root: Path) -> Iterator[Recorded]:
    """Every answer that was used, including the judge's."""
    for test in ledger.planned:
        folder = relative(Path(test.folder), root)
        for trial in test.all_trials:
            keys: Iterable[str] = ledger.open_keys(test.nodeid, trial)
            if not trial.is_open:
                keys = _find_keys(trial, engine)
            for step, key in enumerate(keys):
                reply = engine.known_reply(key)
                if isinstance(reply, Answer):
                    yield Recorded(trial, step, key, reply, folder)


def _find_keys(trial: Trial, engine: Engine) -> Iterator[str]:
    """The keys of a trial's question and of those to the judge."""
    yield trial.question.key
    answer = engine.known_reply(trial.question.key)
    if trial.rubric and isinstance(answer, Answer):
        for question in all_questions(
            trial.rubric, trial.question, answer, engine.known_reply
        ):
            yield question.key
