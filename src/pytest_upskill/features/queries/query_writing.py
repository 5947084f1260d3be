"""Queries that should, or should not, open a skill,
written by a model to a skill's trigger set.

A query that names the skill tests nothing: any agent opens a
skill that it is told to open.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

from ..._util.files import resolved, save_file, why_unwritable
from ..._util.json_forms import read_json
from ..._util.secrets import masked
from ..._util.texts import counted, visible
from ...errors import CasesError, InputError, Setting, TeachError
from ...skills.case import OPENS, STAYS_CLOSED, Case
from ...skills.folder import SKILL_NAMES, read_text, skill_file
from ...skills.skill import Skill, load_skill
from ...skills.suites.reading import read_suites
from ...teach.case_writing import (
    Author,
    Authored,
    Cases,
    Missing,
    Rejected,
    UsableCase,
    require_different,
)
from ...teach.drafts import draft_of
from ...teach.outcome import Attempt, Taught
from ...teach.prompts import (
    DATA,
    fenced,
    fenced_part,
    joined,
    rejected_text,
)
from ...teach.replies import Loose, NotUsable, Request, read_reply, schema_like
from ...teach.saving import with_costs
from ...teach.sources import Material, read_user_messages, size_of, trace_budget
from ...teach.teach_costs import estimate_queries
from ...teach.teach_run import TeachContext, open_teaching
from ...teach.teach_settings import TeachSettings, check
from . import QUERY, TRIGGERS_NAME

LONGEST_QUERY: Final = 2_000  # characters: it is asked and paid for often
_SHORTEST: Final = 8
_WORDS: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+"
)
_QUOTED: Final = 7  # words in a row that are copied, whatever is around them
# Share of a query's words that stand in the description, in order
_COPIED: Final = 0.75
_FEW: Final = 4  # words that any two texts may have in common
_MOST_SKILL: Final = 40_000  # characters of SKILL.md that the author is shown
_FORM: Final = 'Make it a list of {"query": "…", "should_trigger": true}, or remove it.'


_AUTHOR: Final = (
    "You write queries that test when an agent opens a skill. A skill is a folder with"
    " instructions; the agent sees its name and its description, and opens it if a"
    f" query needs it. A query is a message that a user types to an agent.\n\n{DATA}"
)
_RULES: Final = (
    "- Write as users do: what they want and why, with details such as file names,"
    " numbers, places and what they tried. Vary length and tone; some are casual, in"
    " lower case, with a typo.\n- No query names the skill, or copies its description."
    " A user does not know that there is a skill.\n- should_trigger true: a task that"
    " this skill is for and that an agent can't do well without. Cover all that the"
    " skill does, also in words that its description does not have.\n- should_trigger"
    " false: a near miss. It has words or topics in common with the description, but"
    " needs something else. Nothing that is obviously about another topic.\n\nReply"
    ' with JSON only: {"queries": [{"query": "what the user types", "should_trigger":'
    " true}]}."
)
_SCHEMA: Final = json.dumps(
    schema_like({"queries": [{"query": "", "should_trigger": True}]})
)


class QueryReply(Loose):
    """A query, and whether the skill should be opened for it:
    an entry of evals/triggers.json.
    """

    query: str
    should_trigger: bool


def write_triggers(
    path: Path, settings: TeachSettings, context: TeachContext
) -> Taught:
    """Add queries to a skill's set until it has as many as asked for,
    half of each kind.
    """
    skill = load_skill(skill_file(path))
    check(settings)
    folder = skill.file.parent
    file = _growable_file(folder)
    old = _old_queries(folder, file)
    number = settings.queries - len(old)
    with open_teaching(settings, context) as run:
        models = run.models
        messages = read_user_messages(
            settings.traces, trace_budget(models.provider) // 2
        )
        run.material = _material(skill, messages)
        if number <= 0:
            raise CasesError(
                file,
                f"this skill has {counted(len(old), 'query')} already ({_kinds(old)})",
                ("Ask for more with ", Setting("queries"), f" {len(old) + 2}."),
            )
        run.start(estimate_queries(run, QueryAuthor, number))
        context.screen.begin(f"Generating queries with {models.author}…")
        written = QueryAuthor(run, models.author, skill, messages.text).write(
            number, old
        )
        context.screen.done(written.counts(number))
        if not written.usable:
            problem = f"no query could be used. Rejected: {written.reasons}"
            raise TeachError(f"{models.author}: {problem}\n  Try a stronger model.")
        entries = [*_entries(file), *(usable.data for usable in written.usable)]
        save_file(file, json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        current = Attempt(1, draft_of(skill), is_new=False)
        taught = Taught(
            skill.name,
            (current,),
            1,
            stop=written.stop,
            sentences=tuple(_sentences(old, written, settings)),
        )
        return with_costs(replace(taught, folder=folder), run)


def _old_queries(folder: Path, file: Path) -> list[UsableCase]:
    if file.exists() and not _entries(file):
        return []
    return [UsableCase({}, trigger, ()) for trigger in read_queries(folder)]


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


@dataclass(frozen=True)
class QueryAuthor(Author):
    """Writes queries for a skill; ``messages`` show how its users ask."""

    skill: Skill
    messages: str

    key = "queries"
    question = "query"
    batch = 30

    def missing(self, cases: Cases, total: int) -> Missing:
        """Those that should open the skill and those that should not,
        balanced if possible.
        """
        missing = max(0, total - len(cases))
        opening = sum(usable.case.should_open for usable in cases)
        should = min(missing, max(0, (total + 1) // 2 - opening))
        return should, missing - should

    def kind_of(self, usable: UsableCase) -> int:
        return int(not usable.case.should_open)

    def request(
        self, missing: Missing, existing: Cases, rejected: Sequence[Rejected]
    ) -> Request[list[Any]]:
        queries = "\n".join(
            f"- {'yes' if usable.case.should_open else 'no'}: {usable.case.input}"
            for usable in existing
        )
        text = read_text(self.skill.file)[:_MOST_SKILL]
        parts = [
            (
                f"The skill is called {self.skill.name}. This is its SKILL.md:\n"
                f"{fenced('skill', text)}"
            ),
            fenced_part(
                "What users of this project asked. Take their tone and their tasks; a"
                " message that fits may become a query as it is",
                "messages",
                self.messages,
            ),
            fenced_part(
                "In the set already (yes: should open the skill), so write others",
                "queries",
                queries,
            ),
            rejected_text(rejected),
            (
                f"Write {missing[0]} with should_trigger true and {missing[1]} with"
                f" should_trigger false.\n{_RULES}"
            ),
        ]
        return Request(_AUTHOR, joined(parts), _SCHEMA, self.read)

    def tried(self, reply: Any, existing: Cases) -> UsableCase:
        form = read_reply(json.dumps(reply), QueryReply)
        if (size := len(form.query)) > LONGEST_QUERY:  # it would take long to be masked
            raise NotUsable([f"it has {size:,} characters (limit {LONGEST_QUERY:,})"])
        query = " ".join(masked(form.query).split())
        names = dict.fromkeys((self.skill.name, self.skill.file.absolute().parent.name))
        for problem in query_problems(query, tuple(names), self.skill.description):
            raise NotUsable([problem])
        tag = OPENS if form.should_trigger else STAYS_CLOSED
        data = {"query": query, "should_trigger": form.should_trigger}
        case = Case(query, query, tags=(tag,), kind=QUERY)
        usable = UsableCase(data, case, ())
        require_different(usable, existing)
        return usable


def query_problems(query: str, names: Sequence[str], description: str) -> Iterator[str]:
    """Why a query tests nothing: it has the names of the skill,
    or the words of its description.
    """
    if visible(query) != query:
        yield "it has control or invisible characters"
    if len(query) < _SHORTEST:
        yield "it is too short for a real query"
    words = _words_of(query)
    if any(_names(words, name) for name in names):
        yield f"it names the skill ({names[0]}): a user does not know that name"
    if _copies(words, _words_of(description)):
        yield "it copies the description: say what the user wants, in other words"


def _words_of(text: str) -> list[str]:
    """Words in lower case, each Chinese or Japanese character by itself."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    visible_chars = (
        char for char in folded if unicodedata.category(char) not in ("Mn", "Cf")
    )
    return _WORDS.findall("".join(visible_chars))


def _names(words: Sequence[str], name: str) -> bool:
    """Whether the words of a name stand in a row, joined or split,
    in the singular or plural.
    """
    singular = (word.removesuffix("s") for word in _words_of(name))
    letters = ("[ ]?".join(map(re.escape, word)) for word in singular)
    pattern = "(?:e?s)?[ ]?(?:s[ ])?".join(letters)
    return (
        bool(pattern)
        and re.search(rf"\b{pattern}(?:[ ]?e?s)?\b", " ".join(words)) is not None
    )


def _copies(words: Sequence[str], description: Sequence[str]) -> bool:
    matcher = SequenceMatcher(None, words, description, autojunk=False)
    rows = [block.size for block in matcher.get_matching_blocks()]
    shared = sum(size for size in rows if size > 1)
    return max(rows) >= _QUOTED or (shared > _FEW and shared >= _COPIED * len(words))


def _kinds(queries: Sequence[UsableCase]) -> str:
    should = sum(usable.case.should_open for usable in queries)
    return (
        f"{counted(should, 'query')} should open the skill, {len(queries) - should:,}"
        " should not"
    )


def _material(skill: Skill, messages: Material) -> Material:
    """What is sent: the skill, and what users said."""
    start = draft_of(skill)
    text = masked(read_text(skill.file)[:_MOST_SKILL])
    sent = (size_of(SKILL_NAMES[0], text), *messages.sent)
    return replace(messages, start=start, sent=sent)


def read_queries(folder: Path) -> tuple[Case, ...]:
    """All queries of a skill, wherever they are; CasesError if one can't be read."""
    suites = read_suites(folder)
    for broken in (case for of_file in suites.triggers for case in of_file.broken):
        raise broken.error
    return suites.all_triggers


def _growable_file(folder: Path) -> Path:
    """The file that queries are added to; InputError if they can't be."""
    file = folder / TRIGGERS_NAME
    if not resolved(file).is_relative_to(resolved(folder)):
        raise InputError(
            file, "this is a link out of the skill's folder", "Remove the link."
        )
    if problem := why_unwritable(file):
        raise InputError(file, problem, "Check the file and its folder.")
    return file


def _entries(file: Path) -> list[Any]:
    if not file.exists():
        return []
    data = read_json(file, CasesError, _FORM)[1]
    if not isinstance(data, list):
        raise CasesError(file, "queries can only be added to a list", _FORM)
    return data
