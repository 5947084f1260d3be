"""The tools of our own agent. Whatever a model sends gets a result."""

import json
import signal
from collections.abc import Sequence
from typing import Any, Final

from .._util.files import reason_of
from .._util.texts import counted
from ..trials.transcript import Tool, ToolCall, ToolResult
from ..trials.written_calls import is_called
from .part import CallTool, PartTool
from .sandboxes.sandbox import Sandbox, TreeEntry
from .skill_content import MOST_LISTED, skill_content
from .staging import InstalledSkill

# Characters of a result, of all results of a turn, and of a trial, after which each
# result is cut: a conversation has to fit into the model's context.
LONGEST_RESULT: Final = 30_000
LONGEST_TURN: Final = 100_000
LONGEST_TRIAL: Final = 400_000
CUT_RESULT: Final = 2_000
_STATUS_LENGTH: Final = 200  # for the status besides the text
LONGEST_SKILL: Final = 200_000
DEFAULT_TIMEOUT: Final = 120
LONGEST_TIMEOUT: Final = 600
MOST_LINES: Final = 2_000
MOST_BYTES: Final = 2_000_000  # of a file

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 1}
_TYPES: Final = {"string": (str, "a string"), "integer": (int, "a whole number")}


class _Failure(Exception):
    """What is wrong with a call, for the model."""


def _tool(
    name: str, description: str, required: dict[str, Any], **optional: Any
) -> Tool:
    schema = {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }
    return Tool(name, description, json.dumps(schema))


TOOLS: Final = (
    _tool(
        "bash",
        "Run a command with bash in the workspace. Each call is a shell of its own."
        " Returns output, errors and exit status. The timeout is in seconds, by"
        f" default {DEFAULT_TIMEOUT}.",
        {"command": _TEXT},
        timeout={**_COUNT, "maximum": LONGEST_TIMEOUT},
    ),
    _tool(
        "read",
        f"Read a text file, by default its first {MOST_LINES:,} lines. The first line"
        " is 1.",
        {"path": _TEXT},
        offset={**_COUNT, "description": "the first line to read"},
        limit={**_COUNT, "description": "how many lines to read"},
    ),
    _tool(
        "write",
        "Write a text file. Replaces the file if there is one, and makes missing"
        " folders.",
        {"path": _TEXT, "content": _TEXT},
    ),
    _tool(
        "edit",
        "Replace a text in a file. The old text must be exact and occur once in the"
        " file.",
        {"path": _TEXT, "old": _TEXT, "new": _TEXT},
    ),
    _tool(
        "list",
        "List all files below a folder, with their sizes in bytes.",
        {},
        path=_TEXT,
    ),
)


class Toolbox:
    """Runs the calls of a trial."""

    def __init__(
        self,
        sandbox: Sandbox,
        skills: Sequence[InstalledSkill],
        part_tools: Sequence[PartTool] = (),
    ) -> None:
        self._sandbox = sandbox
        self._used = 0  # characters so far
        self._skills = {skill.name: skill for skill in skills}
        self._tools: dict[str, CallTool] = {
            "bash": self._bash,
            "read": self._read,
            "write": self._write,
            "edit": self._edit,
            "list": self._list,
        }
        self._schemas = {tool.name: json.loads(tool.schema) for tool in TOOLS}
        if skills:
            self._tools["skill"] = self._skill
            self._schemas["skill"] = {
                "properties": {"name": _TEXT},
                "required": ["name"],
            }
        for offered in part_tools:
            self._tools[offered.tool.name] = offered.call

    @property
    def is_full(self) -> bool:
        """Whether results were so long that further ones are cut."""
        return self._used > LONGEST_TRIAL

    def writes(self, call: ToolCall) -> bool:
        """Whether later calls of the same turn must wait for it."""
        return call.name in ("write", "edit")

    async def run(self, call: ToolCall, beside: int = 1) -> ToolResult:
        """The result of one of ``beside`` calls. Only a broken sandbox raises."""
        longest = max(CUT_RESULT, min(LONGEST_RESULT, LONGEST_TURN // beside))
        if call.name == "skill":
            longest = LONGEST_SKILL
        elif self.is_full:
            longest = CUT_RESULT
        try:
            tool = self._tools.get(call.name)
            if tool is None:
                raise _Failure(self._no_such_tool(call.name))
            arguments = _arguments(call, self._schemas.get(call.name))
            text, failed = await tool(arguments, longest - _STATUS_LENGTH)
        except _Failure as failure:
            text, failed = str(failure), True
        # Servers reject null characters, and surrogates can't be encoded.
        text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
        text = cut(text, longest)
        self._used += len(text)
        return ToolResult(call.id, text, failed)

    def _no_such_tool(self, name: str) -> str:
        if skill := next(
            (skill for skill in self._skills if is_called(skill, name)), ""
        ):
            return f'No such tool, but such a skill: call skill with name "{skill}".'
        return f"No such tool: {cut(name, 100)!r}. There are {', '.join(self._tools)}."

    async def _bash(self, args: dict[str, Any], longest: int) -> tuple[str, bool]:
        seconds = min(args.get("timeout", DEFAULT_TIMEOUT), LONGEST_TIMEOUT)
        ran = await self._sandbox.run(args["command"], timeout=seconds)
        text = cut(ran.output.decode("utf-8", "replace"), longest, ran.cut).rstrip()
        if ran.timed_out:
            return text, True  # the sandbox says so
        return f"{text}\n{_status(ran.exit)}".lstrip("\n"), ran.exit != 0

    async def _read(self, args: dict[str, Any], longest: int) -> tuple[str, bool]:
        path = args["path"]
        data = await self._data(path)
        if b"\0" in data:
            raise _Failure(f"{path}: a binary file, not a text")
        lines = data[:MOST_BYTES].decode("utf-8", "replace").splitlines(keepends=True)
        first = args.get("offset", 1)
        if first > max(1, len(lines)):
            raise _Failure(f"{path}: has only {counted(len(lines), 'line')}")
        selected = lines[first - 1 : first - 1 + args.get("limit", MOST_LINES)]
        text = cut("".join(selected), longest)
        last = first - 1 + len(selected)
        if len(data) > MOST_BYTES:
            text += (
                f"\n[lines {first:,} to {last:,}; of the file, only {MOST_BYTES:,}"
                " bytes are read]"
            )
        elif len(selected) < len(lines):
            text += f"\n[lines {first:,} to {last:,} of {len(lines):,}]"
        return text or "[an empty file]", False

    async def _write(self, args: dict[str, Any], _: int) -> tuple[str, bool]:
        data = args["content"].encode("utf-8", "replace")
        try:
            await self._sandbox.write(args["path"], data)
        except (OSError, ValueError) as error:
            raise _failure(args["path"], error) from None
        return f"Wrote {counted(len(data), 'byte')} to {args['path']}.", False

    async def _edit(self, args: dict[str, Any], _: int) -> tuple[str, bool]:
        path, old, new = args["path"], args["old"], args["new"]
        if not old:
            raise _Failure("The old text is empty.")
        if old == new:
            raise _Failure("The old and the new text are the same.")
        data = await self._data(path)
        if len(data) > MOST_BYTES:
            raise _Failure(
                f"{path}: larger than {MOST_BYTES:,} bytes, so it can't be edited"
            )
        old_data, new_data = (text.encode("utf-8", "replace") for text in (old, new))
        times = data.count(old_data)
        if times != 1:
            was = "not found" if not times else f"found {times:,} times"
            raise _Failure(
                f"{path}: the old text was {was}; it must occur once. Nothing changed."
            )
        try:
            await self._sandbox.write(path, data.replace(old_data, new_data))
        except (OSError, ValueError) as error:
            raise _failure(path, error) from None
        return f"Edited {path}.", False

    async def _list(self, args: dict[str, Any], _: int) -> tuple[str, bool]:
        path = args.get("path", ".")
        try:
            entries = await self._sandbox.tree(path)
        except (OSError, ValueError) as error:
            raise _failure(path, error) from None
        lines = [_listed(entry) for entry in entries[:MOST_LISTED]]
        if len(entries) > MOST_LISTED:
            lines.append(f"[… {len(entries) - MOST_LISTED:,} more …]")
        return "\n".join(lines) or "[no files]", False

    async def _skill(self, args: dict[str, Any], _: int) -> tuple[str, bool]:
        skill = self._skills.get(args["name"])
        if skill is None:
            name = cut(args["name"], 100)
            raise _Failure(
                f"No such skill: {name!r}. There are {', '.join(self._skills)}."
            )
        return skill_content(skill, self._sandbox), False

    async def _data(self, path: str) -> bytes:
        """One byte more than the limit shows that a file is too large."""
        try:
            return await self._sandbox.read(path, MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            raise _failure(path, error) from None


def _listed(entry: TreeEntry) -> str:
    if entry.folder:
        return f"{entry.path}/"
    target = f"-> {entry.link}" if entry.link is not None else f"({entry.size:,})"
    return f"{entry.path} {target}"


def cut(text: str, longest: int, missing: int = 0) -> str:
    """A text without its middle, if it is too long; ``missing`` was left out before."""
    if len(text) <= longest:
        return text
    half = longest // 2
    left_out = len(text) - 2 * half + missing
    return (
        f"{text[:half]}\n[… {left_out:,} characters left out"
        f" …]\n{text[len(text) - half :]}"
    )


def _arguments(call: ToolCall, schema: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, checked against the tool's schema;
    a mock checks its own.
    """
    try:
        args = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        raise _Failure("Not run: the arguments are not valid JSON.") from None
    args = {} if args is None else args  # some models write null for no arguments
    if not isinstance(args, dict):
        raise _Failure("Not run: the arguments are not a JSON object.")
    if schema is None:
        return args
    properties, problems = schema["properties"], list[str]()
    for name, value in list(args.items()):
        if name not in properties:
            problems.append(f"no argument {cut(name, 100)!r}")
        elif value is None and name not in schema["required"]:
            del args[name]  # some models write null for a default
        else:
            if isinstance(value, float) and value.is_integer():
                args[name] = int(value)  # JSON does not tell 5.0 from 5
            problems += _problems(name, args[name], properties[name])
    problems += [
        f"{name!r} is missing" for name in schema["required"] if name not in args
    ]
    if problems:
        takes = ", ".join(properties)
        raise _Failure(
            f"Not run: {'; '.join(problems[:10])}. {call.name} takes {takes}."
        )
    return {
        name: (
            value.encode("utf-8", "replace").decode("utf-8")
            if isinstance(value, str)
            else value
        )
        for name, value in args.items()
    }


def _problems(name: str, value: object, form: dict[str, Any]) -> list[str]:
    kind, words = _TYPES[form["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        return [f"{name!r} must be {words}"]
    if isinstance(value, int) and value < form.get("minimum", value):
        return [f"{name!r} must be at least {form['minimum']}"]
    if (
        isinstance(value, str)
        and "\0" in value
        and name not in ("content", "old", "new")
    ):
        return [f"{name!r} has a null character"]
    return []


def _status(code: int) -> str:
    if code >= 0:
        return f"[exit status {code}]"
    try:
        return f"[ended by signal {signal.Signals(-code).name}]"
    except ValueError:
        return f"[ended by signal {-code}]"


def _failure(path: str, error: OSError | ValueError) -> _Failure:
    reason = reason_of(error) if isinstance(error, OSError) else str(error)
    return _Failure(f"{cut(path, 500)}: {reason}")
