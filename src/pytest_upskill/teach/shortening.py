"""A shorter version of a skill: the sizes on the way, what a teacher is asked, what it may write.

Only the body of SKILL.md is rewritten. Its name, its description and the files beside it stay.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line
from ..skills.context import FilesOnDisk
from ..skills.references import Folder, paths_in, references_in
from .drafts import Draft, form_of, lint_draft
from .prompts import TEACHER, TEACHER_OF_AGENTS
from .replies import VERSION_SCHEMA, NotUsable, Request, ask_for
from .secrets import masked
from .teach_models import TeachModels

MOST_SIZES: Final = 3
_NEAR: Final = 1.15  # a size this close to the next one tells nothing more
_REPAIRS: Final = 2
_OWN_FILE: Final = re.compile(r"(?:\./)?(?:references?|scripts|assets)/\S*\w\.\w{1,10}")
_MOST_MISSING: Final = 5


def sizes_toward(limit: int, tokens: int, most: int = MOST_SIZES) -> list[int]:
    """The sizes to try, from long to short: equal steps of the ratio, and the limit itself."""
    number = max(1, most)
    steps = [round(tokens * (limit / tokens) ** (step / number)) for step in range(1, number)]
    sizes = [limit]
    for size in reversed(steps):
        if size > sizes[0] * _NEAR and tokens > size * _NEAR:
            sizes.insert(0, size)
    return sizes


def ask_for_version(
    models: TeachModels, prompt: str, whole: Draft, most: int, scratch: Path, session: int
) -> Draft:
    """A version of at most so many tokens; a longer one is asked for again, never cut.

    UnusableError if there is none after all.
    """
    system = TEACHER_OF_AGENTS if models.with_agents else TEACHER
    request = Request(models.teacher, system, masked(prompt), VERSION_SCHEMA, session)
    return ask_for(models, request, lambda text: read_version(text, whole, most, scratch), _REPAIRS)


def read_version(text: str, whole: Draft, most: int, scratch: Path) -> Draft:
    """The body of a reply in place of that of the whole skill; NotUsable says what is wrong."""
    form = form_of(text)
    version = replace(whole, body=masked(form.body.strip()), files=())
    problems = list[str]()
    if not version.body:
        raise NotUsable(["the body is empty"])
    if version.tokens > most:
        problems.append(
            f"the body has about {counted(version.tokens, 'token')}, {version.tokens - most:,} too "
            f"many: at most {most:,} are allowed, {4 * most:,} bytes. Drop what is missed least"
        )
    else:
        had, _ = lint_draft(whole, scratch)
        problems += [error for error in lint_draft(version, scratch)[0] if error not in had]
    if form.files:
        problems.append('no new files: all that the student needs must be in "body"')
    if missing := missing_files(version.body, whole):
        names = ", ".join(repr(one_line(name, 80)) for name in missing[:_MOST_MISSING])
        problems.append(f"the body names files that are not there: {names}")
    if problems:
        raise NotUsable(problems)
    return version


def missing_files(body: str, whole: Draft) -> list[str]:
    """Files of the skill that a body names and that are not there, nor named by the whole skill."""
    named = _own_files(body) - _own_files(whole.body)
    if whole.base is None:
        return sorted(named)
    lookup = Folder(FilesOnDisk(whole.base))
    return sorted(name for name in named if not lookup.find(name))


def _own_files(body: str) -> set[str]:
    """Paths that mean a file of the skill: below its usual folders."""
    return {
        word
        for reference in references_in(body.split("\n"))
        for word in paths_in(reference)
        if _OWN_FILE.fullmatch(word)
    }
