"""SKILL.md: the specification's rules, its advice on size, references to files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import SkillError, shown
from ..skills.skill import estimated_tokens, read_text, review_skill
from .finding import Finding, finding_of
from .references import references_in, what_is_wrong

MOST_LINES: Final = 500
MOST_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed into files of references/."


def lint_skill_file(file: Path) -> Iterator[Finding]:
    violations, warnings = review_skill(file)
    for error in violations:
        yield finding_of(error, "skill-invalid")
    for line, text in warnings:
        yield Finding(shown(file), line, "warning", "skill-unknown-key", text)
    try:
        lines = read_text(file).split("\n")
    except (SkillError, OSError):
        return  # which is among the violations
    start = _start_of_body(lines)
    yield from _size(shown(file), lines, start)
    for line, reference in references_in(lines[start:], start + 1):
        if problem := what_is_wrong(reference, file.parent):
            yield Finding(shown(file), line, *problem)


def _start_of_body(lines: list[str]) -> int:
    """The number of lines before the body; none, if the frontmatter is not one."""
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return number + 1
    return 0


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    if number > MOST_LINES:
        what = f"this file has {number:,} lines; {MOST_LINES} are advised at most"
        yield Finding(file, MOST_LINES + 1, "warning", "skill-long", what, _SPLIT)
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    if tokens > MOST_TOKENS:
        what = f"the text has about {tokens:,} tokens; {MOST_TOKENS:,} are advised at most"
        yield Finding(file, start + 1, "warning", "skill-long", what, _SPLIT)
