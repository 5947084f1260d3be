"""Write a trigger set from end to end: queries for a skill that has none, or too few."""

import json
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file, resolved, save_file, why_unwritable
from .._util.json_forms import read_json
from .._util.texts import counted
from ..errors import CasesError, InputError, Setting, TeachError
from ..skills.folder import SKILL_NAMES, read_text, skill_file
from ..skills.skill import Skill, fields_of, load_skill
from ..skills.triggers import TRIGGERS_NAME, Trigger, load_triggers
from .drafts import draft_of
from .query_writing import Query, QueryAuthor, QueryRules, RejectedQuery, missing_of
from .secrets import masked
from .sources import Material, UserMessages, read_user_messages, room_of, size_of
from .teach_costs import estimate_queries
from .teach_models import TeachModels
from .teach_run import TeachContext, open_models, require_consent, require_unfinished, state_of_run
from .teach_settings import TeachSettings, check

_MOST_SKILL: Final = 40_000  # characters of SKILL.md that the author is shown

_MORE_NAME: Final = "evals/more-triggers.json"  # if the file has another form than a list
_FORM: Final = 'Make it a list of {"query": "…", "should_trigger": true}, or remove it.'


@dataclass(frozen=True)
class TriggerSet:
    """The queries of a skill after a run of ``triggers``."""

    name: str  # of the skill
    file: Path  # where the new ones are
    known: tuple[Query, ...]  # that were there before
    new: tuple[Query, ...]
    wanted: int  # in all
    rejected: tuple[RejectedQuery, ...] = ()
    stop: str = ""  # why there are fewer than wanted
    notes: tuple[str, ...] = ()
    cost: float | None = None

    @property
    def queries(self) -> tuple[Query, ...]:
        return (*self.known, *self.new)


def write_triggers(path: Path, settings: TeachSettings, context: TeachContext) -> TriggerSet:
    """Add queries to a skill's set until it has as many as asked for, half of each kind."""
    check(settings)
    skill = load_skill(skill_file(path))
    folder = skill.file.parent
    file = require_growable_queries(folder)
    known = queries_of(read_queries(folder))
    missing = missing_of(known, settings.queries)
    with open_models(settings, context) as models:
        messages = read_user_messages(settings.traces, room_of(models.provider) // 2)
        material = _material(skill, messages)
        require_unfinished(settings, context, material)
        if not any(missing):
            raise _complete(file, known)
        guess = estimate_queries(models, material, sum(missing))
        require_consent(context, material, models, guess)
        state = state_of_run(settings, context, material, skill.name)
        author = QueryAuthor(
            models,
            skill.name,
            read_text(skill.file)[:_MOST_SKILL],
            messages.texts,
            rules_of(skill),
            state.session,
        )
        context.screen.begin(f"Generating queries with {models.author}…")
        written = author.write(settings.queries, known)
        number, given_up = len(written.usable), sum(missing) - len(written.usable)
        counts = [f"{number} kept"]
        counts += [f"{len(written.rejected)} rejected"] if written.rejected else []
        counts += [f"{given_up} given up"] if given_up else []
        context.screen.done(", ".join(counts))
        if not written.usable:
            raise _unusable(models, written.rejected)
        add_queries(file, written.usable)
        spent = models.spent()
        with suppress(InputError):  # the queries are saved, and that is what counts
            state.save(
                saved=str(folder.absolute()),
                cost=spent,
                limits=settings.on_resume("limit"),
                out_of_budget=models.out_of_budget,
                rejected=[[one.text, one.why] for one in written.rejected],
            )
        models.close()  # only then it is known what could not be stored
        return TriggerSet(
            skill.name,
            file,
            tuple(known),
            tuple(written.usable),
            settings.queries,
            tuple(written.rejected),
            written.stop,
            tuple(dict.fromkeys(models.notes)),
            spent,
        )


def trigger_task(skill: Skill) -> str:
    """What tells the run from those of other commands, when it is resumed."""
    return f"queries for {skill.name}: {skill.description}"


def rules_of(skill: Skill) -> QueryRules:
    names = dict.fromkeys((skill.name, skill.file.absolute().parent.name))
    return QueryRules(tuple(names), skill.description)


def trigger_set_lines(made: TriggerSet, width: int) -> list[str]:
    lines = list[str]()
    for sentence in sentences(made):
        lines += textwrap.wrap(sentence, min(width, 100), break_long_words=False)
    return lines


def sentences(made: TriggerSet) -> list[str]:
    """What to know before the queries are used."""
    found = [f"{_kinds(made.queries)}; {len(made.new):,} of them new."]
    if len(made.queries) < made.wanted:
        missing = made.wanted - len(made.queries)
        found.append(
            f"{counted(missing, 'query')} fewer than the {made.wanted} asked for: {made.stop}. "
            "Run it again to complete the set."
        )
    found.append("Read them before you use them: one of the wrong kind counts against the skill.")
    return found + [f"{note[0].upper()}{note[1:]}." for note in made.notes]


def trigger_set_data(made: TriggerSet) -> dict[str, Any]:
    """The result as JSON."""
    should = sum(one.should_trigger for one in made.queries)
    return {
        "schema": 1,
        "name": made.name,
        "file": str(made.file),
        "wanted": made.wanted,
        "should_trigger": should,
        "should_not_trigger": len(made.queries) - should,
        "queries": [
            {"query": one.text, "should_trigger": one.should_trigger, "new": one in made.new}
            for one in made.queries
        ],
        "rejected": [{"query": one.text, "why": one.why} for one in made.rejected],
        "stop": made.stop or None,
        "cost": made.cost,
        "sentences": sentences(made),
    }


def _kinds(queries: Sequence[Query]) -> str:
    should = sum(one.should_trigger for one in queries)
    rest = len(queries) - should
    return f"{counted(should, 'query')} should open the skill, {rest:,} should not"


def _complete(file: Path, known: Sequence[Query]) -> InputError:
    should = sum(one.should_trigger for one in known)
    balanced = 2 * max(should, len(known) - should)
    return CasesError(
        file,
        f"this skill has {counted(len(known), 'query')} already ({_kinds(known)})",
        ("Ask for more with ", Setting("queries"), f" {max(balanced, len(known) + 2)}."),
    )


def _unusable(models: TeachModels, rejected: Sequence[RejectedQuery]) -> TeachError:
    reasons = "; ".join(f"{one.text!r}: {one.why}" for one in rejected[-3:])
    return TeachError(
        f"{models.author}: no query could be used. Rejected: {reasons}\n  Try a stronger model."
    )


def _material(skill: Skill, messages: UserMessages) -> Material:
    """What is sent: the skill, and what users said."""
    heard = messages.material
    start = draft_of(skill, fields_of(skill.file))
    text = masked(read_text(skill.file)[:_MOST_SKILL])
    sent = (size_of(SKILL_NAMES[0], text), *heard.sent)
    return Material(heard.text, start=start, sent=sent, unsent=heard.unsent)


def read_queries(folder: Path) -> tuple[Trigger, ...]:
    """All queries of a skill, wherever they are; CasesError if one can't be read."""
    loaded = load_triggers(folder)
    for one in loaded.broken:
        if one.error.problems or not _is_empty(folder / TRIGGERS_NAME):
            raise one.error
    return loaded.triggers


def queries_of(triggers: Sequence[Trigger]) -> list[Query]:
    return [Query(one.query, one.should_trigger) for one in triggers]


def require_growable_queries(folder: Path) -> Path:
    """The file that queries are added to; InputError if they can't be."""
    file = _own(folder, TRIGGERS_NAME)
    if file.is_file() and isinstance(read_json(file, CasesError, _FORM)[1], dict):
        file = _own(folder, _MORE_NAME)
    if problem := why_unwritable(file):
        raise InputError(file, problem, "Check the file and its folder.")
    _entries(file)
    return file


def _own(folder: Path, name: str) -> Path:
    file = folder / name
    if not resolved(file).is_relative_to(resolved(folder)):
        raise InputError(file, "this is a link out of the skill's folder", "Remove the link.")
    return file


def add_queries(file: Path, queries: Sequence[Query]) -> None:
    """Add queries to those that the file has now; it is written whole or not at all."""
    new = [{"query": one.text, "should_trigger": one.should_trigger} for one in queries]
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
