"""Images of tasks: built or pulled once, and their files at the start.
The programs are fakes.
"""

import os
import platform
import tarfile
import threading
from pathlib import Path

import pytest

from pytest_upskill.agents import images
from pytest_upskill.agents.images import files_of_image, prepare, tag_of
from pytest_upskill.agents.sandboxes.container_program import (
    at_work,
    ended_by,
    why_no_program,
)
from pytest_upskill.agents.sandboxes.sandbox import SandboxError
from pytest_upskill.agents.snapshot import Link
from pytest_upskill.skills.case import BuildContext, WorkspaceFile
from support.waiting import wait_until

# Images are files in $FAKE; its log has what was called.
FAKE = r"""
cd "$FAKE"; echo "$*" >> log
image() { echo "$1" | tr '/:' '__'; }
case "$1" in
  version) ;;
  image)
    for last; do :; done; [ -e "$(image "$last")" ] || exit 1
    case "$4" in *Id*) echo sha256:77777777777777777777777777777777777777777777 ;;
    *) echo "${ARCH:-$HOST_ARCH}" ;; esac ;;
  pull)
    [ -e pullable ] && touch "$(image "$3")" ||
      { echo "Error: denied" >&2; exit 125; } ;;
  build)
    cat "$5" > Dockerfile; ls -R "$6" > context
    if grep -q hang Dockerfile; then
      echo "STEP hang"; sleep 1000 & echo $! > pid; wait
    fi
    if grep -q 'RUN false' Dockerfile; then
      echo "STEP 2/2: RUN false"; echo "Error: exit status 1" >&2; exit 3
    fi
    touch "$(image "$3")" ;;
  create) echo container-1 ;;
  cp) [ -e "files${2#container-1:}" ] && tar -c -C "$FAKE/files" "$(basename "$2")" ;;
  rm) ;;
esac
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the state of a podman."""
    folder, programs = tmp_path / "fake", tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    (programs / "podman").write_text(f"#!/bin/sh{FAKE}")
    (programs / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("HOST_ARCH", images.architecture())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    why_no_program.cache_clear()
    return folder


def context(
    folder: Path, text: str = "FROM ubuntu:24.04\n", **fields: object
) -> BuildContext:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    (folder / "data.csv").write_text("1,2\n")
    (folder / "skills" / "sums").mkdir(parents=True, exist_ok=True)
    (folder / "skills" / "sums" / "SKILL.md").write_text("Add.")
    return BuildContext("d" * 64, "Dockerfile", str(folder), **fields)  # type: ignore[arg-type]


def calls(fake: Path, word: str) -> int:
    return sum(
        line.split()[0] == word for line in (fake / "log").read_text().splitlines()
    )


def test_an_image_is_built_once(fake: Path, tmp_path: Path) -> None:
    build = context(tmp_path / "environment")
    for _ in range(2):
        assert prepare("podman", "", build) == tag_of(build)
    assert tag_of(build).startswith(f"{images.BUILT}:")
    assert calls(fake, "build") == 1
    assert calls(fake, "pull") == 0


def test_a_build_has_no_skills_and_opens_the_home_of_root(
    fake: Path, tmp_path: Path
) -> None:
    prepare("podman", "", context(tmp_path / "environment", without="skills"))
    listed = (fake / "context").read_text()
    assert "skills" in listed  # a COPY of it must not fail
    assert "data.csv" in listed
    assert "sums" not in listed
    assert "USER 0\nRUN chmod a+rx /root" in (fake / "Dockerfile").read_text()
    assert (tmp_path / "environment" / "skills" / "sums" / "SKILL.md").exists()


def test_a_dockerfile_that_is_a_link_is_not_changed(fake: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.write_text("FROM ubuntu:24.04\n")
    build = context(tmp_path / "environment")
    (tmp_path / "environment" / "Dockerfile").unlink()
    (tmp_path / "environment" / "Dockerfile").symlink_to(shared)
    prepare("podman", "", build)
    assert (fake / "Dockerfile").read_text().startswith("FROM ubuntu:24.04\n\nUSER 0")
    assert shared.read_text() == "FROM ubuntu:24.04\n"


def test_a_build_that_fails_shows_its_last_lines(fake: Path, tmp_path: Path) -> None:  # noqa: ARG001
    build = context(tmp_path / "environment", "FROM ubuntu:24.04\nRUN false\n")
    with pytest.raises(SandboxError) as caught:
        prepare("podman", "", build)
    message = str(caught.value)
    assert "environment/Dockerfile: podman build failed (exit 3; see " in message
    assert message.endswith("STEP 2/2: RUN false | Error: exit status 1")
    log = tmp_path / "cache" / "pytest-upskill" / "images" / f"{'d' * 32}.log"
    assert str(log) in message
    assert "RUN false" in log.read_text()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc")
def test_a_build_that_hangs_is_ended_with_its_steps(fake: Path, tmp_path: Path) -> None:
    build = context(
        tmp_path / "environment", "FROM ubuntu:24.04\nRUN hang\n", seconds=1.0
    )
    with pytest.raises(SandboxError, match=r"no end within 1 s; see .*STEP hang"):
        prepare("podman", "", build)
    if (fake / "pid").exists():
        pid = (fake / "pid").read_text().strip()
        wait_until(lambda: not Path(f"/proc/{pid}/exe").exists())


def test_a_build_ends_with_its_run(fake: Path, tmp_path: Path) -> None:
    build = context(tmp_path / "environment", "FROM ubuntu:24.04\nRUN hang\n")
    stop, problems = threading.Event(), list[str]()

    def wait_for_image() -> None:
        with ended_by(stop):
            try:
                prepare("podman", "", build)
            except SandboxError as error:
                problems.append(str(error))

    threads = [threading.Thread(target=wait_for_image) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until((fake / "pid").exists)
    wait_until(lambda: at_work() == ["building an image"])
    stop.set()
    for thread in threads:
        thread.join(60)
    assert problems == ["the run ended before the image was there"] * 2
    assert at_work() == []
    assert calls(fake, "build") == 1


def test_an_image_is_pulled_and_a_dockerfile_is_the_second_choice(
    fake: Path, tmp_path: Path
) -> None:
    build = context(tmp_path / "environment")
    assert prepare("podman", "bench/task:1", build) == tag_of(build)
    assert (calls(fake, "pull"), calls(fake, "build")) == (1, 1)
    (fake / "pullable").touch()
    assert prepare("podman", "bench/other:1", None) == tag_of(BuildContext("7" * 44))
    text = (fake / "Dockerfile").read_text()
    assert text.startswith("FROM bench/other:1\n")
    assert "chmod a+rx /root" in text


def test_an_image_that_can_not_be_had(fake: Path) -> None:  # noqa: ARG001
    with pytest.raises(
        SandboxError, match=r"bench/task:1 can't be pulled with podman: .*denied"
    ):
        prepare("podman", "bench/task:1", None)


def test_an_image_for_another_architecture(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCH", "riscv64")
    with pytest.raises(SandboxError, match="is for riscv64, and this machine is "):
        prepare("podman", "", context(tmp_path / "environment"))
    assert calls(fake, "build") == 1


def test_architectures_have_the_names_of_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for machine, name in (
        ("x86_64", "amd64"),
        ("aarch64", "arm64"),
        ("arm64", "arm64"),
    ):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert images.architecture() == name


def test_a_program_that_is_missing_or_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why_no_program.cache_clear()
    assert why_no_program("docker") == "docker was not found"
    (tmp_path / "docker").write_text(
        "#!/bin/sh\necho 'Is the daemon running?' >&2; exit 1\n"
    )
    (tmp_path / "docker").chmod(0o755)
    why_no_program.cache_clear()
    assert why_no_program("docker") == "docker does not work: Is the daemon running?"
    why_no_program.cache_clear()


def test_the_files_of_an_image(fake: Path) -> None:
    app = fake / "files" / "app"
    (app / "empty").mkdir(parents=True)
    (app / ".cache" / "pip").mkdir(parents=True)
    (app / ".cache" / "pip" / "wheel").write_text("large")
    (app / "run.sh").write_text("echo")
    (app / "run.sh").chmod(0o755)
    (app / "same.sh").hardlink_to(app / "run.sh")
    (app / "link").symlink_to("/etc/passwd")
    (fake / "files" / "output").mkdir()
    (fake / "files" / "output" / "old").write_text("1")
    start = files_of_image("podman", "bench/task:1", ("/app", "/output", "/missing"))
    assert {file.path: (file.data, file.mode) for file in start.files} == {
        "run.sh": (b"echo", 0o755),
        "same.sh": (b"echo", 0o755),
        "/output/old": (b"1", 0o644),
    }
    assert start.links == (Link("link", "/etc/passwd"),)
    assert {*start.folders} == {"empty", ".cache"}
    assert calls(fake, "rm") == 1


def test_an_image_with_too_many_files(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake / "files" / "app").mkdir(parents=True)
    for name in "abc":
        (fake / "files" / "app" / name).write_text("123")
    monkeypatch.setattr(images, "MOST_START_BYTES", 8)
    with pytest.raises(
        SandboxError, match="too many files in /app: the limits are 8 bytes"
    ):
        files_of_image("podman", "bench/task:1", ("/app",))
    assert calls(fake, "rm") == 1


def test_the_paths_of_an_archive_stay_inside(fake: Path, tmp_path: Path) -> None:
    """Whatever the image has, nothing is written, and odd names are left out."""
    archive = tmp_path / "odd.tar"
    with tarfile.open(archive, "w") as tar:
        (tmp_path / "one").write_text("1")
        for name in ("app/good", "app/../../bad", "app//twice"):
            tar.add(tmp_path / "one", name)
    podman = Path(os.environ["PATH"].split(os.pathsep)[0]) / "podman"
    script = f'#!/bin/sh\ncase "$1" in create) echo c ;; cp) cat {archive} ;; esac\n'
    podman.write_text(script)
    start = files_of_image("podman", "i", ("/app",))
    assert start.files == (WorkspaceFile("good", b"1"),)
    assert not (fake / "log").exists()
