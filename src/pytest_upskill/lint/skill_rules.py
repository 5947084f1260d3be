"""Rules for SKILL.md: the specification, and its advice on size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..errors import SkillError, shown
from ..skills.skill import estimated_tokens, read_text, review_skill
from .finding import Finding, finding_of
from .reference_rules import reference_findings

MAX_LINES: Final = 500
MAX_TOKENS: Final = 5000
_SPLIT: Final = "Move what is not always needed to files in references/."


def lint_skill_file(file: Path) -> Iterator[Finding]:
    violations, warnings = review_skill(file)
    for error in violations:
        yield finding_of(error, "skill-invalid")
    for line, text in warnings:
        yield Finding(shown(file), line, "warning", "skill-unknown-key", text)
    try:
        lines = read_text(file).split("\n")
    except (SkillError, OSError):
        return  # already among the violations
    start = _start_of_body(lines)
    yield from _size(shown(file), lines, start)
    yield from reference_findings(file, lines[start:], start + 1)


def _start_of_body(lines: list[str]) -> int:
    """The number of lines before the body; 0 without a complete frontmatter."""
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return number + 1
    return 0


def _size(file: str, lines: list[str], start: int) -> Iterator[Finding]:
    number = len(lines) - (lines[-1] == "")
    if number > MAX_LINES:
        what = f"{number:,} lines (recommended: up to {MAX_LINES})"
        yield Finding(file, MAX_LINES + 1, "warning", "skill-long", what, _SPLIT)
    tokens = estimated_tokens("\n".join(lines[start:]).strip())
    if tokens > MAX_TOKENS:
        what = f"about {tokens:,} tokens (recommended: up to {MAX_TOKENS:,})"
        yield Finding(file, start + 1, "warning", "skill-long", what, _SPLIT)
