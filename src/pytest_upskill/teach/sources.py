"""What a teacher has to go by beside the task: examples, a trace, a tool, a skill to improve."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._util.texts import counted, digest
from ..errors import SettingsError, shown
from ..skills.skill import SKILL_NAMES, estimated_tokens, fields_of, is_taught, load_skill
from .drafting import Draft, draft_of
from .lesson import Lesson
from .prompts import fenced
from .secrets import masked

_EMBEDDED_TOKENS: Final = 2_000
_SERVER_TOKENS: Final = 8_000  # a server of one's own may have no more room than this
_HOSTED_TOKENS: Final = 20_000
_MOST_FILE_TOKENS: Final = 4_000  # of the files beside a SKILL.md, all together


@dataclass(frozen=True)
class TraceText:
    """A trace as models get it."""

    text: str
    tokens: int
    left_out: str  # a sentence; nothing if nothing was


@dataclass(frozen=True)
class Material:
    """What there is, as text of a prompt; ``start`` is the skill to improve."""

    text: str = ""
    trace: TraceText | None = None
    start: Draft | None = None

    @property
    def digest(self) -> str:
        return digest(self.text, self.start.text if self.start else "")


def gather(lesson: Lesson, provider: str) -> Material:
    """Read all that a lesson names; InputError, before anything is asked, where it can't be."""
    parts = list[str]()
    if lesson.examples:
        examples = "\n".join(f"- {example}" for example in lesson.examples)
        parts.append(f"Examples of input -> output:\n{fenced('examples', masked(examples))}")
    if lesson.tool:
        from .tools import read_tool

        tool = masked(read_tool(lesson.tool))
        parts.append(f"The skill is for using this tool:\n{fenced('tool', tool)}")
    trace, start = None, None
    if lesson.source is not None:
        file = _skill_file(lesson.source)
        if file:
            start = draft_of(load_skill(file), fields_of(file))
            parts += _skill_parts(start, file.parent)
        else:
            trace = _read_trace(lesson.source, provider)
            what = "A trace of an agent that did the task, condensed:"
            parts.append(f"{what}\n{fenced('trace', trace.text)}")
    return Material("\n\n".join(parts), trace, start)


def _skill_file(path: Path) -> Path | None:
    """The SKILL.md that a path stands for; None if it is a file of something else."""
    if not path.exists():
        raise SettingsError(
            f"--from {shown(path)}", "there is no such file or folder", "Check the path."
        )
    if path.is_file():
        return path if path.name in SKILL_NAMES else None
    found = [path / name for name in SKILL_NAMES if (path / name).is_file()]
    if not found:
        raise SettingsError(
            f"--from {shown(path)}",
            "there is no SKILL.md in this folder",
            "Name the folder of a skill, or the file of a trace.",
        )
    return found[0]


def _read_trace(file: Path, provider: str) -> TraceText:
    from .traces import condensed, read_trace

    budgets = {"local": _EMBEDDED_TOKENS, "generic": _SERVER_TOKENS, "ollama": _SERVER_TOKENS}
    made = condensed(read_trace(file), budgets.get(provider, _HOSTED_TOKENS))
    return TraceText(masked(made.text), made.tokens, made.left_out)


def _skill_parts(start: Draft, folder: Path) -> list[str]:
    parts = [f"The skill as it is:\n{fenced('skill', masked(start.text))}"]
    left = _MOST_FILE_TOKENS
    names = []
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or not is_taught(folder, file) or file.name in SKILL_NAMES:
            continue
        name = file.relative_to(folder).as_posix()
        names.append(name)
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if (tokens := estimated_tokens(text)) <= left:
            left -= tokens
            parts.append(f"Its file {name}:\n{fenced('file', masked(text))}")
    if names:
        listed = fenced("files", "\n".join(names))
        parts.append(f"It has {counted(len(names), 'file')}, which stay as they are:\n{listed}")
    return parts
