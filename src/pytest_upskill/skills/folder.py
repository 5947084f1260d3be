"""A skill's folder: where its SKILL.md and cases are, which files belong to it,
their digest.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from .._util.files import EXECUTABLE, PLAIN, open_file, read_file, reason_of
from ..errors import SkillError, shown

SKILL_NAMES: Final = ("SKILL.md", "skill.md")
MANIFEST: Final = ".claude-plugin/plugin.json"  # of a plugin
CASES_NAME: Final = "skill_meta.json"
SCHEMA_NAME: Final = "skill_meta.schema.json"  # for editors
BENCHMARK_NAME: Final = "BENCHMARK.md"  # for people
EVALS_NAME: Final = "evals/evals.json"
EVAL_SPEC_NAMES: Final = ("eval.yaml", "eval.yml")
MAX_FILE_BYTES: Final = 1_000_000  # of a file that is read as text
TOOL_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "node_modules", "bower_components"}
    | {
        "__pycache__",
        "site-packages",
        ".upskill",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
    }
    | {".cache", ".eggs", ".gradle", ".pnpm-store", ".terraform", ".yarn"}
)

# Names of files that hold secrets; no model ever gets one.
_PRIVATE: Final = re.compile(
    r"\.env(?:\.(?!(?:example|sample|template|dist)$)[\w-]+)*|[\w.-]+\.env"
    r"|\.(?:netrc|npmrc|pypirc|pgpass|my\.cnf|git-credentials|htpasswd|dockercfg|boto|s3cfg)|_netrc"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.+\.(?:pem|key|p8|p12|pfx|ppk|jks|keystore|kdbx|tfstate)"
    r"|(?:credentials?|secrets?|service[_-]?account)(?:\.(?:json|ya?ml|toml|ini|txt|csv))?"
    r"|kubeconfig",
    re.I,
)
_PRIVATE_FOLDERS: Final = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure"}
)
# These live next to the skill but are not part of it.
_NOT_TAUGHT: Final = frozenset(
    {
        CASES_NAME,
        SCHEMA_NAME,
        "skill_results.json",
        BENCHMARK_NAME,
        "evals",
        "pytest.ini",
    }
    | {"eval.yaml", "eval.yml"}
)
# Bytes of a folder's path: names in it may exceed what systems allow
_LONGEST_PATH: Final = 3500
_DEEPEST: Final = 100  # levels of folders
_CHUNK: Final = 1_000_000
# Of a larger file, only the start and the end are in the digest
_SAMPLED_BYTES: Final = 20_000_000


def skill_file(path: Path) -> Path:
    """The SKILL.md of a skill, given itself or its folder; it may not exist."""
    files = (path / name for name in SKILL_NAMES)
    return (
        path
        if path.is_file()
        else next(filter(Path.is_file, files), path / SKILL_NAMES[0])
    )


def is_file(path: Path) -> bool:
    """Path.is_file raises where a folder can't be entered."""
    try:
        return path.is_file()
    except OSError:
        return False


def mode_of(file: Path) -> int:
    """One of two modes, which are all that git keeps."""
    return EXECUTABLE if file.stat().st_mode & 0o111 else PLAIN


def is_skill(folder: Path) -> bool:
    return any((folder / name).is_file() for name in SKILL_NAMES)


def cases_files(folder: Path) -> list[Path]:
    """The files that may have a skill's cases, in order of preference."""
    files = (folder / name for name in (CASES_NAME, EVALS_NAME))
    return [file for file in files if file.is_file()]


def is_taught(path: PurePath) -> bool:
    """Whether a path, relative to a skill's folder,
    may be part of the skill by its name.

    The folder of another skill is not part of it either.
    """
    return path.name not in TOOL_FOLDERS and path.parts[0] not in _NOT_TAUGHT


def is_installed(path: PurePath) -> bool:
    """Whether a path, relative to a skill's folder, goes into copies for agents."""
    hidden = any(part.startswith(".") for part in path.parts)
    return not hidden and not path.name.endswith((".pyc", "~"))


def is_private(path: PurePath) -> bool:
    """Whether a path, relative to a skill's folder,
    names a file of secrets or of a tool.
    """
    folders = TOOL_FOLDERS | _PRIVATE_FOLDERS
    return (
        not folders.isdisjoint(path.parts) or _PRIVATE.fullmatch(path.name) is not None
    )


def belongs(path: str, without: Collection[str]) -> bool:
    """Whether a path goes into copies; ``without`` are files and
    folders of the skill's cases.
    """
    pure = PurePosixPath(path)
    named = is_taught(pure) and not is_private(pure)
    return named and not any(pure.is_relative_to(excluded) for excluded in without)


def why_not_sent(*paths: PurePath) -> str:
    """Why no model gets a file under these paths in a skill's folder; empty if one
    may.
    """
    if any(map(is_private, paths)):
        return "may hold secrets"
    hidden = any(part.startswith(".") for path in paths for part in path.parts)
    return "hidden" if hidden else ""


def why_unsendable(folder: Path, path: PurePath) -> str:
    """The same for a file on disk, and for the target if it is a link."""
    real, root = Path(os.path.realpath(folder / path)), Path(os.path.realpath(folder))
    if not real.is_relative_to(root):
        return "a link out of the skill's folder"
    return why_not_sent(path, real.relative_to(root))


def leads_outside(folder: Path, path: Path) -> bool:
    """Whether a path is behind a symbolic link that leads out of a folder."""
    # Path.resolve raises on a link to itself
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


class Contents(NamedTuple):
    """The files of a skill, sorted by folder, and the links in it that lead
    elsewhere.
    """

    files: tuple[Path, ...]
    links_out: tuple[Path, ...]


def contents_of(root: Path) -> Contents:
    """The files of a skill, without its cases, folders of tools, and links out of
    it.
    """
    files, links_out = list[Path](), list[Path]()
    for path in _walk(root):
        if path.is_symlink() and leads_outside(root, path):
            links_out.append(path)
        elif path.is_file():
            files.append(path)
    return Contents(tuple(files), tuple(links_out))


def installed_files(folder: Path) -> dict[str, Path]:
    """The files that go into copies for agents: no hidden ones, nor links to them."""
    root = Path(os.path.realpath(folder))
    found = dict[str, Path]()
    for file in contents_of(folder).files:
        path = file.relative_to(folder)
        if is_installed(path) and is_installed(
            Path(os.path.realpath(file)).relative_to(root)
        ):
            found[path.as_posix()] = file
    return found


def walk(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Folders from the top, with the names of subfolders (remove
    some to skip them) and files.

    Links are named and not followed. This is os.walk, which recurses in Python 3.11 and
    fails on deep folders. Those below a hundred levels are left out: finding their real
    paths takes the third power of the depth.
    """
    waiting = [(top, 0)]
    while waiting:
        folder, depth = waiting.pop()
        if len(os.fsencode(folder)) > _LONGEST_PATH or depth > _DEEPEST:
            continue
        subfolders, names, links = list[str](), list[str](), set[str]()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (subfolders if is_folder(entry) else names).append(entry.name)
                    if entry.is_symlink():
                        links.add(entry.name)
        except OSError:
            continue
        yield folder, subfolders, names
        inside = [folder / name for name in reversed(subfolders) if name not in links]
        waiting += [(path, depth + 1) for path in inside]


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _walk(root: Path) -> Iterator[Path]:
    for folder, subfolders, names in walk(root):
        subfolders[:] = sorted(
            sub for sub in subfolders if not _is_foreign(folder / sub)
        )
        for name in sorted([*names, *subfolders]):
            path = folder / name
            if is_taught(path.relative_to(root)):
                yield path
            elif name in subfolders:
                subfolders.remove(name)


def _is_foreign(folder: Path) -> bool:
    return is_skill(folder) or (folder / "pyvenv.cfg").is_file() or is_worktree(folder)


def is_worktree(folder: Path) -> bool:
    """Whether a folder is another worktree of a git repository; a submodule is not."""
    file = folder / ".git"
    try:
        with open_file(file) as stream:
            return b"/worktrees/" in stream.read(1000)
    except OSError:
        return False


def digest_of(root: Path, files: Iterable[Path]) -> str:
    """A digest of a skill's files; it does not depend on where the skill is."""
    total = hashlib.sha256()
    for path in files:
        name = path.relative_to(root).as_posix()
        try:
            size = path.stat().st_size
            total.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
            for chunk in _chunks(path, size):
                total.update(chunk)
        except OSError as error:  # an agent can't read such a file either
            total.update(
                f"{name}\0{reason_of(error)}".encode("utf-8", "surrogateescape")
            )
    return total.hexdigest()


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    """The content of a file; of a huge one only its start and its end."""
    with open_file(path) as stream:
        if size > _SAMPLED_BYTES:
            yield stream.read(_CHUNK)
            stream.seek(-_CHUNK, os.SEEK_END)
        while chunk := stream.read(_CHUNK):
            yield chunk


def decoded(data: bytes, errors: str = "strict") -> str:
    return data.decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def text_of(data: bytes) -> str:
    """The text of a file; ValueError if it is binary."""
    try:
        text = decoded(data).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if "\0" in text:
        raise ValueError("not a text")
    return text


def read_text(file: Path) -> str:
    """The text of a SKILL.md; SkillError says why there is none."""
    try:
        if leads_outside(file.parent, file):
            raise SkillError(
                file,
                "symbolic link out of the skill's folder",
                "Copy the file into the skill.",
            )
        if file.exists() and not (file.is_file() and file.name in SKILL_NAMES):
            raise SkillError(
                file, "not a SKILL.md", "Name a skill's folder or its SKILL.md."
            )
        if (size := file.stat().st_size) > MAX_FILE_BYTES:
            problem = f"{size:,} bytes (limit {MAX_FILE_BYTES:,})"
            raise SkillError(
                file, problem, "Move what is not always needed to other files."
            )
        return decoded(read_file(file, MAX_FILE_BYTES))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (file.parent / MANIFEST).is_file():
            hint = "Name one of its skills."
            raise SkillError(
                file.parent, "this is a plugin, not a skill", hint
            ) from None
        raise SkillError(file, reason_of(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte {error.start})"
        raise SkillError(file, problem, "Save it as UTF-8.") from None


class NotTextError(ValueError):
    """A file is not a text, or too large for one."""


def read_skill_file(folder: Path, name: str) -> str:
    """The text of a file in the skill's folder; ValueError says why it can't be
    used.
    """
    try:
        text = read_skill_bytes(folder, name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTextError(f"{name!r} is not UTF-8 text (byte {error.start})") from None
    if "\0" in text:
        raise NotTextError(f"{name!r} is not text (a null character)")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_skill_bytes(folder: Path, name: str, most: int = MAX_FILE_BYTES) -> bytes:
    """The content of a file in the skill's folder; ValueError
    says why it can't be used.
    """
    real = real_skill_file(folder, name)
    try:
        size = real.stat().st_size
        if size > most:
            raise NotTextError(f"{name!r} has {size:,} bytes (limit {most:,})")
        return read_file(real, most)
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {reason_of(error)}") from None


def real_skill_file(folder: Path, name: str, *, is_folder: bool = False) -> Path:
    """Where a file or folder in the skill's folder is;
    ValueError says why it can't be used.
    """
    noun = "folder" if is_folder else "file"
    if "\0" in name:
        raise ValueError(f"invalid {noun} name {name!r}")
    try:
        # Path.resolve raises on a link to itself
        real, root = (
            Path(os.path.realpath(folder / name)),
            Path(os.path.realpath(folder)),
        )
        if not real.is_relative_to(root):
            raise ValueError(f"{name!r} is outside of {shown(folder)}; copy it there")
        if is_private(real.relative_to(root)) or is_private(PurePath(name)):
            raise ValueError(
                f"{name!r} may hold secrets, so it is not read; rename or copy it"
            )
        if not (real.is_dir() if is_folder else real.is_file()):
            what = "not found"
            if real.exists():
                what = "is a folder" if real.is_dir() else "is not a regular file"
            what = "is a file" if is_folder and real.is_file() else what
            raise ValueError(
                f"{name!r} {what}; name a {noun}, relative to {shown(folder)}"
            )
    except UnicodeEncodeError:
        raise ValueError(f"invalid {noun} name {name!r}") from None
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {reason_of(error)}") from None
    return real
