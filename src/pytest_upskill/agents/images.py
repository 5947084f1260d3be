"""Images of containers: pulled or built once, and the files that tasks find in them."""

import platform
import posixpath
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

from .._util.files import read_file, reason_of, replace_file, user_cache
from .._util.texts import digest, one_line
from ..errors import shown
from ..skills.case import BuildContext, WorkspaceFile
from .run_folder import remove, run_folder
from .sandboxes.archives import read_archive
from .sandboxes.container_program import call, is_present, last_line, pull, run_long
from .sandboxes.sandbox import SandboxError
from .snapshot import MOST_START_BYTES, MOST_START_FILES, Link, Snapshot, is_safe

# Root may read and write every file of an image, so the agent may, too
OWNER: Final = 0o600
# The name of images that are built, without their tag
BUILT: Final = "localhost/upskill-task"
_LAST_LINES: Final = 4  # of a build that failed
_LONGEST_LINE: Final = 160
# Agents are not root: they could not use tools in its home.
# And a Python opens their port.
_LAST_STEP: Final = r"""
USER 0
RUN chmod a+rx /root 2>/dev/null; command -v python3 > /dev/null || \
    { apt-get update && apt-get install -y --no-install-recommends python3 || \
    apk add --no-cache python3 || dnf install -y python3; } > /dev/null 2>&1 || true
"""
_CACHES: Final = ((".cache", "pip"), (".cache", "uv"), (".npm", "_cacache"))


def tag_of(build: BuildContext) -> str:
    """The image that is built from a Dockerfile and the files beside it."""
    return f"{BUILT}:{digest(build.digest, _LAST_STEP)[:32]}"


def prepare(program: str, image: str, build: BuildContext | None) -> str:
    """Pull or build an image unless it is there; its name.
    SandboxError says why it can't.

    An image that can't be pulled is built if there is a Dockerfile.
    """
    built = tag_of(build) if build else ""
    if image and is_present(program, image):
        name = image
    elif built and is_present(program, built):
        name = built
    else:
        name = _fetch(program, image, build)
    if problem := why_other_machine(program, name):
        raise SandboxError(f"{problem}.")
    return name if name == built else _make_usable(program, name)


def _fetch(program: str, image: str, build: BuildContext | None) -> str:
    problem = pull(program, image) if image else ""
    if image and not problem:
        return image
    if build is None:
        raise SandboxError(
            f"the image {image} can't be pulled with {program}: {problem}."
        )
    _build(program, build)
    return tag_of(build)


def why_other_machine(program: str, image: str) -> str:
    """That an image is for another architecture; empty if it is not, or is not here."""
    ran = call(program, "image", "inspect", "--format", "{{.Architecture}}", image)
    of_image = ran.stdout.decode(errors="replace").strip()
    if ran.returncode or not of_image or of_image == architecture():
        return ""
    return f"the image {image} is for {of_image}, and this machine is {architecture()}"


def architecture() -> str:
    """Of this machine, as images name it."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def files_of_image(program: str, image: str, folders: Sequence[str]) -> Snapshot:
    """The files in folders of an image; those of the first one have relative paths.

    Nothing of the image is run. SandboxError if they are too many.
    """
    created = call(program, "create", "--network", "none", image, "true")
    if created.returncode:
        raise SandboxError(
            f"{program} can't use the image {image}: {last_line(created)}"
        )
    container = created.stdout.decode().split()[-1]
    files: list[WorkspaceFile] = []
    links: list[Link] = []
    folders_inside: list[str] = []
    left = MOST_START_BYTES
    contents: dict[str, bytes] = {}  # a file may have several names
    try:
        for folder, archive, member in _members(program, container, folders):
            inside = member.name.removeprefix("./").partition("/")[2]
            if not is_safe(inside) or inside.startswith("/") or _is_cache(inside):
                continue

            path = inside if folder == folders[0] else f"{folder}/{inside}"
            if member.isdir():
                folders_inside.append(path)
            elif member.issym():
                links.append(Link(path, member.linkname))
            elif file := archive.extractfile(member) if member.isreg() else None:
                contents[member.name] = file.read(left + 1)
                left -= len(contents[member.name])
            name = member.linkname if member.islnk() else member.name
            if name in contents:
                mode = member.mode & 0o777 | OWNER
                files.append(WorkspaceFile(path, contents[name], mode))
            number = len(files) + len(links) + len(folders_inside)
            if left < 0 or number > MOST_START_FILES:
                raise SandboxError(
                    f"the image has too many files in {folder}: the limits are "
                    f"{MOST_START_BYTES:,} bytes and {MOST_START_FILES:,} files in "
                    f"{', '.join(folders)} together."
                )
    finally:
        call(program, "rm", "--force", container)
    paths = [*folders_inside]
    paths += [file.path for file in files]
    paths += [link.path for link in links]
    above = {posixpath.dirname(path) for path in paths}
    empty = [path for path in folders_inside if path not in above]
    return Snapshot(tuple(files), tuple(links), tuple(empty))


def _members(
    program: str, container: str, folders: Sequence[str]
) -> Iterator[tuple[str, tarfile.TarFile, tarfile.TarInfo]]:
    """What is in folders of a container that does not run."""
    for folder in folders:
        with suppress(tarfile.ReadError):  # there is no such folder
            for archive, member in read_archive(
                (program, "cp", f"{container}:{folder}", "-")
            ):
                yield folder, archive, member


def _is_cache(path: str) -> bool:
    """Whether it was left by an installation."""
    return PurePosixPath(path).parts[:2] in _CACHES


def _make_usable(program: str, image: str) -> str:
    """An image that was pulled, made usable for agents."""
    ran = call(program, "image", "inspect", "--format", "{{.Id}}", image)
    number = ran.stdout.decode(errors="replace").strip().removeprefix("sha256:")
    with TemporaryDirectory(dir=run_folder()) as folder:
        Path(folder, "Dockerfile").write_text(f"FROM {image}\n")
        build = BuildContext(number or image, "Dockerfile", folder)
        if not is_present(program, tag_of(build)):
            _build(program, build)
    return tag_of(build)


def _build(program: str, build: BuildContext) -> None:
    file = shown(Path(build.folder, build.dockerfile))
    context = Path(mkdtemp(dir=run_folder()))
    try:
        _copy_context(build, context)
        file_option = ("--file", str(context / build.dockerfile))
        arguments = ("build", "--tag", tag_of(build), *file_option, str(context))
        how, output = run_long(program, *arguments, seconds=build.seconds)
        if how:
            log = user_cache() / "images" / f"{build.digest[:32]}.log"
            replace_file(log, output)
            lines = [one_line(line, _LONGEST_LINE) for line in output.splitlines()]
            tail = " | ".join(lines[-_LAST_LINES:])
            raise SandboxError(
                f"{file}: {program} build failed ({how}; see {log}): {tail}"
            )
    except OSError as error:
        raise SandboxError(f"{file} can't be built: {reason_of(error)}.") from None
    finally:
        remove(context)


def _copy_context(build: BuildContext, target: Path) -> None:
    """Without the skills of the task, which are for one arm alone."""
    skills = Path(build.folder, build.without) if build.without else None

    def ignored(folder: str, names: list[str]) -> list[str]:
        return names if skills and Path(folder) == skills else []

    shutil.copytree(
        build.folder, target, symlinks=True, ignore=ignored, dirs_exist_ok=True
    )
    dockerfile = target / build.dockerfile
    text = read_file(Path(build.folder, build.dockerfile))
    dockerfile.unlink()  # it may be a link, and what that leads to must not change
    dockerfile.write_bytes(text + _LAST_STEP.encode())
