"""Write a trigger set from end to end: queries for a skill that has none, or too few."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from .._util.files import read_file, resolved, save_file, why_unwritable
from .._util.json_forms import read_json
from .._util.texts import counted
from ..errors import CasesError, InputError, Setting, TeachError
from ..skills.folder import SKILL_NAMES, read_text, skill_file
from ..skills.skill import Skill, fields_of, load_skill
from ..skills.trigger_loading import TRIGGERS_NAME, Trigger, load_triggers
from .drafts import draft_of
from .progress_lines import as_sentence, wrapped
from .query_writing import Query, QueryAuthor, QueryRules, missing_of
from .replies import Rejected
from .secrets import masked
from .sources import Material, UserMessages, read_user_messages, size_of, trace_budget
from .teach_costs import estimate_queries
from .teach_models import TeachModels
from .teach_run import TeachContext, open_models, require_unfinished, start_run
from .teach_settings import TeachSettings, check

_MOST_SKILL: Final = 40_000  # characters of SKILL.md that the author is shown
_MORE_NAME: Final = "evals/more-triggers.json"  # if the file has another form than a list
_FORM: Final = 'Make it a list of {"query": "…", "should_trigger": true}, or remove it.'


@dataclass(frozen=True)
class TriggerSet:
    """The queries of a skill after a run of ``triggers``."""

    name: str  # of the skill
    file: Path  # where the new ones are
    old: tuple[Query, ...]
    new: tuple[Query, ...]
    total: int  # that was asked for
    rejected: tuple[Rejected, ...] = ()
    stop: str = ""  # why there are fewer
    notes: tuple[str, ...] = ()
    cost: float | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        return (*self.old, *self.new)


def write_triggers(path: Path, settings: TeachSettings, context: TeachContext) -> TriggerSet:
    """Add queries to a skill's set until it has as many as asked for, half of each kind."""
    check(settings)
    skill = load_skill(skill_file(path))
    folder = skill.file.parent
    file = require_growable_queries(folder)
    old = [Query(trigger.query, trigger.should_trigger) for trigger in read_queries(folder)]
    missing = missing_of(old, settings.queries)
    with open_models(settings, context) as models:
        messages = read_user_messages(settings.traces, trace_budget(models.provider) // 2)
        material = _material(skill, messages)
        require_unfinished(settings, context, material)
        if not any(missing):
            raise _complete(file, old)
        estimate = estimate_queries(settings, models, material, sum(missing))
        run = start_run(settings, context, models, material, estimate, skill.name)
        author = QueryAuthor(
            models,
            skill.name,
            read_text(skill.file)[:_MOST_SKILL],
            messages.texts,
            rules_of(skill),
            run.state.session,
        )
        context.screen.begin(f"Generating queries with {models.author}…")
        written = author.write(settings.queries, old)
        number, given_up = len(written.usable), sum(missing) - len(written.usable)
        counts = [f"{number} kept"]
        counts += [f"{len(written.rejected)} rejected"] if written.rejected else []
        counts += [f"{given_up} given up"] if given_up else []
        context.screen.done(", ".join(counts))
        if not written.usable:
            raise _unusable(models, written.rejected)
        add_queries(file, written.usable)
        spent = models.spent()
        run.mark_saved(folder, spent)
        return TriggerSet(
            skill.name,
            file,
            tuple(old),
            tuple(written.usable),
            settings.queries,
            tuple(written.rejected),
            written.stop,
            run.final_notes(),
            spent,
        )


def trigger_task(skill: Skill) -> str:
    """Tells the run from those of other commands when it is resumed."""
    return f"queries for {skill.name}: {skill.description}"


def rules_of(skill: Skill) -> QueryRules:
    names = dict.fromkeys((skill.name, skill.file.absolute().parent.name))
    return QueryRules(tuple(names), skill.description)


def trigger_set_lines(triggers: TriggerSet, width: int) -> list[str]:
    return wrapped(sentences(triggers), width)


def sentences(triggers: TriggerSet) -> list[str]:
    """What to know before the queries are used."""
    total, number = triggers.total, len(triggers.queries)
    texts = [f"{_kinds(triggers.queries)}; {len(triggers.new):,} of them new."]
    if number < total:
        texts.append(
            f"{counted(total - number, 'query')} fewer than the {total} asked for: "
            f"{triggers.stop}. Run it again to complete the set."
        )
    texts.append("Read them before you use them: one of the wrong kind counts against the skill.")
    return [*texts, *map(as_sentence, triggers.notes)]


def trigger_set_data(triggers: TriggerSet) -> dict[str, Any]:
    """The result as JSON."""
    data = TypeAdapter(TriggerSet).dump_python(triggers, mode="json")
    return {"schema": 1, **data, "sentences": sentences(triggers)}


def _kinds(queries: Sequence[Query]) -> str:
    should = sum(query.should_trigger for query in queries)
    return f"{counted(should, 'query')} should open the skill, {len(queries) - should:,} should not"


def _complete(file: Path, queries: Sequence[Query]) -> InputError:
    should, total = sum(query.should_trigger for query in queries), len(queries)
    balanced = 2 * max(should, total - should)
    return CasesError(
        file,
        f"this skill has {counted(total, 'query')} already ({_kinds(queries)})",
        ("Ask for more with ", Setting("queries"), f" {max(balanced, total + 2)}."),
    )


def _unusable(models: TeachModels, rejected: Sequence[Rejected]) -> TeachError:
    reasons = "; ".join(f"{query.text!r}: {query.reason}" for query in rejected[-3:])
    return TeachError(
        f"{models.author}: no query could be used. Rejected: {reasons}\n  Try a stronger model."
    )


def _material(skill: Skill, messages: UserMessages) -> Material:
    """What is sent: the skill, and what users said."""
    asked_before = messages.material
    start = draft_of(skill, fields_of(skill.file))
    text = masked(read_text(skill.file)[:_MOST_SKILL])
    sent = (size_of(SKILL_NAMES[0], text), *asked_before.sent)
    return Material(asked_before.text, start=start, sent=sent, unsent=asked_before.unsent)


def read_queries(folder: Path) -> tuple[Trigger, ...]:
    """All queries of a skill, wherever they are; CasesError if one can't be read."""
    loaded = load_triggers(folder)
    for broken in loaded.broken:
        if broken.error.problems or not _is_empty(folder / TRIGGERS_NAME):
            raise broken.error
    return loaded.triggers


def require_growable_queries(folder: Path) -> Path:
    """The file that queries are added to; InputError if they can't be."""
    file = _file_within(folder, TRIGGERS_NAME)
    if file.is_file() and isinstance(read_json(file, CasesError, _FORM)[1], dict):
        file = _file_within(folder, _MORE_NAME)
    if problem := why_unwritable(file):
        raise InputError(file, problem, "Check the file and its folder.")
    _entries(file)
    return file


def _file_within(folder: Path, name: str) -> Path:
    file = folder / name
    if not resolved(file).is_relative_to(resolved(folder)):
        raise InputError(file, "this is a link out of the skill's folder", "Remove the link.")
    return file


def add_queries(file: Path, queries: Sequence[Query]) -> None:
    """Add queries to those that the file has now; it is written whole or not at all."""
    new = [asdict(query) for query in queries]
    text = json.dumps([*_entries(file), *new], indent=2, ensure_ascii=False)
    save_file(file, f"{text}\n")


def _entries(file: Path) -> list[Any]:
    if not file.exists():
        return []
    data = read_json(file, CasesError, _FORM)[1]
    if not isinstance(data, list):
        raise CasesError(file, "queries can only be added to a list", _FORM)
    return data


def _is_empty(file: Path) -> bool:
    """Whether it is a list without a query yet."""
    try:
        return bool(json.loads(read_file(file)) == [])
    except (OSError, ValueError, RecursionError):
        return False
