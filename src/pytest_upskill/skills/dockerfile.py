"""Read a Dockerfile: what of it a sandbox can have without an image,
and what only an image has.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from string import printable
from typing import Final, NamedTuple

from .._util.texts import one_line
from .docker_commands import SYSTEM_FOLDERS, effects_of

_DIRECTIVE: Final = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*")
_HEREDOC: Final = re.compile(r"(?<!\S)\d*<<-?\s*([\"']?)([A-Za-z_]\w*)\1")
_VARIABLE: Final = re.compile(
    r"\\(.)|\$(?:\{(\w+)(?:(:?[-+])([^}]{0,500}))?\}|(\w+))", re.S
)
_QUOTED: Final = re.compile(
    r"""'([^']*)'|"((?:\\.|[^"\\])*)"|((?:\\.|[^'"\\])+|.)""", re.S
)
_PLATFORM: Final = re.compile(r"--platform=(linux/\S+)")
_FLAG: Final = re.compile(r"--([\w-]+)(?:=(\S+))?\s+")
_ASSIGNMENT: Final = re.compile(
    r"""(?<!\w)(\w+)=((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])*)"""
)
# Characters of all values in a word or a step: they may double each time
_LONGEST: Final = 20_000
_FOLDERS: Final = ("/tmp", "/root", "/opt", "/srv", "/mnt", "/home")  # that images have
_IGNORED: Final = frozenset(
    {
        "CMD",
        "ENTRYPOINT",
        "EXPOSE",
        "LABEL",
        "MAINTAINER",
        "STOPSIGNAL",
        "VOLUME",
        "HEALTHCHECK",
    }
    | {"USER", "SHELL"}
)
# Variables of a sandbox
OWN: Final = frozenset({"HOME", "USER", "TMPDIR", "DEBIAN_FRONTEND"})

# Root may read and write every file of an image, so the agent may, too
OWNER: Final = 0o600


class Copied(NamedTuple):
    """A COPY of something in the build context."""

    source: str  # a path or pattern, relative to the context
    target: str  # absolute; ends with a slash if it is a folder
    mode: int | None = None  # None: as the source is
    line: int = 1


class Instruction(NamedTuple):
    """An instruction that only an image can carry out."""

    line: int
    text: str


@dataclass(frozen=True)
class Recipe:
    """What a Dockerfile makes."""

    base: str = ""  # the image that it starts from
    workdir: str = "/"
    copies: tuple[Copied, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    python: tuple[str, ...] = ()  # requirements of packages
    requirement_files: tuple[str, ...] = ()  # in the image, absolute
    packages: tuple[str, ...] = ()  # system packages, without versions
    folders: tuple[str, ...] = ()  # that it makes, absolute
    steps: tuple[str, ...] = ()  # commands that only change files
    skills_at: tuple[str, ...] = ()  # folders that the task's skills are copied to
    others: tuple[Instruction, ...] = ()
    platform: str = ""  # of the base image, if that is written


def read_dockerfile(text: str, skills: str = "") -> Recipe:
    """The recipe of the last stage. What is not understood is among ``others``.

    ``skills`` is the folder of the task's skills in the context:
    it is not among the copies.
    """
    stages = list[_Stage]()
    arguments = dict[str, str]()  # before the first FROM
    for line, name, rest in _instructions(text):
        if name == "FROM":
            stages.append(_from(rest, skills, arguments, stages))
        elif not stages:
            if name == "ARG":
                arguments |= _assigned(rest, arguments)
        else:
            stages[-1].add(line, name, rest)
    return stages[-1].recipe() if stages else Recipe()


def copied_files(
    recipe: Recipe, paths: Iterable[str]
) -> dict[str, tuple[str, int | None]]:
    """Where the files of a context are in the image: target → source, and its mode.

    ``paths`` are those of all files in the context, relative to it.
    """
    files, known = dict[str, tuple[str, int | None]](), list(paths)
    for copied in recipe.copies:
        for source, inside in matches(copied.source, known):
            target = copied.target
            if inside or target.endswith("/"):
                target = posixpath.join(target, inside or posixpath.basename(source))
            files[posixpath.normpath(target)] = (source, copied.mode)
    return files


def matches(pattern: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Files of a COPY, each with its path in the folder that the source names,
    if it is one.
    """
    wanted = posixpath.normpath(pattern.lstrip("/") or ".")
    depth = 0 if wanted == "." else wanted.count("/") + 1
    for path in paths:
        parts = path.split("/")
        head, inside = "/".join(parts[:depth]), "/".join(parts[depth:])
        if len(parts) >= depth and (depth == 0 or _is_like(head, wanted)):
            yield path, inside


def _is_like(path: str, pattern: str) -> bool:
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


class _Line(NamedTuple):
    number: int
    name: str
    rest: str


def _instructions(text: str) -> Iterator[_Line]:
    """Instructions with their first lines; heredocs are part of them."""
    lines = text.replace("\r\n", "\n").split("\n")
    escape, at = _escape_of(lines), 0
    while at < len(lines):
        start, whole = at, ""
        while at < len(lines):
            line = lines[at]
            at += 1
            if line.lstrip().startswith("#") or (whole and not line.strip()):
                if whole:
                    continue
                break
            stripped = line.rstrip(" \t")
            if not stripped.endswith(escape) or stripped.endswith(escape * 2):
                whole += line
                break
            whole += stripped[:-1]
        if not whole.strip():
            continue
        name, rest = [*whole.split(None, 1), ""][:2]
        for _, word in (
            _HEREDOC.findall(rest) if name.upper() in ("RUN", "COPY", "ADD") else ()
        ):
            body = list[str]()
            while at < len(lines) and lines[at].strip() != word:
                body.append(lines[at])
                at += 1
            at += 1
            rest += "\n" + "\n".join([*body, word])
        yield _Line(start + 1, name.upper(), rest.strip())


def _escape_of(lines: Iterable[str]) -> str:
    for line in lines:
        directive = _DIRECTIVE.fullmatch(line.strip())
        if not directive:
            break
        if directive[1].lower() == "escape":
            return directive[2]
    return "\\"


def _from(
    rest: str, skills: str, arguments: Mapping[str, str], stages: "list[_Stage]"
) -> "_Stage":
    filled = [_value(word, arguments) for word in rest.split()]
    words = [word for word in filled if not word.startswith("--")]
    platform = _PLATFORM.search(" ".join(filled))
    base = words[0] if words else ""
    name = words[2] if len(words) > 2 and words[1].upper() == "AS" else ""
    before = next(
        (stage for stage in stages if stage.name and stage.name == base), None
    )
    return (
        replace(deepcopy(before), name=name)
        if before
        else _Stage(
            base, name, skills, arguments, platform=platform[1] if platform else ""
        )
    )


@dataclass
class _Stage:
    """A stage of a Dockerfile while it is read."""

    base: str
    name: str
    skills: str  # the folder of the task's skills in the context
    defaults: Mapping[str, str]  # values of ARG before the first FROM
    arguments: dict[str, str] = field(default_factory=dict)  # values of ARG
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    copies: list[Copied] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    requirement_files: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    # Where a step may have changed files
    touched: list[str] = field(default_factory=list)
    skills_at: list[str] = field(default_factory=list)
    others: list[Instruction] = field(default_factory=list)
    platform: str = ""

    def recipe(self) -> Recipe:
        return Recipe(
            self.base,
            self.workdir,
            tuple(self.copies),
            tuple(self.env.items()),
            tuple(dict.fromkeys(self.python)),
            tuple(dict.fromkeys(self.requirement_files)),
            tuple(dict.fromkeys(self.packages)),
            tuple(dict.fromkeys(self.folders)),
            tuple(self.steps),
            tuple(dict.fromkeys(self.skills_at)),
            tuple(self.others),
            self.platform,
        )

    def add(self, line: int, name: str, rest: str) -> None:
        values = {**self.arguments, **self.env}
        if name == "ENV":
            self.env |= _assigned(rest, values)
        elif name == "ARG":
            declared = {
                key: value
                for key, value in self.defaults.items()
                if key in rest.split()
            }
            self.arguments |= declared | _assigned(rest, values)
        elif name == "WORKDIR":
            self.workdir = self._absolute(_value(rest, values))
            self.folders.append(self.workdir)
        elif name in ("COPY", "ADD"):
            self._copy(line, name, rest, values)
        elif name == "RUN":
            self._run(line, rest, values)
        elif name not in _IGNORED:
            self._only_in_image(line, f"{name} {rest}")

    def _only_in_image(self, line: int, text: str) -> None:
        self.others.append(Instruction(line, one_line(text, 100)))

    def _absolute(self, path: str) -> str:
        joined = posixpath.normpath(posixpath.join(self.workdir, path))
        return joined.replace("//", "/")

    def _copy(self, line: int, name: str, rest: str, values: Mapping[str, str]) -> None:
        written, flags = rest, dict[str, str]()
        while flag := _FLAG.match(rest):
            flags[flag[1]] = flag[2] or ""
            rest = rest[flag.end() :]
        *sources, target = _words_of_copy(rest, values) or [""]
        folder = self._absolute(target)
        if "astral-sh/uv" in flags.get("from", ""):
            self.python.append("uv")
            return
        files = [
            source for source in sources if posixpath.normpath(source) != self.skills
        ]
        if len(files) < len(sources):
            self.skills_at.append(folder)
            if not files:
                return
        archives = name == "ADD" and any(
            re.search(r"\.(tar|t[gbx]z)\b|://", s) for s in sources
        )
        in_system = folder == "/" or folder.split("/")[1] in SYSTEM_FOLDERS
        if not sources or "from" in flags or "<<" in rest or archives or in_system:
            self._only_in_image(line, f"{name} {written}")
            return
        folders = (*self.folders, *_FOLDERS)
        known = any(f"{path}/".startswith(f"{folder}/") for path in folders)
        is_folder = (
            known or target.endswith(("/", "/.")) or target == "." or len(sources) > 1
        )
        chmod = flags.get("chmod", "")
        mode = int(chmod, 8) & 0o777 | OWNER if re.fullmatch("[0-7]+", chmod) else None
        place = f"{folder}/" if is_folder else folder
        self.copies += [Copied(source, place, mode, line) for source in files]
        if self._is_touched(folder):
            self._only_in_image(line, f"{name} {written}")

    def _is_touched(self, path: str) -> bool:
        """Whether a step before may have changed what is at a path:
        all files are copied first.
        """
        pairs = (
            (f"{path}/", f"{changed}/".replace("//", "/")) for changed in self.touched
        )
        return any(a.startswith(b) or b.startswith(a) for a, b in pairs)

    def _run(self, line: int, rest: str, values: Mapping[str, str]) -> None:
        command = rest
        while flag := _FLAG.match(command):  # such as --mount=type=cache
            command = command[flag.end() :]
        if command.startswith("["):
            command = shlex.join(_words_of_list(command)) or command
        shown = {
            key: value for key, value in values.items() if key not in (*OWN, "PATH")
        }
        exported = " ".join(
            f"{key}={shlex.quote(value)}" for key, value in shown.items()
        )
        effects = effects_of(command, _filled(command, shown), self.workdir)
        if effects is None or len(exported) > _LONGEST:
            self._only_in_image(line, f"RUN {rest}")
            return
        self.python += effects.python
        self.requirement_files += effects.requirement_files
        self.packages += effects.packages
        self.folders += effects.folders
        self.touched += effects.touched
        if effects.step:
            self.steps.append(
                f"export {exported}; {effects.step}" if shown else effects.step
            )


def _words_of_list(text: str) -> list[str]:
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return words if all(isinstance(word, str) for word in words) else []


def _words_of_copy(rest: str, values: Mapping[str, str]) -> list[str]:
    words = _words_of_list(rest) if rest.startswith("[") else rest.split()
    return [_value(word, values) for word in words]


def _assigned(rest: str, values: Mapping[str, str]) -> dict[str, str]:
    """The variables of an ENV or ARG."""
    pairs = _ASSIGNMENT.findall(rest)
    if not pairs or not _ASSIGNMENT.match(rest):
        pairs = re.findall(r"\A(\w+)\s+(.*)", rest)  # the old form: ENV NAME value
    return {name: _value(value, values) for name, value in pairs if name.isidentifier()}


def _value(word: str, values: Mapping[str, str]) -> str:
    """A word as Docker reads it: with the values of variables, and without quotes."""
    return "".join(
        match[1]
        or _filled(match[2] or "", values, '"$\\')
        + _filled(match[3] or "", values, printable)
        for match in _QUOTED.finditer(word)
    )


def _filled(text: str, values: Mapping[str, str], escaped: str = "") -> str:
    """A text with the values of its variables; unknown ones stay,
    and those that are too long.

    Characters among ``escaped`` lose the backslash before them.
    """
    left = _LONGEST

    def limited(match: re.Match[str]) -> str:
        nonlocal left
        if match[1]:
            return match[1] if match[1] in escaped else match[0]
        left -= len(filled := value(match))
        return filled if left >= 0 else match[0]

    def value(match: re.Match[str]) -> str:
        name = match[2] or match[5]
        found = values.get(name)
        if match[3] and match[3].endswith("-"):
            return found or match[4]
        if match[3]:
            return match[4] if found else ""
        return match[0] if found is None else found

    return _VARIABLE.sub(limited, text)
