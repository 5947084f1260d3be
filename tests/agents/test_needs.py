"""What skills can have of the host: Python packages and paths."""

import asyncio
import hashlib
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from pytest_upskill.agents import needs
from pytest_upskill.agents.needs import (
    limits_of,
    python_packages,
    spec_for,
    why_no_path,
    why_no_requirement,
)
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import (
    PACKAGES,
    SandboxError,
    SandboxLimits,
)
from pytest_upskill.skills.case import SandboxNeeds
from support.sandboxes import needs_bwrap


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip looks for wheels, and nowhere else; the cache is empty."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    needs._installed.cache_clear()
    return folder


def wheel(folder: Path, version: str, needs: str = "", name: str = "tally") -> None:
    """A package with a module and a command that say its version."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": f'def main():\n    print("{name} {version}")\n',
        # Pip compiles it
        f"{name}-{version}.data/scripts/{name}_tool.py": "#!python\n",
        f"{info}/METADATA": metadata + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    rows = [f"{path},{_hash(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def _hash(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return "sha256=" + urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.mark.nightly
@needs_bwrap
def test_packages_can_be_imported_and_called_inside(wheels: Path) -> None:
    wheel(wheels, "5.1", needs="part")
    wheel(wheels, "6.0")
    wheel(wheels, "1.0", name="part")

    async def main() -> bytes:
        spec = spec_for(SandboxNeeds(python=("tally==5.*",)))
        assert [mount.inside for mount in spec.mounts] == [PACKAGES]
        box = await Bwrap().open(spec)
        try:
            call = "python3 -c 'import tally, part; tally.main(); part.main()'; tally; "
            return (await box.run(call + f"touch {PACKAGES}/x", timeout=60)).output
        finally:
            await box.close()

    said = asyncio.run(main()).decode()
    assert said.startswith("tally 5.1\npart 1.0\ntally 5.1\n")
    assert "Read-only" in said


@pytest.mark.nightly
def test_packages_are_installed_once_for_their_exact_versions(wheels: Path) -> None:
    wheel(wheels, "5.1")
    first = python_packages(["tally>=5"])
    needs._installed.cache_clear()  # as in the next run
    assert python_packages(["tally==5.1"]) == first
    (wheels / "tally-5.1-py3-none-any.whl").unlink()
    needs._installed.cache_clear()
    assert python_packages(["tally>=5"]) == first  # without pip
    assert not list(first.parent.glob("new-*"))


@pytest.mark.nightly
def test_what_pip_says_is_told_in_a_line(wheels: Path) -> None:
    with pytest.raises(
        SandboxError, match=r"no wheel of tally==9 for Python 3\.\d+ on "
    ):
        python_packages(["tally==9"])
    (wheels / "tally-7.tar.gz").write_bytes(b"a source that would run code")
    with pytest.raises(SandboxError, match="no wheel of"):
        python_packages(["tally==7"])


@pytest.mark.parametrize(
    "text",
    [
        "-r x",
        "--index-url=http://x",
        "git+https://x/y",
        "./local",
        "a @ https://x",
        "",
        "a b",
        "a\n-r",
    ],
)
def test_only_names_and_versions_are_requirements(text: str) -> None:
    assert why_no_requirement(text)


@pytest.mark.parametrize(
    "text",
    [
        "a; x\r--index-url y",
        "a\n;x",
        "evil-1.0.tar.gz",
        "e.ZIP [x]",
        "e-1-py3-none-any.whl;x",
        "e==1.tgz",
    ],
)
def test_pip_takes_no_file_of_the_current_folder_and_no_second_line(text: str) -> None:
    assert why_no_requirement(text)


def test_a_requirement_can_not_keep_the_run_busy() -> None:
    assert why_no_requirement(f"a{'!' * 150}@")


@pytest.mark.nightly
def test_pip_is_not_the_one_of_the_current_folder(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(wheels, "5.1")
    (tmp_path / "pip.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    assert (python_packages(["tally"]) / "tally.py").exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text", ["pypdf==5.*", "a", "a[b,c] >=1,<2", "a~=1.0; sys_platform=='x'"]
)
def test_requirements(text: str) -> None:
    assert why_no_requirement(text) is None


def test_paths_of_tools_can_be_mounted(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    assert why_no_path(str(tool)) is None
    (mount,) = spec_for(SandboxNeeds(paths=(str(tool),))).mounts
    assert (mount.host, mount.inside) == (str(tool), str(tool))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tool", "absolute"),
        ("/no/such", "No such file"),
        ("/", "folder of the sandbox"),
        ("/tmp", "folder of the sandbox"),
        ("/etc", "folder of the sandbox"),
        ("/dev/null", "neither"),
        ("/proc/self", "folder of the sandbox|must not see"),
        ("/home", "a home|folder of the sandbox"),
        ("/usr/../home", "a home|folder of the sandbox"),
        ("HOME", "is a home"),
        ("HOME/..", "a home|folder of the sandbox"),
        ("HOME/.ssh", "hidden folder"),
        ("HOME/link", "hidden folder"),
        ("HOME/project", "stored answers"),
        ("CWD", "folder of this run"),
    ],
)
def test_paths_that_agents_must_not_see(
    path: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, cwd = tmp_path / "homes" / "me", tmp_path / "cwd"
    for folder in (home / ".ssh", home / "project" / ".upskill", cwd):
        folder.mkdir(parents=True)
    (home / "link").symlink_to(home / ".ssh")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(cwd)
    problem = why_no_path(path.replace("HOME", str(home)).replace("CWD", str(cwd)))
    assert problem
    assert any(one in problem for one in reason.split("|"))


@pytest.mark.parametrize(
    ("name", "mode"), [("shadow", 0o640), (".env", 0o644), ("folder", 0o700)]
)
def test_secrets_are_not_mounted(tmp_path: Path, name: str, mode: int) -> None:
    secret = tmp_path / name
    secret.mkdir() if name == "folder" else secret.touch()
    secret.chmod(mode)
    assert "may hold secrets" in (why_no_path(str(secret)) or "")


def test_tools_in_a_home_are_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / ".cargo" / "bin"
    tool.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert why_no_path(str(tool)) is None


def test_skills_are_not_mounted(tmp_path: Path) -> None:
    scripts = tmp_path / "skills/wick/scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "skills/wick/SKILL.md").write_text("Use Wick.")
    for folder in (scripts, scripts.parent, scripts.parent.parent):
        assert "is a skill or holds one" in (why_no_path(str(folder)) or "")


def test_a_path_that_can_not_be_had_is_told() -> None:
    with pytest.raises(SandboxError, match=r"sandbox\.paths: /no/such can't be read"):
        spec_for(SandboxNeeds(paths=("/no/such",)))


def test_a_task_says_where_it_runs_and_what_it_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "_machine_memory", lambda: 16 * 2**30)
    task = SandboxNeeds(
        workdir="/app",
        places=("/data",),
        env=(("MODE", "x"),),
        memory_mb=2048,
        storage_mb=10_240,
        cpus=2,
    )
    spec = spec_for(task)
    assert (spec.kept, spec.env) == (("/app", "/data"), {"MODE": "x"})
    limits = spec.limits
    assert (limits.memory, limits.cpus) == (2 * 2**30, 2)
    assert limits.disk == 4 * 2**30, (
        "files are in memory, which this machine has little of"
    )
    assert limits_of(SandboxNeeds(memory_mb=10**9)).memory == 16 * 2**30
    assert limits_of(SandboxNeeds()) == SandboxLimits()
    with pytest.raises(SandboxError, match="/etc can't be a folder of a task"):
        spec_for(SandboxNeeds(workdir="/etc"))
