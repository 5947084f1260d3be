"""What a teacher gets besides the task: examples, a trace, a tool, a skill,
what users asked.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from .._util.files import reason_of
from .._util.git import ignored_in
from .._util.json_forms import read_json
from .._util.secrets import masked
from .._util.texts import counted, guess, one_line, shortened
from ..errors import InputError, SettingsError, TraceError, shown
from ..skills.folder import (
    SKILL_NAMES,
    NotTextError,
    contents_of,
    is_installed,
    read_skill_file,
    skill_file,
    why_unsendable,
)
from ..skills.skill import estimated_tokens, load_skill
from .drafts import Draft, draft_of
from .prompts import fenced
from .teach_settings import TeachSettings
from .traces import Condensed, condensed, read_trace

_EMBEDDED_TOKENS: Final = 2_000
_SERVER_TOKENS: Final = 8_000  # a server of your own may have a small context
_HOSTED_TOKENS: Final = 20_000
_MOST_FILE_TOKENS: Final = 4_000  # of all files beside a SKILL.md
_MOST_NAMES: Final = 500  # of those files that a teacher is told
_MOST_UNSENT: Final = 10
_LONGEST_TOOL: Final = 20_000  # characters
_TOOL_FORMS: Final = (
    'Use JSON as an MCP server lists its tools, {"tools": [{"name", "description", '
    '"inputSchema"}]}, or the format of OpenAI or Anthropic.'
)

_LONGEST_MESSAGE: Final = 600  # characters of a message
_MOST_MASKED: Final = 20_000  # characters: a secret must not be cut before it is masked
_MOST_TRACES: Final = 500  # of a folder
_SUFFIXES: Final = (".jsonl", ".json", ".md", ".txt")


@dataclass(frozen=True)
class Material:
    """What the teacher has besides the task, as part of a prompt; ``start``:
    a skill to improve.
    """

    text: str = ""
    trace: Condensed | None = None
    start: Draft | None = None
    sent: tuple[tuple[str, int], ...] = ()  # names of the files in it, and their bytes
    unsent: tuple[tuple[str, str], ...] = ()  # those of the skill that are not, and why

    @property
    def lines(self) -> list[str]:
        """What a teacher will be sent, to be shown before."""
        lines = ["Files to be sent, with secrets masked:"] if self.sent else []
        lines += [
            f"  {one_line(name, 200)} ({size:,} bytes)" for name, size in self.sent
        ]
        if self.unsent:
            files = [
                f"{one_line(name, 200)} ({reason})" for name, reason in self.unsent
            ]
            omitted = len(files) - _MOST_UNSENT
            end = f", and {omitted:,} more" if omitted > 0 else ""
            lines.append(f"Not sent: {', '.join(files[:_MOST_UNSENT])}{end}")
        return lines


def gather(settings: TeachSettings, provider: str) -> Material:
    """Read all sources of a run; InputError if one can't be read."""
    parts = list[str]()
    if settings.examples:
        examples = "\n".join(f"- {example}" for example in settings.examples)
        parts.append(
            f"Examples of input -> output:\n{fenced('examples', masked(examples))}"
        )
    if settings.tool:
        tool = read_tool(settings.tool)
        parts.append(f"The skill is for using this tool:\n{fenced('tool', tool)}")
    trace, start, files = None, None, _Files()
    if settings.source is not None:
        file = _skill_file(settings.source)
        if file:
            start = draft_of(load_skill(file))
            files = _files_of(file.parent)
            parts += _skill_parts(start, files)
            files.sent = {file.name: start.text, **files.sent}
        else:
            trace = condensed(read_trace(settings.source), trace_budget(provider))
            trace = replace(trace, text=masked(trace.text))
            fence = fenced("trace", trace.text)
            parts.append(f"A trace of an agent that did the task, condensed:\n{fence}")
            files.sent[f"{shown(settings.source)}, condensed"] = trace.text
    if settings.tool:
        files.sent[settings.tool] = tool
    sizes = tuple(map(size_of, files.sent, files.sent.values()))
    return Material(
        "\n\n".join(parts), trace, start, sizes, tuple(sorted(files.unsent.items()))
    )


def size_of(name: str, text: str) -> tuple[str, int]:
    """An entry of ``Material.sent``."""
    return name, len(text.encode("utf-8", "replace"))


def _skill_file(path: Path) -> Path | None:
    """The SKILL.md of a path; None if it is another file."""
    if not path.exists():
        problem = "no such file or folder"
        raise SettingsError("source", problem, "Check the path.", value=shown(path))
    file = skill_file(path)
    if path.is_file():
        return file if file.name in SKILL_NAMES else None
    if not file.is_file():
        raise SettingsError(
            "source",
            "no SKILL.md in this folder",
            "Give the folder of a skill, or the file of a trace.",
            value=shown(path),
        )
    return file


def trace_budget(provider: str) -> int:
    """How many tokens of a trace a model of this provider may get."""
    budgets = {
        "local": _EMBEDDED_TOKENS,
        "generic": _SERVER_TOKENS,
        "ollama": _SERVER_TOKENS,
    }
    return budgets.get(provider, _HOSTED_TOKENS)


@dataclass
class _Files:
    """The files beside a SKILL.md: texts to send, and why others are not sent."""

    names: list[str] = field(default_factory=list)
    sent: dict[str, str] = field(default_factory=dict)
    unsent: dict[str, str] = field(default_factory=dict)


def _files_of(folder: Path) -> _Files:
    """Only what belongs to the skill: nothing hidden, ignored by git,
    private or linked to.
    """
    contents, is_ignored = contents_of(folder), ignored_in(folder)
    files, budget = _Files(), _MOST_FILE_TOKENS
    for path in sorted(contents.files):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if name in SKILL_NAMES:
            continue
        reason = why_unsendable(folder, relative)
        reason = reason or ("" if is_installed(relative) else "a leftover")
        if reason or is_ignored(relative):
            files.unsent[name] = reason or "ignored by git"
            continue
        files.names.append(name)
        try:
            text = read_skill_file(folder, name)
        except ValueError as error:
            files.unsent[name] = (
                "not text" if isinstance(error, NotTextError) else "too large"
            )
            continue
        if (tokens := estimated_tokens(text)) <= budget:
            budget -= tokens
            files.sent[name] = text
        else:
            files.unsent[name] = f"no room in {_MOST_FILE_TOKENS:,} tokens"
    for link in contents.links_out:
        files.unsent[link.relative_to(folder).as_posix()] = (
            "a link out of the skill's folder"
        )
    return files


def _skill_parts(start: Draft, files: _Files) -> list[str]:
    parts = [f"The skill as it is:\n{fenced('skill', masked(start.text))}"]
    for name, text in files.sent.items():
        parts.append(f"Its file {name}:\n{fenced('file', masked(text))}")
    if names := files.names:
        listed = fenced("files", masked("\n".join(names[:_MOST_NAMES])))
        parts.append(
            f"It has {counted(len(names), 'file')}, which stay as they are:\n{listed}"
        )
    return parts


def read_tool(reference: str) -> str:
    """The definition of a tool as JSON, masked, given FILE#NAME.

    The name is optional if the file has only one tool.
    """
    file, name = _file_and_name(reference)
    error = partial(SettingsError, "tool", value=reference)
    tools = dict(_tools(read_json(file, InputError, _TOOL_FORMS)[1]))
    if not tools:
        raise error(f"no tool in {shown(file)}", _TOOL_FORMS)
    if not name and len(tools) > 1:
        raise error(
            f"{shown(file)} has {len(tools)} tools",
            f"Name one, for example {shown(file)}#{next(iter(tools))}.",
        )
    if name and name not in tools:
        raise error(
            f"{shown(file)} has no tool {name!r}{guess(name, tools)}",
            f"It has: {', '.join(list(tools)[:20])}.",
        )
    tool = tools[name] if name else next(iter(tools.values()))
    return shortened(
        masked(json.dumps(tool, indent=1, ensure_ascii=False)), _LONGEST_TOOL
    )


def _file_and_name(reference: str) -> tuple[Path, str]:
    """The path itself may contain a #."""
    if Path(reference).is_file():
        return Path(reference), ""
    file, _, name = (
        reference.rpartition("#") if "#" in reference else (reference, "", "")
    )
    return Path(file), name


def _tools(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The named tools of a document: a list, a single one,
    or a server's reply to tools/list.
    """
    if isinstance(value, list):
        for entry in value:
            yield from _tools(entry)
    elif isinstance(value, dict):
        inner = [
            value[key]
            for key in ("tools", "result", "functions", "function")
            if key in value
        ]
        if inner:
            yield from _tools(inner[0])
        elif isinstance(name := value.get("name"), str) and name:
            yield name, value


def read_user_messages(paths: Sequence[Path], most_tokens: int) -> Material:
    """The user messages of traces, masked, as many as there is room for;
    an error if none.

    The first of each trace come first.
    """
    by_file, unsent = dict[Path, list[str]](), list[tuple[str, str]]()
    for path in paths:
        files = _files_in(path)
        for file in files:
            try:
                turns = read_trace(file)
            except TraceError as error:
                if files == [path]:
                    raise
                unsent.append((shown(file), error.problem))
                continue
            by_file[file] = [_short(turn.text) for turn in turns if turn.kind == "user"]
    if paths and not any(by_file.values()):
        problem = "no message of a user"
        raise SettingsError(
            "traces", problem, "Name other traces.", value=shown(paths[0])
        )
    chosen, sizes, budget = dict[str, str](), Counter[Path](), most_tokens
    for row in zip_longest(
        *([(file, text) for text in by_file[file]] for file in by_file)
    ):
        for file, text in filter(None, row):
            tokens, key = estimated_tokens(text), text.casefold()
            if text and key not in chosen and tokens <= budget:
                chosen[key] = f"- {text}"
                budget -= tokens
                sizes[file] += len(text.encode("utf-8", "replace"))
    sent = tuple(
        (f"{shown(file)}, its user messages", size) for file, size in sizes.items()
    )
    return Material("\n".join(chosen.values()), sent=sent, unsent=tuple(unsent))


def _files_in(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        files = [
            file
            for file in path.rglob("*")
            if file.suffix in _SUFFIXES and file.is_file()
        ]
    except OSError as error:
        raise SettingsError("traces", reason_of(error), value=shown(path)) from None
    if not files:
        problem = "no trace in this folder"
        raise SettingsError(
            "traces", problem, "Name the file of a trace.", value=shown(path)
        )
    return sorted(files)[:_MOST_TRACES]


def _short(text: str) -> str:
    """On one line, masked and shortened."""
    flat = " ".join(masked(text[:_MOST_MASKED]).split())
    return flat if len(flat) <= _LONGEST_MESSAGE else f"{flat[:_LONGEST_MESSAGE]}…"
