"""Rules for SKILL.md: the specification, and its advice on size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import SkillError, shown
from ..skills.folder import read_text
from ..skills.frontmatter import parse
from ..skills.skill import estimated_tokens, load_skill
from .finding import Finding, finding_of
from .reference_rules import reference_findings

MAX_LINES: Final = 500
MAX_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed to files in references/."


def lint_skill_file(file: Path) -> Iterator[Finding]:
    try:
        faults = load_skill(file).warnings
        text = read_text(file)
    except SkillError as error:
        yield finding_of(error, "skill-invalid")
        return
    for fault in faults:
        yield Finding(shown(file), fault.line, fault.level, fault.code, fault.message, fault.hint)
    lines, start = text.split("\n"), parse(text).body_line - 1
    yield from _size(shown(file), lines, start)
    yield from reference_findings(file, lines[start:], start + 1)


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    long = [f"{number:,} lines (recommended: up to {MAX_LINES})"] if number > MAX_LINES else []
    if tokens > MAX_TOKENS:
        long.append(f"about {tokens:,} tokens (recommended: up to {MAX_TOKENS:,})")
    if long:
        line = MAX_LINES + 1 if number > MAX_LINES else start + 1
        yield Finding(file, line, "warning", "skill-long", " and ".join(long), _SPLIT)
