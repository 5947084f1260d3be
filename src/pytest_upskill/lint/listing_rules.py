"""A rule for skills that are installed together: agents list them all, within a
budget.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .._util.texts import counted, one_line
from ..errors import SkillError, shown
from ..skills.folder import read_text
from ..skills.frontmatter import parse
from ..skills.plugins import plugin_above, plugin_name
from ..skills.skill import name_of, summary_of
from .finding import Finding

# As Claude Code 2.1 does: a line for each skill, in one percent of a
# context of 200,000 tokens.
BUDGET: Final = 8_000  # characters
_LONGEST: Final = 1_536  # characters of a description that are listed
_MOST_NAMED: Final = 5
_HINT: Final = (
    "What does not fit is listed by name only, so agents won't know when to use it:"
    " shorten descriptions, or install fewer skills together."
)


class _Line(NamedTuple):
    length: int  # of the whole line
    file: Path
    name: str
    at: int  # the line of the description in its file


def listing_findings(files: Iterable[Path]) -> Iterator[Finding]:
    """Whether a list of these skills exceeds the budget, and by how much."""
    listed = [line for file in files if (line := _line_of(file))]
    lines = sorted(listed, key=lambda line: (-line.length, line.name))
    length = sum(line.length + 1 for line in lines) - 1
    if len(lines) < 2 or length <= BUDGET:
        return
    named = ", ".join(
        f"{one_line(line.name, 60)} ({line.length:,})" for line in lines[:_MOST_NAMED]
    )
    message = (
        f"{counted(len(lines), 'skill')} take {length:,} characters in the list that"
        f" Claude Code gives its model, {length - BUDGET:,} more than its budget of"
        f" {BUDGET:,} (with a context of 200,000 tokens); the longest: {named}"
    )
    longest = lines[0]
    yield Finding(
        shown(longest.file), longest.at, "warning", "listing-budget", message, _HINT
    )


def _line_of(file: Path) -> _Line | None:
    """The line of a skill; None if it is not listed, or can't be read."""
    try:
        text = read_text(file)
    except SkillError:
        return None
    parsed, summary = parse(text), summary_of(text.encode("utf-8", "replace"))
    if summary.users_only:
        return None
    name, when = _listed_name(file), parsed.fields.get("when_to_use")
    description = summary.description
    described = (
        f"{description} - {when}" if isinstance(when, str) and when else description
    )
    length = len(f"- {name}: ") + min(len(described.strip()), _LONGEST)
    return _Line(length, file, name, parsed.lines.get("description", 1))


def _listed_name(file: Path) -> str:
    """A skill of a plugin is listed with both names."""
    path = file.absolute()
    plugin = plugin_above(path, Path(path.anchor))
    return f"{plugin_name(plugin)}:{name_of(file)}" if plugin else name_of(file)
