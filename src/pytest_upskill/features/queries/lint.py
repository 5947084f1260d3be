"""Lint rules for queries: do they show anything?"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ..._util.texts import counted
from ...errors import shown
from ...lint.finding import Finding
from ...settings import ENOUGH_QUERIES
from ...skills.case import Case
from ...skills.suites.reading import Suites

# One kind has more than this many times as many queries as the other
_LOPSIDED: Final = 2
_KINDS: Final = {True: "should trigger", False: "should not trigger"}


def find_mistakes(suites: Suites, folder: Path, name: str) -> Iterator[Finding]:
    """The findings of a skill's queries; ``folder`` and ``name`` are the skill's."""
    by_kind: dict[bool, list[Case]] = {kind: [] for kind in _KINDS}
    first: tuple[str, int] | None = None
    for of_file in suites.triggers:
        file = shown(of_file.file)
        for case in of_file.cases:
            if case.skip is not None:
                continue
            first = first or (file, case.line)
            by_kind[case.should_open].append(case)
            if case.should_open and names_skill(case.input, name):
                message = f"{case.id}: the query names the skill"
                hint = "Write what a user would who has never heard of it."
                yield Finding(
                    file, case.line, "warning", "trigger-names-skill", message, hint
                )
    if first is None:
        return

    kind = min(by_kind, key=lambda kind: len(by_kind[kind]))
    few = by_kind[kind]
    many = by_kind[not kind]
    fix = "Write more"
    if not few:
        code = "trigger-one-kind"
        message = f"{_count(not kind, many)}, and none that {_KINDS[kind]}"
    elif len(few) < ENOUGH_QUERIES:
        code = "trigger-few"
        message = f"{_count(kind, few)}: too few to show much"
        fix = f"Have at least {ENOUGH_QUERIES} of each kind"
    elif len(many) > _LOPSIDED * len(few):
        code = "trigger-unbalanced"
        message = ", but ".join(_count(*of_kind) for of_kind in by_kind.items())
    else:
        return
    hint = f"{fix}, or run pytest-upskill triggers {shown(folder)}."
    yield Finding(*first, "warning", code, message, hint)


def _count(kind: bool, queries: Sequence[Case]) -> str:
    return f"{counted(len(queries), 'query')} that {_KINDS[kind]}"


def names_skill(query: str, name: str) -> bool:
    """Whether a query gives the skill away: by its name of several words,
    or as a command.

    A name that is an ordinary word, such as pdf, may well stand in a query.
    """
    words = [re.escape(word) for word in re.split(r"[\W_]+", name.casefold()) if word]
    if not words:
        return False
    pattern = r"[\W_]*".join(words)
    word = rf"(?<![^\W_]){pattern}(?![^\W_])"
    if len(words) == 1:  # "/pdf", "$pdf", "the pdf skill", "the skill pdf"
        word = rf"[/$]{pattern}(?![^\W_])|{word}\W*skill\b|\bskill\W*{word}"
    return re.search(word, query.casefold()) is not None
