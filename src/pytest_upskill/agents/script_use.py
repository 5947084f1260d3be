"""Which files of a skill an agent's commands run, judged by their text."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from ..skills.folder import SKILL_NAMES
from ..trials.transcript import ToolCall
from .staging import InstalledSkill

_LONGEST: Final = 20_000  # characters of a command that are parsed
_DEEPEST: Final = 5  # commands in commands
_MOST_FILES: Final = 1_000  # of a skill
_MOST_INNER: Final = 30  # commands in one line
_COMMAND_KEYS: Final = ("command", "cmd", "script", "code", "commands", "args", "input")
_FOLDER_KEYS: Final = ("workdir", "cwd", "dir_path", "directory", "working_directory")
_SEPARATORS: Final = ";&|()"
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_NUMBER: Final = re.compile(r"[\d.]+[smhd]?")
_BEFORE: Final = frozenset(  # words before a command
    {
        "sudo",
        "time",
        "nohup",
        "exec",
        "command",
        "env",
        "nice",
        "timeout",
        "stdbuf",
        "xargs",
    }
    | {"if", "then", "else", "elif", "while", "until", "do", "!", "{", "eval", "setsid"}
    | {"uv", "poetry", "pipenv", "npx", "bunx", "pnpm", "run", "exec", "busybox"}
)
_READERS: Final = frozenset(
    {
        "cat",
        "head",
        "tail",
        "less",
        "more",
        "grep",
        "rg",
        "sed",
        "awk",
        "ls",
        "cp",
        "mv",
        "wc",
    }
    | {
        "file",
        "stat",
        "diff",
        "find",
        "echo",
        "chmod",
        "touch",
        "nl",
        "od",
        "sort",
        "test",
    }
)
_SHELL: Final = re.compile(r"(?:ba|da|z|k|a|fi)?sh")
_INTERPRETER: Final = re.compile(
    rf"{_SHELL.pattern}|source|\.|(?:python|pypy)[\d.]*|node|nodejs|deno|bun|tsx|ts-node"
    r"|ruby|perl|php|lua|Rscript|pwsh|julia|java|go|gawk|awk|tclsh|make"
)
# The program follows, or comes on standard input
_CODE: Final = ("-c", "-e", "--eval", "-p", "-")
_ONLY_CHECKED: Final = ("-n", "--check", "-l", "--version", "--help")
_WITH_VALUE: Final = (
    "-W",
    "-X",
    "-O",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--env-file",
)
# Messages of shells and interpreters that could not start a program.
_NOT_STARTED: Final = re.compile(
    r"^(?:/\S*/)?(?:ba|da|z)?sh: (?:line )?(?:\d+: )?(?:\d+: )?(\S+): "
    r".*(?:not found|denied|No such file|cannot|bad int)"
    r"|can't open file '([^']+)'|Cannot find module '([^']+)'",
    re.M,
)
_LITERAL: Final = re.compile(
    r"""\b(?:cmd|command)["']?\s*:\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1""", re.S
)
_ESCAPED: Final = {"n": "\n", "t": "\t"}
_SHELL_TOOL: Final = re.compile(r"bash|shell|exec|terminal|command|run", re.I)
_HEREDOC: Final = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_SINGLE_QUOTED: Final = re.compile(r"'[^']*'")


class ScriptUse:
    """Watches the commands of a trial, in order."""

    def __init__(self, skill: InstalledSkill, workdir: str) -> None:
        self.skill = skill
        self._workdir = workdir  # where commands run
        self._names = [path for path in skill.files if path not in SKILL_NAMES][
            :_MOST_FILES
        ]
        self._called = dict[str, list[str]]()  # paths by file name
        for name in self._names:
            self._called.setdefault(posixpath.basename(name), []).append(name)
        self._copies: dict[str, str] = {}  # path of a copy → file
        self._last = workdir  # the folder of the current command
        # Where the last call ended: some agents keep their shell
        self._folder = workdir
        self.ran: dict[str, None] = {}  # as an ordered set

    def saw(self, call: ToolCall, output: str, *, failed: bool) -> list[str]:
        """The files that a call ran; ``output`` is its result."""
        scripts = list[str]()
        failed_names = _not_started(output[:_LONGEST]) if failed else set()
        for folder, command in _commands_of(call):
            self._last = posixpath.join(self._workdir, folder)
            for path in self._run_by(command[:_LONGEST], _DEEPEST):
                if not failed_names & {posixpath.basename(path), "cd"} and not any(
                    _INTERPRETER.fullmatch(name) for name in failed_names
                ):
                    scripts.append(path)
            self._folder = self._last
        self.ran |= dict.fromkeys(scripts)
        return scripts

    def _run_by(self, command: str, depth: int) -> Iterator[str]:
        yield from self._imported_by(command)
        line, inner = _without_substitutions(
            _without_heredocs(command).replace("\\\n", " ")
        )
        for substitution in inner if depth else ():
            yield from self._run_by(substitution, depth - 1)
        for command_words in _simple_commands(line):
            words = self._proper(command_words)
            if not words:
                continue
            first, arguments = words[0], words[1:]
            program = posixpath.basename(first)
            if first in ("cd", "pushd"):
                self._last = self._path(arguments[0]) if arguments else self._last
            elif first in ("cp", "install", "ln"):
                self._copied([word for word in arguments if not word.startswith("-")])
            elif path := self._named_by(first):
                yield path
            elif (
                _SHELL.fullmatch(program)
                and depth
                and (script := _given_line(arguments))
            ):
                yield from self._run_by(script, depth - 1)
            elif _INTERPRETER.fullmatch(program):
                yield from self._given_file(arguments)

    def _proper(self, words: list[str]) -> list[str]:
        """A command without its prefix: assignments, timeout 10, uv run --with x."""
        at, optional = 0, False
        while at < len(words):
            word = words[at]
            if word in _BEFORE or _ASSIGNMENT.match(word) or _NUMBER.fullmatch(word):
                optional = False
            elif at and word.startswith("-"):
                optional = True
            elif optional and not (
                word in _READERS or _INTERPRETER.fullmatch(word) or self._named_by(word)
            ):
                optional = False  # the value of the option
            else:
                break
            at += 1
        return words[at:]

    def _given_file(self, words: list[str]) -> Iterator[str]:
        """The file that an interpreter runs."""
        remaining = iter(words)
        for word in remaining:
            if word in _CODE or word in _ONLY_CHECKED:
                return
            if word == "-m":
                module = next(remaining, "").replace(".", "/")
                paths = map(self._named_by, (f"{module}.py", f"{module}/__main__.py"))
                yield from filter(None, paths)
                return
            if word in _WITH_VALUE:
                next(remaining, "")
            elif word == "run" or (word.startswith("-") and word != "-f"):
                continue
            elif word != "-f":  # awk and make have it before their file
                if path := self._named_by(word):
                    yield path
                return

    def _imported_by(self, command: str) -> Iterator[str]:
        """Modules of the skill that a program in the command imports."""
        if "python" not in command or self._skill_name not in command:
            return
        for name in self._names:
            folder, module = posixpath.split(name.removesuffix(".py"))
            place = posixpath.join(self._skill_name, folder).rstrip("/")
            if not name.endswith(".py") or f"/{place}" not in command:
                continue
            if re.search(
                rf"\b(?:import|from)\s+(?:\w+\.)*{re.escape(module)}\b", command
            ):
                yield name

    @property
    def _skill_name(self) -> str:
        return posixpath.basename(self.skill.inside)

    def _path(self, word: str) -> str:
        return posixpath.normpath(posixpath.join(self._last, word))

    def _named_by(self, word: str) -> str | None:
        """The file of the skill that a word names."""
        if "/" not in word and "." not in word:
            return None
        path = self._path(word)
        in_last_folder = posixpath.normpath(posixpath.join(self._folder, word))
        return self._copies.get(path) or self._at(path) or self._at(in_last_folder)

    def _at(self, path: str) -> str | None:
        """The file of the skill at a path, wherever an agent has its skills."""
        for name in self._called.get(posixpath.basename(path), ()):
            if path.endswith(
                (f"/{self._skill_name}/{name}", f"{self.skill.host}/{name}")
            ):
                return name
            if "$" in path and "/" in name:  # for the skill's folder, or for one in it
                return name
        return None

    def _copied(self, words: list[str]) -> None:
        """Remember copies of the skill's files, which may be run instead."""
        if len(words) < 2 or len(self._copies) > 10_000:
            return
        *sources, target = words
        for source in sources:
            below = self._path(source.rstrip("*") or "/").rstrip("/")
            for name in self._names:
                full = f"{self.skill.inside}/{name}"
                if self._at(below) == name:
                    relative = posixpath.basename(name)
                elif full.startswith(f"{below}/"):
                    relative = full.removeprefix(f"{below}/")
                else:
                    continue
                goal = self._path(target)
                within = posixpath.join(posixpath.basename(below), relative)
                for copy in (
                    goal,
                    posixpath.join(goal, relative),
                    posixpath.join(goal, within),
                ):
                    self._copies[copy] = name


def _commands_of(call: ToolCall) -> list[tuple[str, str]]:
    """The command lines in the arguments of a call, each with its folder,
    if it has one.
    """
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return [("", line) for line in _commands_in_code(call.arguments[:_LONGEST])]
    if not isinstance(arguments, dict):
        return []
    workdir = next((arguments[key] for key in _FOLDER_KEYS if key in arguments), None)
    folder = workdir if isinstance(workdir, str) else ""
    keys = arguments if _SHELL_TOOL.search(call.name) else _COMMAND_KEYS
    lines = (_line(arguments.get(key)) for key in keys)
    return [(folder, line) for line in lines if line]


def _commands_in_code(code: str) -> list[str]:
    """The command lines in a program that calls tools: ``tools.exec_command({cmd:
    "…"})``.
    """
    return [
        re.sub(
            r"\\(.)",
            lambda escape: _ESCAPED.get(escape[1], escape[1]),
            literal,
            flags=re.S,
        )
        for _, literal in _LITERAL.findall(code)
    ]


def _not_started(output: str) -> set[str]:
    """The names of programs that could not be started."""
    names = (next(filter(None, match)) for match in _NOT_STARTED.findall(output))
    return {posixpath.basename(name.strip("'`:")) for name in names}


def _line(value: Any) -> str:
    """A command from a text or a list of words."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value if isinstance(value, str) else ""


def _given_line(words: list[str]) -> str | None:
    """The command line in ``bash -lc "…"``."""
    for option, value in pairwise(words):
        if not option.startswith("-"):
            return None
        if re.fullmatch(r"-\w*c", option):
            return value
    return None


def _without_heredocs(command: str) -> str:
    """A command without its heredocs."""
    lines, end = list[str](), ""
    for line in command.splitlines():
        if end:
            end = "" if line.strip() == end else end
            continue
        lines.append(_HEREDOC.sub("", line))
        if heredoc := _HEREDOC.search(line):
            end = heredoc[2]
    return "\n".join(lines)


def _without_substitutions(line: str) -> tuple[str, list[str]]:
    """A line with ``$x`` for each ``$(…)`` outside of single quotes,
    and their commands.
    """
    inner, quoted = (
        list[str](),
        [match.span() for match in _SINGLE_QUOTED.finditer(line)],
    )
    start = 0
    while (at := line.find("$(", start)) >= 0 and len(inner) < _MOST_INNER:
        start = at + 2
        if (
            any(begin < at < end for begin, end in quoted)
            or line[start : start + 1] == "("
        ):
            continue
        depth, end = 1, start
        while end < len(line) and depth:
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        inner.append(line[start : end - 1] if not depth else line[start:])
        line = f"{line[:at]}$x{line[end:]}"
        quoted = [match.span() for match in _SINGLE_QUOTED.finditer(line)]
        start = at
    ticks = re.findall(r"`([^`]*)`", line)
    return re.sub(r"`[^`]*`", "$x", line), [*inner, *ticks[:_MOST_INNER]]


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, as words."""
    lexer = shlex.shlex(
        line.replace("\n", " ; "), posix=True, punctuation_chars=_SEPARATORS
    )
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list[str]()
    try:
        for word in lexer:
            if set(word) <= set(_SEPARATORS):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # an open quote: keep what came before it
        pass
    yield words
