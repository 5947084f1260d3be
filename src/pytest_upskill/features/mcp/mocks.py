"""Mocks of MCP servers: ``evals/mocks/SERVER/TOOL.md``,
in the form of Claude Code's plugin evals.

They become JSON, from which ``answers.py`` answers an agent's calls.
No real server is ever started.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ..._util.json_forms import FormError, Problem, json_path, read_form, read_json
from ..._util.texts import first_few, guess, one_line
from ...agents.part import PartReader
from ...checks.matching import compile_pattern
from ...errors import CasesError, SkillError, shown
from ...skills.case_forms import CaseForm
from ...skills.folder import MANIFEST, read_skill_bytes, text_of, walk
from ...skills.plugins import MCP_FILE, is_plugin, plugin_name, read_manifest
from ...skills.yaml_forms import read_yaml_form
from .part import McpServers
from .server import McpServer

MOCKS: Final = "evals/mocks"
_TOOLS: Final = "_tools.json"
_SERVER: Final = "_server.md"  # of several tools, which a model plays
_README: Final = "README.md"
_FIXTURES: Final = "fixtures/"
_MOST_BYTES: Final = 5_000_000  # of a server
_MOST_LEVELS: Final = 4  # from a skill to its plugin
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. @:-]{0,63}")
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_RULE: Final = "---"
_REGEX: Final = re.compile(r"/(.+)/([a-z]*)", re.S)
_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")  # a named group in JavaScript
_TYPES: Final = ("string", "number", "boolean", "array", "object")
_ANY: Final = {"type": "object", "properties": {}, "additionalProperties": True}


class _Lenient(BaseModel):
    """A form that converts no types. Others may have more keys."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class _AnswerForm(_Lenient):
    when: dict[str, Any]
    text: str
    error: bool = False


class _MockForm(_Lenient):
    type: Literal["fixed", "agent"] = "fixed"
    expect: dict[str, Any] = Field(default_factory=dict)
    error: bool = False
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    answers: list[_AnswerForm] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)

    @property
    def about_tool(self) -> dict[str, Any]:
        """What it says of a tool, as tools/list has it."""
        about: dict[str, Any] = {}
        if self.description is not None:
            about["description"] = self.description
        if self.input_schema is not None:
            about["inputSchema"] = {**self.input_schema, "type": "object"}
        return about


class _ToolForm(_Lenient):
    name: str
    title: str | None = None
    description: str | None = None
    inputSchema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None


_MOCK: Final = TypeAdapter(_MockForm)
_LISTED: Final = TypeAdapter(list[_ToolForm])


class Mocks(NamedTuple):
    """The servers that have mocks, by name, and what was left out."""

    servers: Mapping[str, McpServer]
    notes: tuple[str, ...] = ()


class McpMocks(PartReader):
    """The mocks for cases in a folder: those of the plugin above it, its own,
    and a case's.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.with_folder: Callable[[str], Mocks] = cache(self._read)

    def part_of(self, form: CaseForm) -> McpServers | None:
        """The servers that a case names, else all that have mocks."""
        own = form.mocks or ""
        if own and PurePosixPath(own).parts[0] != "evals":
            problem = "is not in evals/, so it would be installed with the skill"
            raise FormError([(("mocks",), f"{own!r} {problem}")])

        servers = self.with_folder(own).servers
        problems: list[Problem] = []
        for step, name in enumerate(form.mcp or ()):
            if name not in servers:
                problem = f"no mocks of the MCP server {name!r}{guess(name, servers)}"
                hint = f"write {MOCKS}/{name}/TOOL.md, which answers calls of a tool"
                problems.append((("mcp", step), f"{problem}; {hint}"))
        if problems:
            raise FormError(problems)

        named = servers if form.mcp is None else form.mcp
        chosen = [server for name, server in servers.items() if name in named]
        return McpServers(tuple(chosen)) if chosen else None

    def notes(self) -> tuple[str, ...]:
        return self.with_folder("").notes

    def _read(self, own: str) -> Mocks:
        """The mocks, with those of a folder that a case names, if it does.

        A file replaces the same one of an earlier folder.
        CasesError if one can't be used.
        """
        plugin = _plugin_above(self.folder)
        places = [(plugin, MOCKS)] if plugin and plugin != self.folder else []
        places += [(self.folder, MOCKS), *([(self.folder, own)] if own else [])]
        servers = dict[str, dict[str, _MockFile]]()
        for root, mocks in places:
            for server, path in _paths_in(root / mocks):
                servers.setdefault(server, {})[path] = _MockFile(
                    root, f"{mocks}/{server}/{path}"
                )
        declared, notes = _declared(plugin) if plugin else ((), [])
        name = plugin_name(plugin) if plugin else ""
        mocked = dict[str, McpServer]()
        for server, files in sorted(servers.items()):
            content, server_notes = _compiled(server, files)
            notes += server_notes
            if content:
                mocked[server] = McpServer(
                    server, content, name if server in declared else ""
                )
        if missing := [
            one_line(server, 60) for server in declared if server not in mocked
        ]:
            notes.append(
                f"MCP servers without mocks are left out: {first_few(missing, 10)}"
            )
        return Mocks(mocked, tuple(notes))


class _MockFile(NamedTuple):
    root: Path  # of the skill or plugin, which it must not lead out of
    path: str

    @property
    def file(self) -> Path:
        return self.root / self.path

    def read(self) -> str:
        """CasesError if it is no text of the skill's own."""
        try:
            return text_of(read_skill_bytes(self.root, self.path))
        except ValueError as error:
            raise CasesError(
                self.file, str(error), "Mocks are texts inside the skill."
            ) from None

    def error(self, problem: str, line: int = 1) -> CasesError:
        return CasesError(f"{shown(self.file)}:{line}", problem)


def _paths_in(top: Path) -> Iterator[tuple[str, str]]:
    """Servers, and the paths of their files; hidden ones belong to tools."""
    for folder, subfolders, names in walk(top):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in subfolders:
            if (folder / name).is_symlink():
                raise CasesError(
                    folder / name, "a link to a folder", "Copy the folder."
                )
        for name in sorted(names):
            server, *inside = (folder / name).relative_to(top).parts
            if inside and not name.startswith("."):
                yield server, "/".join(inside)


# From files to JSON.


def _compiled(server: str, files: Mapping[str, _MockFile]) -> tuple[str, list[str]]:
    """The JSON of a server, empty if it has no tools, and what was left out."""
    some = next(iter(files.values()))
    if not _SERVER_NAME.fullmatch(server):
        raise some.error(f"{one_line(server, 80)!r} can't be the name of an MCP server")
    tools = {tool["name"]: tool for tool in _listed(files.get(_TOOLS))}
    mocks, fixtures, notes, size = dict[str, Any](), dict[str, str](), list[str](), 0
    for path, file in sorted(files.items()):
        if path.startswith(_FIXTURES):
            fixtures[path] = file.read()
            size += len(fixtures[path])
        elif path.endswith(".md") and "/" not in path and path != _README:
            form, body = _mock_form(file)
            size += len(body)
            by_model = path == _SERVER or form.type == "agent"
            for tool in form.tools if path == _SERVER else [path.removesuffix(".md")]:
                if not _TOOL_NAME.fullmatch(tool):
                    raise file.error(
                        f"{one_line(tool, 80)!r} can't be the name of a tool"
                    )
                tools[tool] = tools.get(tool, {"name": tool}) | form.about_tool
                mocks |= {} if by_model else {tool: _mock_of(form, body, file)}
            if by_model:
                notes.append(
                    f"mocks of the type agent are not answered: {shown(file.file)}"
                )
        elif path not in (_TOOLS, _README):
            notes.append(
                f"files among mocks that are no mocks are ignored: {shown(file.file)}"
            )
        if size > _MOST_BYTES:
            raise file.error(
                f"the mocks of {server} have more than {_MOST_BYTES // 10**6} MB"
            )
    if not tools:
        return "", notes
    listed = [{"inputSchema": _ANY, **tool} for tool in tools.values()]
    content = {"tools": listed, "mocks": mocks, "files": fixtures}
    return json.dumps(content, sort_keys=True), notes


def _listed(file: _MockFile | None) -> Iterator[dict[str, Any]]:
    """The tools of a saved tools/list. Their output is not structured,
    whatever they say.
    """
    if file is None:
        return
    text = file.read()
    _, data = read_json(file.file, CasesError, read=lambda _: text.encode())
    for key in ("result", "tools"):
        data = data.get(key, data) if isinstance(data, dict) else data
    try:
        forms: list[_ToolForm] = read_form(_LISTED, data)
    except FormError as error:
        place, problem = error.problems[0]
        raise file.error(f"{json_path(place)}: {problem}") from None
    for form in forms:
        if not _TOOL_NAME.fullmatch(form.name):
            raise file.error(f"{one_line(form.name, 80)!r} can't be the name of a tool")
        tool = form.model_dump(exclude_none=True)
        if "inputSchema" in tool:
            tool["inputSchema"] = {**tool["inputSchema"], "type": "object"}
        yield tool


def _mock_form(file: _MockFile) -> tuple[_MockForm, str]:
    """The frontmatter of a mock, which may have none, and its body."""
    text = file.read()
    lines = text.split("\n")
    if lines[0].rstrip() != _RULE:
        return _MockForm(), text.strip()
    end = next(
        (n for n, line in enumerate(lines[1:], 1) if line.rstrip() == _RULE), None
    )
    if end is None:
        raise file.error("the frontmatter is not closed; end it with a line '---'")
    head = "\n".join(lines[1:end])
    form: _MockForm = read_yaml_form(_MOCK, head, file.file, before=1)
    return form, "\n".join(lines[end + 1 :]).strip()


def _mock_of(form: _MockForm, body: str, file: _MockFile) -> dict[str, Any]:
    answers = [
        {"when": _rules(answer.when, file), "text": answer.text, "error": answer.error}
        for answer in form.answers
    ]
    if body or not answers:
        answers.append({"when": {}, "text": body, "error": form.error})
    return {"expect": _rules(form.expect, file), "answers": answers}


def _rules(written: Mapping[str, Any], file: _MockFile) -> dict[str, dict[str, Any]]:
    return {path: _rule(value, file) for path, value in written.items()}


def _rule(value: Any, file: _MockFile) -> dict[str, Any]:
    """A type's name, a ``/pattern/``, a value, or a list of values."""
    if value in _TYPES:
        return {"type": value}
    match = _REGEX.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return {"choices": value if isinstance(value, list) else [value]}
    pattern = _GROUP.sub("(?P<", match[1])
    flags = "".join(flag for flag in match[2] if flag in "ims")
    try:
        compile_pattern(pattern)
    except ValueError as error:
        problem = f"the pattern {one_line(value, 60)} can't be used: {error}"
        raise file.error(problem) from None
    return {"pattern": pattern, "flags": flags}


# The plugin above a skill.


def _plugin_above(folder: Path) -> Path | None:
    """The plugin that a folder is, or is part of; not above its repository."""
    for place in (folder, *folder.absolute().parents[:_MOST_LEVELS]):
        if is_plugin(place):
            return place
        if (place / ".git").exists():
            break
    return None


def _declared(plugin: Path) -> tuple[tuple[str, ...], list[str]]:
    """The MCP servers of a plugin, and which files can't be read."""
    servers, notes = list[str](), list[str]()
    try:
        written = read_manifest(plugin / MANIFEST).servers
    except SkillError:  # which is told where the plugin is tested
        written = None
    default = [MCP_FILE] if (plugin / MCP_FILE).is_file() else []
    for part in (*default, *(written if isinstance(written, list) else [written])):
        if isinstance(part, dict):
            servers += part
        elif isinstance(part, str):
            try:
                servers += _servers_in(plugin, part)
            except (ValueError, RecursionError) as error:
                reason = f"{shown(plugin / part)}: {one_line(str(error), 200)}"
                notes.append(f"MCP servers that can't be read are left out: {reason}")
    return tuple(dict.fromkeys(servers)), notes


def _servers_in(plugin: Path, path: str) -> list[str]:
    """The names of the MCP servers in a file of a plugin."""
    content = json.loads(text_of(read_skill_bytes(plugin, path)))
    if not isinstance(content, dict):
        return []
    servers = content.get("mcpServers", content)
    return list(servers) if isinstance(servers, dict) else []
