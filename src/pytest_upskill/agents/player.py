"""A scripted model that plays on whatever tools an agent offers.

The doctor and the tests try agents with it: open a skill, read a file, run a command, write a
file. Agents name their tools differently, so each is found by its name and filled in by its form.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, Literal, NamedTuple

from ..trials.answer import Answer, Usage
from ..trials.tools import Tool, ToolCall
from ..trials.trial import Question
from .port import WORKSPACE

Kind = Literal["skill", "read", "shell", "write", "say"]

# Names of tools, the likeliest first; a server's prefix before them does not matter.
_TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "skill": ("skill", "skills", "activate_skill", "use_skill", "load_skill", "read_skill"),
    "shell": (
        *("bash", "shell", "exec_command", "shell_command", "run_shell_command", "execute"),
        *("run_command", "run_commands", "execute_command", "run_terminal_cmd"),
        *("run_terminal_command",),
    ),
    "read": ("read", "read_file", "view", "read_text_file", "read_files"),
    "write": ("write", "write_file", "create", "write_text_file", "create_file"),
}
_COMMAND: Final = ("command", "cmd", "commands", "script")
_PATH: Final = ("filepath", "path", "absolutepath", "file", "filename", "targetfile")
_CONTENT: Final = ("content", "filetext", "contents", "text")
_SKILL: Final = ("skill", "name", "skillname")
_EMPTY: Final = {"string": "x", "integer": 1, "number": 1, "boolean": False, "array": []}


class Step(NamedTuple):
    """What to do next: ``Step("write", "out.txt", "hello")``.

    A path may begin with ``{skill}``, the folder of the skill as the agent tells it.
    """

    kind: Kind
    what: str  # a skill, a path, a command or a text
    text: str = ""  # of a file that is written


class Player:
    """Takes one step for each result that it was told; the last step is repeated."""

    def __init__(self, steps: Sequence[Step], skill: str = "", folder: str = "") -> None:
        self._steps = steps
        self._skill = skill
        self._folder = folder  # of the skill, if nothing that was said tells

    def __call__(self, question: Question) -> Answer:
        if not question.tools:
            return Answer("A title", Usage(1, 1, 0))
        told = [result.text for step in question.steps for result in step.results]
        said = "\n".join([question.system, *(text for _, text in question.messages), *told])
        step = self._steps[min(len(told), len(self._steps) - 1)]
        return self._play(step, question.tools, said, len(told))

    def _play(self, step: Step, tools: Sequence[Tool], said: str, number: int) -> Answer:
        kind, what, text = step
        what = what.replace("{skill}", self._folder_of(self._skill, said))
        if kind == "say":
            return Answer(what, Usage(1, 1, 0))
        tool = _tool_for(kind, tools)
        if tool is None and kind == "skill":
            file = f"{self._folder_of(what, said)}/SKILL.md"
            return self._play(Step("read", file), tools, said, number)
        if tool is None:
            command = f"cat {what}" if kind == "read" else f"cat > {what} <<'EOF'\n{text}\nEOF"
            kind, what, tool = "shell", command, _tool_for("shell", tools)
        if tool is None:
            return Answer(f"no tool for {kind} among {', '.join(one.name for one in tools)}")
        arguments = json.dumps(_filled(tool, kind, what, text))
        call = ToolCall(f"call_{number:02d}", tool.name, arguments)
        return Answer("", Usage(1, 1, 0), "tools", calls=(call,))

    def _folder_of(self, skill: str, said: str) -> str:
        """Where an agent says that a skill is."""
        found = re.search(rf"([\w./~-]*/{re.escape(skill)})(?=/SKILL\.md|\s|<|`|$)", said)
        if not skill or not found:
            return self._folder or skill
        root, slash, rest = found[1].partition("/")
        table = re.search(rf"`{re.escape(root)}` = `([^`\n]+)`", said) if root else None
        return f"{table[1]}{slash}{rest}" if table else found[1]  # Codex shortens paths: r0/NAME


def _tool_for(kind: str, tools: Iterable[Tool]) -> Tool | None:
    named = {re.split(r"__|\.|-", tool.name)[-1].lower(): tool for tool in reversed([*tools])}
    return next((named[name] for name in _TOOLS[kind] if name in named), None)


def _filled(tool: Tool, kind: str, what: str, text: str) -> dict[str, Any]:
    schema = json.loads(tool.schema or "{}")
    schema = schema if isinstance(schema, dict) else {}
    filled = dict[str, Any]()
    for name, form in (schema.get("properties") or {}).items():
        low = name.lower().replace("_", "")
        if kind == "shell" and low in _COMMAND:
            filled[name] = [what] if form.get("type") == "array" else what
        elif kind in ("read", "write") and low in _PATH:
            wants_absolute = "absolute" in f"{name} {form.get('description')}".lower()
            filled[name] = str(PurePosixPath(WORKSPACE, what)) if wants_absolute else what
        elif kind == "read" and low == "files":  # several at once, each of a form of its own
            filled[name] = [{"path": what}]
        elif kind == "write" and low in _CONTENT:
            filled[name] = text
        elif kind == "skill" and low in _SKILL:
            filled[name] = what
        elif name in (schema.get("required") or ()):
            filled[name] = (form.get("enum") or [_EMPTY.get(form.get("type"), "x")])[0]
    return filled
