"""The author of queries that should, or should not, open a skill.

A query that names the skill tests nothing: any agent opens a skill that it is told to
open.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from ..._util.secrets import masked
from ..._util.texts import visible
from ...skills.case import OPENS, STAYS_CLOSED, Case
from ...skills.folder import read_text
from ...skills.skill import Skill
from ...teach.case_writing import (
    Author,
    Cases,
    Missing,
    Rejected,
    UsableCase,
    require_different,
)
from ...teach.prompts import DATA, fenced, fenced_part, joined, rejected_text
from ...teach.replies import Loose, NotUsable, Request, read_reply, schema_like
from . import QUERY

LONGEST_QUERY: Final = 2_000  # characters: it is asked and paid for often
_SHORTEST: Final = 8
_MAX_SKILL_LENGTH: Final = 40_000  # characters
_WORDS: Final = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+"
)
_QUOTED: Final = 7  # words in a row that are copied, whatever is around them
# Share of a query's words that stand in the description, in order
_COPIED: Final = 0.75
_FEW: Final = 4  # words that any two texts may have in common
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


@dataclass(frozen=True)
class QueryAuthor(Author):
    """Writes queries for a skill; ``messages`` show how its users ask."""

    skill: Skill
    text: str  # of its SKILL.md
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
        parts = [
            (
                f"The skill is called {self.skill.name}. This is its SKILL.md:\n"
                f"{fenced('skill', self.text)}"
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


def read_shown(skill: Skill) -> str:
    """The SKILL.md, as far as the author is shown it."""
    return masked(read_text(skill.file)[:_MAX_SKILL_LENGTH])


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
