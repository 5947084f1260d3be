"""``triggers``: queries that should, or should not, open a skill, added to its set."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..._util.texts import counted
from ...errors import CasesError, Setting, TeachError
from ...skills.folder import SKILL_NAMES, skill_file
from ...skills.skill import load_skill
from ...teach.case_writing import Authored, UsableCase
from ...teach.drafts import draft_of
from ...teach.outcome import Attempt, Taught
from ...teach.saving import with_costs
from ...teach.sources import read_user_messages, size_of, trace_budget
from ...teach.teach_run import TeachContext, open_teaching
from ...teach.teach_settings import TeachSettings, check
from . import TRIGGERS_NAME
from .costs import estimate_queries
from .query_author import QueryAuthor, read_shown
from .query_file import add_queries, growable_file, old_queries


def write_triggers(
    path: Path, settings: TeachSettings, context: TeachContext
) -> Taught:
    """Add queries to a skill's set until it has as many as asked for,
    half of each kind.
    """
    skill = load_skill(skill_file(path))
    check(settings)
    folder = skill.file.parent
    file = growable_file(folder)
    old = old_queries(folder, file)
    number = settings.queries - len(old)
    with open_teaching(settings, context) as run:
        models = run.models
        messages = read_user_messages(
            settings.traces, trace_budget(models.provider) // 2
        )
        text = read_shown(skill)
        sent = (size_of(SKILL_NAMES[0], text), *messages.sent)
        run.material = replace(messages, start=draft_of(skill), sent=sent)
        if number <= 0:
            raise CasesError(
                file,
                f"this skill has {counted(len(old), 'query')} already ({_kinds(old)})",
                ("Ask for more with ", Setting("queries"), f" {len(old) + 2}."),
            )
        run.start(estimate_queries(run, QueryAuthor, number))
        context.screen.begin(f"Generating queries with {models.author}…")
        author = QueryAuthor(run, models.author, skill, text, messages.text)
        written = author.write(number, old)
        context.screen.done(written.counts(number))
        if not written.usable:
            problem = f"no query could be used. Rejected: {written.reasons}"
            raise TeachError(f"{models.author}: {problem}\n  Try a stronger model.")
        add_queries(file, written.usable)
        current = Attempt(1, draft_of(skill), is_new=False)
        taught = Taught(
            skill.name,
            (current,),
            1,
            stop=written.stop,
            sentences=tuple(_sentences(old, written, settings)),
        )
        return with_costs(replace(taught, folder=folder), run)


def _sentences(
    old: Sequence[UsableCase], written: Authored, settings: TeachSettings
) -> Iterator[str]:
    queries = [*old, *written.usable]
    new = len(written.usable)
    yield f"{_kinds(queries)}; {new:,} of them new, in {TRIGGERS_NAME}."
    if fewer := settings.queries - len(queries):
        wanted = f"fewer than the {settings.queries} asked for: {written.stop}"
        yield f"{counted(fewer, 'query')} {wanted}. Run it again to complete the set."
    yield (
        "Read them before you use them: one of the wrong kind counts against the skill."
    )


def _kinds(queries: Sequence[UsableCase]) -> str:
    should = sum(usable.case.should_open for usable in queries)
    return (
        f"{counted(should, 'query')} should open the skill, {len(queries) - should:,}"
        " should not"
    )
