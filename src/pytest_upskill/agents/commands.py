"""Which files of a skill a command runs, by the text of the command: a best effort."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

from ..skills.folder import SKILL_NAMES
from ..trials.tools import ToolCall
from .port import WORKSPACE, InstalledSkill

_LONGEST: Final = 100_000  # characters of a command that are looked at
_SHELL_KEYS: Final = frozenset({"command", "cmd", "script", "code", "commands", "args", "input"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_ENDS: Final = frozenset({";", "&&", "||", "|", "|&", "&", "(", ")", ";;", "\n", "{", "}"})
# Words before the command proper; those with a number take one argument.
_BEFORE: Final = frozenset(
    {"sudo", "time", "nohup", "exec", "command", "env", "nice", "timeout", "stdbuf", "xargs"}
    | {"if", "then", "else", "elif", "while", "until", "do", "!", "eval", "uv", "uvx", "poetry"}
    | {"npx", "bunx", "pnpm", "run", "busybox", "setsid", "unbuffer", "strace"}
)
_SHELLS: Final = re.compile(r"(?:ba|da|z|k|a|fi)?sh")
_INTERPRETER: Final = re.compile(
    r"(?:ba|da|z|k|a|fi)?sh|source|\.|python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node"
    r"|ruby|perl|php|lua|Rscript|pwsh|julia|java|go|awk|gawk|tclsh|make"
)
_TAKES_VALUE: Final = re.compile(r"-[WXOQIr]|--(?:require|import|loader|env-file)")
_NEVER_RAN: Final = re.compile(
    r"not found\s*$|No such file or directory|[Pp]ermission denied|cannot execute",
    re.M,
)
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1(?P<rest>[^\n]*)\n.*?^\s*\2\s*$", re.M | re.S)


def files_run(call: ToolCall, output: str, skill: InstalledSkill, *, failed: bool) -> list[str]:
    """The files of a skill that a call ran, relative to the skill."""
    if failed and len(output) < 2_000 and _NEVER_RAN.search(output):
        return []
    names = [path for path in skill.files if path not in SKILL_NAMES]
    found = dict[str, None]()
    for command in strings_of(call):
        for path in _run_by(command[:_LONGEST], skill, names, WORKSPACE, deep=2):
            found[path] = None
    return list(found)


def strings_of(call: ToolCall) -> list[str]:
    """The command lines in the arguments of a call, whatever the tool calls them."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return []
    if not isinstance(arguments, dict):
        return []
    return [
        text for key, value in arguments.items() if key in _SHELL_KEYS for text in _lines(value)
    ]


def _lines(value: Any) -> list[str]:
    """A command as a text, or as a list of words."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return [shlex.join(value)]
    return []


def _run_by(
    command: str, skill: InstalledSkill, names: list[str], folder: str, deep: int
) -> Iterator[str]:
    for words in _simple_commands(command):
        while words and (words[0] in _BEFORE or _ASSIGNMENT.match(words[0])):
            words = _without_options(words[1:]) if words[0] in _BEFORE else words[1:]
        if not words:
            continue
        first, rest = words[0], words[1:]
        if first in ("cd", "pushd"):
            folder = posixpath.normpath(posixpath.join(folder, rest[0])) if rest else folder
            continue
        if path := _in_skill(first, skill, names, folder):
            yield path
            continue
        program = posixpath.basename(first)
        if not _INTERPRETER.fullmatch(program):
            continue
        if _SHELLS.fullmatch(program) and deep and (line := _line_of(rest)) is not None:
            yield from _run_by(line, skill, names, folder, deep - 1)
        else:
            yield from _script_of(rest, skill, names, folder)


def _script_of(
    words: list[str], skill: InstalledSkill, names: list[str], folder: str
) -> Iterator[str]:
    """What an interpreter is given to run: a file, a module, or code that imports one."""
    rest = iter(words)
    for word in rest:
        if word == "-m":
            module = next(rest, "").replace(".", "/")
            for end in (".py", "/__main__.py"):
                if path := _in_skill(module + end, skill, names, folder):
                    yield path
            return
        if word in ("-c", "-e", "--eval", "-p"):
            return
        if word in ("-f", "-I") or _TAKES_VALUE.fullmatch(word):
            word = next(rest, "") if word != "-I" else ""
            if path := _in_skill(word, skill, names, folder):
                yield path
                return
        elif not word.startswith("-") and word not in ("run", "exec"):
            if path := _in_skill(word, skill, names, folder):
                yield path
            return


def _in_skill(word: str, skill: InstalledSkill, names: list[str], folder: str) -> str | None:
    """The file of the skill that a word names in a folder."""
    if "/" not in word and "." not in word:
        return None
    path = posixpath.normpath(posixpath.join(folder, word))
    skill_folder = posixpath.basename(skill.inside)
    for name in names:
        if path == f"{skill.inside}/{name}" or path.endswith(f"/{skill_folder}/{name}"):
            return name
        # A variable holds the skill's folder, or one in it.
        if "$" in path and re.search(rf"\$\{{?\w+\}}?(?:/\S*)?/{re.escape(name)}$", path):
            return name
        if "$" in path and path.rpartition("/")[2] == posixpath.basename(name) and "/" in name:
            return name
    return None


def _line_of(words: list[str]) -> str | None:
    """The command line in ``bash -lc "…"``."""
    for at, word in enumerate(words[:-1]):
        if re.fullmatch(r"-\w*c", word):
            return words[at + 1]
        if not word.startswith("-"):
            return None
    return None


def _without_options(words: list[str]) -> list[str]:
    """Without the options, numbers and assignments after a word such as timeout."""
    at = 0
    while at < len(words) and re.match(r"-|[\d.]+[smhd]?$", words[at]):
        at += 1
    return words[at:]


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The commands of a command line, as words; the content of here-documents is none."""
    line = _HEREDOC.sub(lambda match: match["rest"] + "\n", command)
    line = line.replace("\\\n", " ").replace("$(", " ; ( ").replace("`", " ; ")
    for part in line.split("\n"):
        lexer = shlex.shlex(part, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list[str]()
        try:
            for word in lexer:
                if set(word) <= set(";&|()") or word in _ENDS:
                    yield words
                    words = []
                else:
                    words.append(word)
        except ValueError:  # an open quote: what came before it still tells
            pass
        yield words
