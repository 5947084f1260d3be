"""The commands of a Dockerfile: which packages they install, and whether the rest changes files."""

import posixpath
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .task_forms import is_requirement

# Folders of a system: what is written there is only in an image.
SYSTEM_FOLDERS: Final = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"}
    | {"var"}
)
# Programs that change files and need nothing else.
_PLAIN: Final = frozenset(
    {"mkdir", "chmod", "touch", "rm", "cp", "mv", "ln", "cat", "echo", "printf", "sed", "awk"}
    | {"tar", "unzip", "gzip", "gunzip", "head", "tail", "find", "test", "[", "truncate", "dd"}
    | {"python", "python3", "bash", "sh", "gcc", "g++", "make", "perl", "git", "sort", "tee"}
    | {"base64", "xargs", "seq", "tr", "cut", "for", "do", "done", "if", "then", "else", "fi"}
    | {"cd", "true", "export", "set"}
)
_WITHOUT_EFFECT: Final = frozenset({"true", "set", ":", "chown", "exit", "ldconfig"})
_LOCAL_GIT: Final = frozenset(
    {"init", "add", "commit", "config", "branch", "checkout", "tag", "merge", "reset", "rm"}
    | {"switch", "stash", "gc", "reflog", "worktree", "update-index"}
)
# What an agent's sandbox, which has no network and no root, can't do.
_ONLY_IN_IMAGE: Final = re.compile(
    r"https?://|(?<![\w./-])(?:curl|wget|npm|npx|yarn|cargo|apt|apt-get|pip3?|uv|venv|playwright"
    r"|useradd|adduser|systemctl|service)(?![\w./-])|\bpython3?\s+-c\b|~/"
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
    {"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url"}
    | {"-f", "--find-links", "-t", "--target", "--prefix", "--python", "-p", "--timeout"}
    | {"--only-binary", "--no-binary", "--trusted-host", "--retries", "--default-timeout"}
)
_PIP_ELSEWHERE: Final = ("-t", "--target", "--prefix", "-f", "--find-links", "-e", "--editable")
_INDEXES: Final = ("-i", "--index-url", "--extra-index-url")
_PIP_ITSELF: Final = frozenset({"pip", "setuptools", "wheel"})
_APT_VALUES: Final = frozenset({"-o", "-t", "--target-release"})
_MOST_CHOICES: Final = 12  # in braces: each may double the paths
_OPERATORS: Final = frozenset({"&&", ";", "||", "|", "&"})


@dataclass
class Effects:
    """What a RUN does that a sandbox can have without an image."""

    python: list[str] = field(default_factory=list)  # requirements of packages
    requirement_files: list[str] = field(default_factory=list)  # absolute
    packages: list[str] = field(default_factory=list)  # system packages, without versions
    folders: list[str] = field(default_factory=list)  # that it makes, absolute
    step: str = ""  # what is left to run, and only changes files


def effects_of(command: str, workdir: str) -> Effects | None:
    """The effects of a command that runs in a folder; None if only an image can have them."""
    effects = Effects()
    if uv := _UV_INSTALLER.search(command):
        effects.python.append(f"uv=={uv[1]}" if uv[1] else "uv")
        command = _UV_INSTALLER.sub("true ", command)
    if "<<" in command:
        return _with_step(effects, command, [command.split()], workdir)
    try:
        commands = _split(command)
        kept = [(operator, _kept(words, effects, workdir)) for operator, words in commands]
    except ValueError:
        return None
    left = [(operator, words) for operator, words in kept if words]
    text = " ".join(
        part
        for number, (operator, words) in enumerate(left)
        for part in (operator if number else "", *words)
        if part
    )
    return _with_step(effects, text, [words for _, words in left], workdir)


def _with_step(
    effects: Effects, command: str, commands: Iterable[list[str]], workdir: str
) -> Effects | None:
    names = {_unquoted(words[0]) for words in commands}
    programs = {name for name in names if not name.startswith("./")}
    tops = {path.split("/")[1] for path in _PATH.findall(command)}
    git = set(re.findall(r"\bgit\s+(?:-[Cc]\s*\S+\s+)*(\S+)", command))
    if (
        not programs <= _PLAIN
        or tops & (SYSTEM_FOLDERS - {"dev"})
        or not git <= _LOCAL_GIT
        or _ONLY_IN_IMAGE.search(command)
    ):
        return None
    if not names <= {"cd", "export"}:
        effects.step = command if workdir == "/" else f"cd {shlex.quote(workdir)} && {command}"
    return effects


def _kept(words: list[str], effects: Effects, workdir: str) -> list[str]:
    """What is left to run of a simple command; ValueError if only an image can have it."""
    plain = [_unquoted(word) for word in words]
    while plain and (plain[0] == "sudo" or re.match(r"\w+=", plain[0])):
        plain, words = plain[1:], words[1:]
    if plain[:1] in (["python"], ["python3"]) and plain[1:3] == ["-m", "pip"]:
        plain = plain[2:]
    elif plain[:2] == ["uv", "pip"]:
        plain = plain[1:]
    program = plain[0] if plain else "true"
    if posixpath.basename(program) in ("pip", "pip3"):  # of a virtual environment
        program = "pip"
    if _makes_venv(plain) or (program in (".", "source") and plain[-1].endswith("bin/activate")):
        return []  # its packages are those of the sandbox
    if program in ("apt", "apt-get"):
        effects.packages += _packages(plain[1:])
    elif program in ("pip", "pip3"):
        _pip(plain[1:], effects, workdir)
    elif program == "mkdir":
        paths = [path for word in words[1:] for path in _braces(_unquoted(word)) if path[:1] != "-"]
        absolute = [posixpath.normpath(posixpath.join(workdir, path)) for path in paths]
        made = [path for path in absolute if path.split("/")[1] not in _NOT_MADE]
        effects.folders += made
        return ["mkdir", "-p", *map(shlex.quote, made)] if made else []
    elif program not in _WITHOUT_EFFECT and not (
        program == "rm" and all(word.startswith(_CACHES) for word in plain[1:])
    ):
        return words
    return []


def _makes_venv(words: list[str]) -> bool:
    is_python = re.fullmatch(r"python[\d.]*", words[0]) if words else None
    return bool(is_python and words[1:3] == ["-m", "venv"]) or words[:2] == ["uv", "venv"]


def _packages(words: list[str]) -> list[str]:
    names, _ = _arguments(words, _APT_VALUES)
    if not names or names[0] != "install":
        if names and names[0] in ("source", "build-dep"):
            raise ValueError(names[0])
        return []
    if any("/" in name or "$" in name or "*" in name for name in names):
        raise ValueError("not a package")
    return [name.partition("=")[0] for name in names[1:]]


def _pip(words: list[str], effects: Effects, workdir: str) -> None:
    names, values = _arguments(words, _PIP_VALUES)
    if not names or names[0] in ("cache", "config", "list", "uninstall"):
        return
    elsewhere = [values[key] for key in _INDEXES if "pypi.org" not in values.get(key, "pypi.org")]
    wanted = [name for name in names[1:] if re.split(r"[<>=!~]", name)[0] not in _PIP_ITSELF]
    if names[0] != "install" or elsewhere or not all(map(is_requirement, wanted)):
        raise ValueError(names[0])
    if not {*words, *values}.isdisjoint(_PIP_ELSEWHERE):
        raise ValueError(names[0])
    effects.python += wanted
    files = [values[key] for key in ("-r", "--requirement") if key in values]
    effects.requirement_files += [posixpath.normpath(posixpath.join(workdir, f)) for f in files]


def _split(text: str) -> list[tuple[str, list[str]]]:
    """A command line as simple commands, each with the operator before it."""
    lexer = shlex.shlex(text, posix=False, punctuation_chars=";|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands, operator, words = list[tuple[str, list[str]]](), "", list[str]()
    for word in lexer:
        if word in _OPERATORS:
            commands.append((operator, words))
            operator, words = word, []
        else:
            words.append(word)
    return [*commands, (operator, words)]


def _unquoted(word: str) -> str:
    return "".join(shlex.split(word))


def _arguments(
    words: Iterable[str], with_values: frozenset[str]
) -> tuple[list[str], dict[str, str]]:
    """The arguments of a command that are no options, and the values of options."""
    names, values, key = list[str](), dict[str, str](), ""
    for word in words:
        if key:
            values[key], key = word, ""
        elif word in with_values:
            key = word
        elif word.startswith("--") and "=" in word:
            option, _, value = word.partition("=")
            values[option] = value
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
    return [path for choice in match[1].split(",") for path in _braces(before + choice + after)]
