"""The commands of a Dockerfile: which packages they install,
and whether the rest changes files.
"""

import posixpath
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .task_forms import is_requirement

# Folders of a system: what is written there is only in an image.
SYSTEM_FOLDERS: Final = frozenset(
    {
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "proc",
        "run",
        "sbin",
        "sys",
        "usr",
    }
    | {"var"}
)
# Programs that change files and need nothing else.
_PLAIN: Final = frozenset(
    {
        "mkdir",
        "chmod",
        "touch",
        "rm",
        "cp",
        "mv",
        "ln",
        "cat",
        "echo",
        "printf",
        "sed",
        "awk",
    }
    | {
        "tar",
        "unzip",
        "gzip",
        "gunzip",
        "head",
        "tail",
        "find",
        "test",
        "[",
        "truncate",
        "dd",
    }
    | {
        "python",
        "python3",
        "bash",
        "sh",
        "gcc",
        "g++",
        "make",
        "perl",
        "git",
        "sort",
        "tee",
    }
    | {
        "base64",
        "xargs",
        "seq",
        "tr",
        "cut",
        "for",
        "do",
        "done",
        "if",
        "then",
        "else",
        "fi",
    }
    | {"cd", "true", "export", "set", "exit"}
)
_WITHOUT_EFFECT: Final = frozenset({"true", "set", ":", "chown", "ldconfig"})
_MAKE_NO_FILE: Final = frozenset(
    {"", "mkdir", "chmod", "cd", "export", "true", "test", "["}
)
_LOCAL_GIT: Final = frozenset(
    {
        "init",
        "add",
        "commit",
        "config",
        "branch",
        "checkout",
        "tag",
        "merge",
        "reset",
        "rm",
    }
    | {"switch", "stash", "gc", "reflog", "worktree", "update-index"}
)
# What an agent's sandbox, which has no network and no root, can't do.
_ONLY_IN_IMAGE: Final = re.compile(
    r"https?://|(?<![\w./-])(?:curl|wget|npm|npx|yarn|cargo|apt|apt-get|pip3?|uv|venv|playwright"
    r"|useradd|adduser|systemctl|service)(?![\w./-])|\bpython3?\s+-c\b|~/"
    r"|\$\{?(?:HOME|USER|TMPDIR)\b"  # a sandbox has its own
)
_PATH: Final = re.compile(r"(?<![\w./~$}-])/(?:[\w.@+-]+/?)+")
# Folders of a run: nothing of a Dockerfile's is seen in them.
RESERVED_FOLDERS: Final = frozenset({"logs", "tests", "solution", "oracle", "verifier"})
_NOT_MADE: Final = SYSTEM_FOLDERS | RESERVED_FOLDERS
_CACHES: Final = ("-", "/var/lib/apt", "/var/cache", "/root/.cache")
_UV_INSTALLER: Final = re.compile(
    r"curl[^|;&]{0,200}://astral\.sh/uv(?:/([\d.]+))?/install\.sh[^;&]*"
)
_PIP_VALUES: Final = frozenset(
    {
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-i",
        "--index-url",
        "--extra-index-url",
    }
    | {
        "-f",
        "--find-links",
        "-t",
        "--target",
        "--prefix",
        "--python",
        "-p",
        "--timeout",
    }
    | {
        "--only-binary",
        "--no-binary",
        "--trusted-host",
        "--retries",
        "--default-timeout",
    }
)
_PIP_ELSEWHERE: Final = frozenset(
    {
        "-t",
        "--target",
        "--prefix",
        "-f",
        "--find-links",
        "-e",
        "--editable",
        "-c",
        "--constraint",
    }
)
_FILES: Final = ("-r", "--requirement")
_INDEXES: Final = ("-i", "--index-url", "--extra-index-url")
_PIP_ITSELF: Final = frozenset({"pip", "setuptools", "wheel"})
_APT_VALUES: Final = frozenset({"-o", "-t", "--target-release"})
_MOST_CHOICES: Final = 12  # in braces: each may double the paths
_SIMPLE: Final = re.compile(  # a command, and the operator before it
    r"""(^|&&|\|\||[;|&])((?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[<>]&|[^;|&'"\\])*)""",
    re.DOTALL,
)
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=")
_MKDIR: Final = re.compile(
    r"mkdir(?:\s+(?:-[pv]+|--parents|[\w./{,}@+][\w./{,}@+-]*))+"
)


@dataclass
class Effects:
    """What a RUN does that a sandbox can have without an image."""

    python: list[str] = field(default_factory=list)  # requirements of packages
    requirement_files: list[str] = field(default_factory=list)  # absolute
    # System packages, without versions
    packages: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # that it makes, absolute
    step: str = ""  # what is left to run, and only changes files
    # Where the step may change files, absolute
    touched: list[str] = field(default_factory=list)


class _Command(NamedTuple):
    """A simple command of a command line."""

    operator: str  # before it
    text: str
    filled: str  # with the values of variables

    @property
    def words(self) -> list[str]:
        """Without variables that are set for it; ValueError if quotes are left open."""
        words = shlex.split(self.filled)
        start = next(
            (at for at, word in enumerate(words) if not _ASSIGNED.match(word)),
            len(words),
        )
        return words[start:]


def effects_of(command: str, filled: str, workdir: str) -> Effects | None:
    """The effects of a command that runs in a folder;
    None if only an image can have them.

    ``filled`` is the command with the values of variables:
    what it does is read from that.
    """
    effects = Effects()
    if uv := _UV_INSTALLER.search(filled):
        effects.python.append(f"uv=={uv[1]}" if uv[1] else "uv")
        command, filled = (
            _UV_INSTALLER.sub("true ", text) for text in (command, filled)
        )
    folder = "" if re.search(r"(?<![\w./-])cd\s", filled) else workdir
    try:
        if "<<" in command:
            left = [_Command("", command, filled)]
            names = {filled.split()[0]}
        else:
            left = [
                _kept(simple, effects, folder) for simple in _commands(command, filled)
            ]
            if any(simple.operator in ("||", "|") for simple in left):
                left = [simple if simple.text else _nothing(simple) for simple in left]
            left = [simple for simple in left if simple.text]
            names = {"".join(simple.words[:1]) for simple in left}
    except ValueError:
        return None
    return _with_step(effects, left, names, workdir)


def _with_step(
    effects: Effects, commands: Sequence[_Command], names: set[str], workdir: str
) -> Effects | None:
    programs = {name for name in names if name and not name.startswith("./")}
    filled = _joined((simple.operator, simple.filled) for simple in commands)
    paths = _PATH.findall(filled)
    git = set(re.findall(r"\bgit\s+(?:-[Cc]\s*\S+\s+)*(\S+)", filled))
    if (
        not programs <= _PLAIN
        or {path.split("/")[1] for path in paths} & (SYSTEM_FOLDERS - {"dev"})
        or not git <= _LOCAL_GIT
        or _ONLY_IN_IMAGE.search(filled)
    ):
        return None
    if not names <= {"", "cd", "export", "true"}:
        text = _joined((simple.operator, simple.text) for simple in commands)
        effects.step = (
            text if workdir == "/" else f"cd {shlex.quote(workdir)} && {text}"
        )
    if not names <= _MAKE_NO_FILE or re.search(r"\bchmod\b.*\s-\w*R", filled):
        effects.touched = [workdir, *map(posixpath.normpath, paths)]
    return effects


def _joined(commands: Iterable[tuple[str, str]]) -> str:
    """A command line; the first operator stands before nothing."""
    return " ".join(word for pair in commands for word in pair if word).lstrip(";&| ")


def _nothing(simple: _Command) -> _Command:
    return simple._replace(text="true", filled="true")


def _kept(simple: _Command, effects: Effects, folder: str) -> _Command:
    """What is left to run of a simple command; ValueError if only an image can have
    it.
    """
    words = simple.words
    if words[:1] == ["sudo"]:
        simple = simple._replace(
            text=simple.text.removeprefix("sudo "),
            filled=simple.filled.removeprefix("sudo "),
        )
        words = words[1:]
    if words[:1] in (["python"], ["python3"]) and words[1:3] == ["-m", "pip"]:
        words = words[2:]
    elif words[:2] == ["uv", "pip"]:
        words = words[1:]
    program = words[0] if words else ""
    if posixpath.basename(program) in ("pip", "pip3"):  # of a virtual environment
        program = "pip"
    if program == "mkdir":
        return _mkdir(simple, words[1:], effects, folder)
    if program in ("apt", "apt-get"):
        effects.packages += _packages(words[1:])
    elif program == "pip":
        _pip(words[1:], effects, folder)
    elif (
        program not in _WITHOUT_EFFECT
        and not _makes_venv(words)  # its packages are those of the sandbox
        and not (program in (".", "source") and words[-1].endswith("bin/activate"))
        and not (
            program == "rm" and all(word.startswith(_CACHES) for word in words[1:])
        )
    ):
        return simple
    return simple._replace(text="", filled="")


def _mkdir(
    simple: _Command, words: list[str], effects: Effects, folder: str
) -> _Command:
    """With -p, as a sandbox has some folders; without those of a
    system if all paths are plain.
    """
    paths = [path for word in words for path in _braces(word) if path[:1] != "-"]
    absolute = [path for path in paths if re.fullmatch(r"/[\w./@+-]+", path)]
    is_plain = _MKDIR.fullmatch(simple.text) and (folder or paths == absolute)
    joined = [
        posixpath.join(folder, path) for path in (paths if is_plain else absolute)
    ]
    made = [
        path
        for path in map(posixpath.normpath, joined)
        if path.split("/")[1] not in _NOT_MADE
    ]
    effects.folders += made
    if is_plain:
        text = " ".join(["mkdir -p", *made]) if made else ""
        return simple._replace(text=text, filled=text)
    return simple._replace(text=re.sub(r"\bmkdir\b", "mkdir -p", simple.text, count=1))


def _makes_venv(words: list[str]) -> bool:
    is_python = re.fullmatch(r"python[\d.]*", words[0]) if words else None
    return bool(is_python and words[1:3] == ["-m", "venv"]) or words[:2] == [
        "uv",
        "venv",
    ]


def _packages(words: list[str]) -> list[str]:
    names, _ = _arguments(words, _APT_VALUES)
    if not names or names[0] != "install":
        if names and names[0] in ("source", "build-dep"):
            raise ValueError(names[0])
        return []
    if any("/" in name or "$" in name or "*" in name for name in names):
        raise ValueError("not a package")
    return [name.partition("=")[0] for name in names[1:]]


def _pip(words: list[str], effects: Effects, folder: str) -> None:
    names, values = _arguments(words, _PIP_VALUES)
    if not names or names[0] in ("cache", "config", "list", "uninstall"):
        return
    elsewhere = [
        url for key in _INDEXES for url in values[key] if "pypi.org" not in url
    ]
    wanted = [
        name for name in names[1:] if re.split(r"[<>=!~]", name)[0] not in _PIP_ITSELF
    ]
    if names[0] != "install" or elsewhere or not all(map(is_requirement, wanted)):
        raise ValueError(names[0])
    if not {*words, *values}.isdisjoint(_PIP_ELSEWHERE):
        raise ValueError(names[0])
    effects.python += wanted
    files = [posixpath.join(folder, file) for key in _FILES for file in values[key]]
    if not all(file.startswith("/") for file in files):
        raise ValueError("in a folder that is not known")
    effects.requirement_files += map(posixpath.normpath, files)


def _commands(command: str, filled: str) -> list[_Command]:
    """The simple commands of a command line; ValueError if they can't be told apart."""
    pairs = zip(_split(command), _split(filled), strict=True)
    return [
        _Command(operator, text, with_values)
        for (operator, text), (_, with_values) in pairs
    ]


def _split(text: str) -> list[tuple[str, str]]:
    """Simple commands, each with the operator before it."""
    matches = list(_SIMPLE.finditer(text))
    if "".join(match[0] for match in matches) != text or any(
        match[1] == "&" for match in matches
    ):
        raise ValueError("open quotes, or a command in the background")
    return [(match[1], match[2].strip()) for match in matches]


def _arguments(
    words: Iterable[str], with_values: frozenset[str]
) -> tuple[list[str], defaultdict[str, list[str]]]:
    """The arguments of a command that are no options, and the values of options."""
    names, values, key = list[str](), defaultdict[str, list[str]](list), ""
    for word in words:
        if key:
            values[key].append(word)
            key = ""
        elif word in with_values:
            key = word
        elif word.startswith("--"):
            option, equals, value = word.partition("=")
            values[option] += [value] if equals else []
        elif word[:2] in with_values:  # such as -rlamps.txt
            values[word[:2]].append(word[2:])
        elif not word.startswith("-"):
            names.append(word)
    return names, values


def _braces(word: str) -> list[str]:
    """``a/{b,c}`` as the shell expands it."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    if not match:
        return [word]
    if word.count(",") > _MOST_CHOICES:
        raise ValueError("too many paths")
    before, after = word[: match.start()], word[match.end() :]
    return [
        path
        for choice in match[1].split(",")
        for path in _braces(before + choice + after)
    ]
