"""What the script of a verifier would download, found by reading it:
a shell script is not run.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_NEXT: Final = frozenset((";", "&&", "||", "|", "&", "(", ")", ";;", "|&", "\n"))
_BEFORE: Final = (  # words before a command
    *(
        "if",
        "then",
        "else",
        "elif",
        "do",
        "while",
        "until",
        "!",
        "{",
        "sudo",
        "time",
        "exec",
    ),
    *("command", "env", "nohup"),
)
_ASSIGNED: Final = re.compile(r"(\w+)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")
# Between requirements, not versions
_COMMA: Final = re.compile(r",\s*(?=[A-Za-z])(?![^\[]*\])")
# Characters of a line, or of a word: variables may double each time
_LONGEST: Final = 5_000
_HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_UV_INSTALLER: Final = re.compile(r"astral\.sh/uv|github\.com/astral-sh/uv/")
_REMOTE: Final = re.compile(
    r"git@[^:]+:|(?:https?|git|ssh)://(?!localhost\b|127\.|\[::1\])[^/\s:]+"
)
# Options of uv and pip whose value is the next word.
_WITH_VALUE: Final = (
    *(
        "-p",
        "--python",
        "-w",
        "--with",
        "--from",
        "--with-requirements",
        "-r",
        "--requirement",
    ),
    *(
        "--requirements",
        "-c",
        "--constraint",
        "--constraints",
        "--index",
        "--index-url",
        "-i",
    ),
    *(
        "--extra-index-url",
        "--default-index",
        "--index-strategy",
        "--find-links",
        "-f",
        "--project",
    ),
    *(
        "--directory",
        "--target",
        "-t",
        "--prefix",
        "--extra",
        "--group",
        "--with-editable",
        "-e",
    ),
    *(
        "--root-user-action",
        "--cache-dir",
        "--env-file",
        "--timeout",
        "--retries",
        "--package",
    ),
)
_OTHER_DOWNLOADS: Final = {
    "npm": ("install", "ci", "i", "add"),
    "pnpm": ("install", "i", "add"),
    "yarn": ("install", "add"),
    "npx": ("",),
    "playwright": ("install",),
    "cargo": ("install", "fetch"),
    "go": ("get", "install"),
    "gem": ("install",),
    "bundle": ("install",),
    "opam": ("install",),
    "conda": ("install", "create"),
    "cs": ("setup",),
    "apk": ("add",),
    "yum": ("install",),
    "dnf": ("install",),
}


@dataclass(frozen=True)
class WheelSet:
    """Requirements that one command asks for, and so are resolved together."""

    requirements: tuple[str, ...]
    python: str = ""  # the version that it asks for, such as 3.13; empty is any
    # Uv resolves them for all systems, since it writes a lock file
    locked: bool = False
    by_pip: bool = False  # they stay installed


@dataclass(frozen=True)
class VerifierDownloads:
    """What a verifier would download."""

    wheels: tuple[WheelSet, ...] = ()
    packages: tuple[str, ...] = ()  # of the system
    others: tuple[str, ...] = ()  # commands that need a network, whatever is prepared

    @property
    def by_pip(self) -> tuple[WheelSet, ...]:
        return tuple(wheels for wheels in self.wheels if wheels.by_pip)

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(sorted({wheels.python for wheels in self.wheels if wheels.python}))


def downloads_of(script: str, files: Mapping[str, str]) -> VerifierDownloads:
    """What ``script`` would download, one of these ``files``:
    texts by path in the folder of tests.

    Other scripts that it calls are read, too.
    """
    reader = _Reader(files)
    reader.read(script)
    return reader.result()


@dataclass
class _Reader:
    files: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    wheels: list[WheelSet] = field(default_factory=list)
    # Requirements of the project that uv makes
    project: list[str] = field(default_factory=list)
    project_python: str = ""
    packages: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    scripts_read: set[str] = field(default_factory=set)

    def result(self) -> VerifierDownloads:
        project = WheelSet(tuple(self.project), self.project_python, locked=True)
        sets = [project] if self.project else []
        sets += [wheels for wheels in self.wheels if wheels.requirements]
        unique = (
            tuple(dict.fromkeys(values)) for values in (self.packages, self.others)
        )
        return VerifierDownloads(tuple(dict.fromkeys(sets)), *unique)

    def read(self, path: str) -> None:
        if path in self.scripts_read or path not in self.files:
            return
        self.scripts_read.add(path)
        for words in _commands(self.files[path]):
            self._command(words)

    def _command(self, words: Sequence[str]) -> None:
        words = self._without_prefix(words)
        if not words:
            return
        name, rest = (
            posixpath.basename(words[0]),
            [self._filled(word) for word in words[1:]],
        )
        if re.fullmatch(r"python[\d.]*", name) and rest[:1] == ["-m"] and len(rest) > 1:
            name, rest = rest[1], rest[2:]
        if name == "uv" and rest[:2] == ["tool", "run"]:
            name, rest = "uvx", rest[2:]
        if re.fullmatch(r"pip[\d.]*", name):
            name = "pip"
        if reader := _READERS.get(name):
            reader(self, rest)
        elif name in ("bash", "sh", "source", ".") or name.endswith(".sh"):
            called = rest if name in ("bash", "sh", "source", ".") else [words[0]]
            script = next((word for word in called if not word.startswith("-")), "")
            self.read(_in_tests(script))
        elif self._downloads(name, rest):
            self.others.append(" ".join((name, *rest))[:100])

    def _without_prefix(self, words: Sequence[str]) -> Sequence[str]:
        """The command without keywords and assignments, which are remembered."""
        at = 0
        while at < len(words):
            if assigned := _ASSIGNED.fullmatch(words[at]):
                self.variables[assigned[1]] = self._filled(assigned[2])
            elif words[at] == "timeout":
                at += 1
                while at < len(words) - 1 and words[at].startswith("-"):
                    at += 1
            elif words[at] not in _BEFORE:
                break
            at += 1
        return words[at:]

    def _filled(self, word: str) -> str:
        filled = _VARIABLE.sub(
            lambda match: self.variables.get(match[1], match[0]), word
        )
        return filled if len(filled) <= _LONGEST else ""

    def _downloads(self, name: str, rest: Sequence[str]) -> bool:
        if name in ("curl", "wget", "git"):
            remote = [word for word in rest if _REMOTE.match(word)]
            return any(not _UV_INSTALLER.search(word) for word in remote)
        first = next((word for word in rest if not word.startswith("-")), "")
        return name in _OTHER_DOWNLOADS and (
            first in _OTHER_DOWNLOADS[name] or "" in _OTHER_DOWNLOADS[name]
        )

    def _uvx(self, rest: Sequence[str]) -> None:
        options, words = _options(rest, to_run=True)
        tool = options.get("--from", words[:1])
        requirements = [
            _of_tool(word) for word in tool if not re.match(r"python[\d.]*$", word)
        ]
        self._add(requirements, options)

    def _uv(self, rest: Sequence[str]) -> None:
        if not rest:
            return
        name, rest = rest[0], rest[1:]
        if name == "pip" and rest[:1] == ["install"]:
            self._pip(rest)
        elif name in ("run", "add", "init", "venv"):
            options, words = _options(rest, to_run=name == "run")
            version = _version(options)
            if name == "run":
                self._add([], options, self.project)
                # The command may be a script, or download itself.
                self._command(words)
            else:
                self.project_python = version or self.project_python
            if name == "add":
                self.project += [*words, *self._listed(options)]

    def _pip(self, rest: Sequence[str]) -> None:
        if rest[:1] != ["install"]:
            return
        options, words = _options(rest[1:])
        self._add(words, options, python=self.project_python, by_pip=True)

    def _apt(self, rest: Sequence[str]) -> None:
        words = [word for word in rest if not word.startswith("-")]
        if words[:1] == ["install"]:
            self.packages += [word.partition("=")[0] for word in words[1:]]

    def _add(
        self,
        requirements: Sequence[str],
        options: Mapping[str, Sequence[str]],
        installed: Sequence[str] = (),
        python: str = "",
        *,
        by_pip: bool = False,
    ) -> None:
        added = [*requirements, *self._listed(options)]
        if added:
            version = _version(options) or python
            requirements = tuple(sorted({*installed, *added}))
            self.wheels.append(WheelSet(requirements, version, by_pip=by_pip))

    def _listed(self, options: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Requirements of options, and of the files that they name."""
        for text in (*options.get("-w", ()), *options.get("--with", ())):
            yield from (part.strip() for part in _COMMA.split(text) if part.strip())
        files = [options.get(name, ()) for name in _FILES]
        for path in (path for paths in files for path in paths):
            if (listed := self.files.get(_in_tests(path))) is not None:
                lines = (
                    line.partition(" #")[0].strip() for line in listed.splitlines()
                )
                yield from (
                    line for line in lines if line and not line.startswith(("#", "-"))
                )
            else:
                self.others.append(f"the requirements in {path}")


_FILES: Final = ("-r", "--requirement", "--requirements", "--with-requirements")
_READERS: Final[Mapping[str, Callable[[_Reader, Sequence[str]], None]]] = {
    "uvx": _Reader._uvx,
    "uv": _Reader._uv,
    "pip": _Reader._pip,
    "apt-get": _Reader._apt,
    "apt": _Reader._apt,
}


def _commands(script: str) -> Iterator[list[str]]:
    """Each simple command of a script, as words without redirections."""
    for line in _lines(script):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words = list[str]()
        try:
            for word in lexer:
                words.append(word)
        except ValueError:  # a text over several lines
            pass
        command, skip = list[str](), False
        for word in (*words, "\n"):
            if skip:
                skip = False
            elif word in _NEXT:
                if command:
                    yield command
                command = []
            elif word[:1] in ("<", ">") or word in ("&>", "&>>", ">&"):
                if command and command[-1].isdigit():
                    command.pop()
                skip = True
            else:
                command.append(word)


def _lines(script: str) -> Iterator[str]:
    """Lines with their continuations, without those of here-documents."""
    ending = ""
    for line in re.sub(r"\\\r?\n", " ", script).splitlines():
        if ending:
            ending = "" if line.strip() == ending else ending
            continue
        yield line[:_LONGEST]
        if started := _HEREDOC.search(line):
            ending = started[2]


def _options(
    rest: Sequence[str], *, to_run: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Values by option, and the words; those of a command ``to_run`` are not
    options.
    """
    options, words, at = dict[str, list[str]](), list[str](), 0
    while at < len(rest):
        word = rest[at]
        name, equals, value = word.partition("=")
        if to_run and not word.startswith("-"):
            return options, [*rest[at:]]
        if not word.startswith("-") or word in ("-", "--"):
            words += [word] if word != "--" else []
        elif equals and word.startswith("--"):
            options.setdefault(name, []).append(value)
        elif word in _WITH_VALUE and at + 1 < len(rest):
            at += 1
            options.setdefault(word, []).append(rest[at])
        at += 1
    return options, words


def _version(options: Mapping[str, Sequence[str]]) -> str:
    values = [*options.get("-p", ()), *options.get("--python", ())]
    versions = [
        re.fullmatch(r"(?:python|cpython-?)?(3\.\d+)(?:\.\d+)?", value)
        for value in values
    ]
    return next((version[1] for version in versions if version), "")


def _of_tool(word: str) -> str:
    name, _, version = word.partition("@")
    return f"{name}=={version}" if version and version != "latest" else name


def _in_tests(path: str) -> str:
    """A path in the folder of tests, as scripts write it."""
    return re.sub(r"^(?:/tests/|\./|\$\{?\w+\}?/|\$\(.*\)/)", "", path)
