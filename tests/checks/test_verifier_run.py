"""A verifier runs on a copy of what an agent left; nothing of that decides how it
ends.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents import needs as needs_module
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import PACKAGES, Mount, SandboxSpec
from pytest_upskill.agents.snapshot import Link, Snapshot, pack
from pytest_upskill.checks import verifier_run
from pytest_upskill.checks.final_workspace import Verified, Verifier
from pytest_upskill.checks.verifier_check import reward_in
from pytest_upskill.checks.verifier_run import agents_files, verified, verifiers_in
from pytest_upskill.errors import CheckError
from pytest_upskill.skills.case import SandboxNeeds, WorkspaceFile
from support.sandboxes import needs_bwrap

Texts = Mapping[str, str]
NEEDS = SandboxNeeds(workdir="/app", places=("/output", "/logs", "/tests"))
REWARD = "/logs/verifier/reward.txt"
# Passes if the agent's module can add.
RUN_TESTS = f"""
PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -m pytest -q -p no:cacheprovider \\
    /tests/test_sums.py && echo 1 > {REWARD} || echo 0 > {REWARD}
"""
TEST = """
from sums import add
def test_add():
    assert add(1, 2) == 3
"""


def files(texts: Texts) -> tuple[WorkspaceFile, ...]:
    return tuple(
        WorkspaceFile(path, text.encode(), 0o755) for path, text in texts.items()
    )


def verify(
    script: str,
    left: Texts = {},  # noqa: B006
    tests: Texts = {},  # noqa: B006
    links: Sequence[Link] = (),
    needs: SandboxNeeds = NEEDS,
    timeout: float = 300,
    start: Texts = {},  # noqa: B006
    sandbox: str = "bwrap",
    folder: str = "tests",
) -> Verified:
    verifier = Verifier("test.sh", folder, files({"test.sh": script, **tests}), timeout)
    packed = pack(Snapshot(files(left), tuple(links)))
    return verifiers_in(sandbox, "", needs, files(start))(
        packed, verifier, lambda _: False
    )


@needs_bwrap
def test_it_runs_where_the_agent_worked_with_tests_that_the_agent_never_saw() -> None:
    script = f"""
    [ "$PWD" = /app ] && [ "$(cat out.txt /output/more.txt)" = "ab" ] || exit 3
    [ "$(cat /tests/expected.txt)" = ab ] && echo new > /tests/new.txt || exit 4
    echo "a key: $(id -u) $HOME"; echo 0.5 > {REWARD}
    """
    left = {"out.txt": "a", "/output/more.txt": "b"}
    verified = verify(script, left, {"expected.txt": "ab"})
    assert verified.output == "a key: 1000 /home/agent"
    assert reward_in(verified) == 0.5
    assert not verified.problem


@needs_bwrap
def test_an_agent_that_did_nothing_is_graded_for_real() -> None:
    assert reward_in(verify(f"[ -e out.txt ]; echo $((! $?)) > {REWARD}")) == 0


@needs_bwrap
def test_what_an_agent_left_to_steer_it_is_not_there() -> None:
    left = {
        REWARD: "1",
        "/tests/test.sh": "echo 1",
        "/tests/conftest.py": "",
        ".local/bin/env": f"echo 1 > {REWARD}; exit",
        ".local/bin/pytest": "#!/bin/sh\n",
        "bin/python3": "#!/bin/sh\necho agent\n",
        "conftest.py": "",
        "sub/pytest.ini": "",
        "sitecustomize.py": f"open('{REWARD}', 'w').write('1')",
        "json.py": "",
        "given/conftest.py": "changed",
        ".bashrc": "exit 0",
        "pyproject.toml": '[tool]\n"pyt\\u0065st".ini_options.addopts = "-p json"',
        "sub/pyproject.toml": "[project]",
        "setup.cfg": "[metadata]\f[tool:pytest]\naddopts = -p json",
        "sub/setup.cfg": "[metadata]",
        "/output/.local/bin/grep": "#!/bin/sh\n",
    }
    links = [Link("sub/.local", "/output"), Link("sub/conftest.py", "../json.py")]
    script = """
    find . /tests /logs /output ! -type d | sort
    cat given/conftest.py given/pyproject.toml
    type -p python3
    """
    needs = NEEDS._replace(env=(("PATH", "/app/bin"),))
    start = {
        "given/conftest.py": "as it was\n",
        "given/pyproject.toml": "tool.pytest = {}\n",
    }
    left["given/pyproject.toml"] = "tool.pytest = {addopts = '-p json'}"
    verified = verify(script, left, links=links, needs=needs, start=start)
    *paths, given, settings, program = verified.output.splitlines()
    assert paths == [
        "./.bashrc",
        "./bin/python3",
        "./given/conftest.py",
        "./given/pyproject.toml",
        "./json.py",
        "./sub/pyproject.toml",
        "./sub/setup.cfg",
        "/tests/test.sh",
    ]
    assert (given, settings) == ("as it was", "tool.pytest = {}")
    assert not program.startswith("/app/")
    with pytest.raises(ValueError, match="neither"):
        reward_in(verified)


@needs_bwrap
def test_no_program_of_an_agent_prepares_the_tests() -> None:
    """It could read them: they are there by then."""
    left = dict.fromkeys(
        [f"bin/{name}" for name in ("sh", "mkdir", "ln", "bash", "printf")],
        '#!/bin/bash\ntouch /app/ran; PATH=/usr/bin:/bin exec "${0##*/}" "$@"\n',
    )
    needs = NEEDS._replace(env=(("PATH", "/usr/../app/bin"),))
    script = f"[ -e /app/ran ]; echo $? > {REWARD}; type -p ln"
    verified = verify(script, left, links=[Link("a/b", "../bin")], needs=needs)
    assert reward_in(verified) == 1
    assert verified.output == "/usr/bin/ln"


@pytest.mark.parametrize(
    ("path", "target", "kept"),
    [
        ("out.csv", "/tests/expected.csv", False),
        ("out.csv", "../tests/expected.csv", False),
        ("out.csv", "../app/../tests/expected.csv", False),
        ("sub/out.csv", "lib/../../tests/x", False),
        ("out.csv", "/proc/self/root/tests/x", False),
        ("out.csv", "/proc/1/cwd/../tests/x", False),
        ("out.csv", "/logs/verifier", False),
        ("out.csv", "/home/agent/x", False),
        ("out.csv", "/", False),
        ("/logs/verifier/reward.txt", "/usr/share/one", False),
        ("out.csv", "sub/out.csv", True),
        ("sub/out.csv", "../out.csv", True),
        ("out.csv", "/output/out.csv", True),
        ("/output/out.csv", "../app/out.csv", True),
        (".venv/bin/python", "/usr/bin/python3", True),
    ],
)
def test_links_of_an_agent_lead_to_no_test(path: str, target: str, kept: bool) -> None:
    spec = SandboxSpec(workdir="/app", places=("/output",))
    left = agents_files(Snapshot(links=(Link(path, target),)), spec)
    assert bool(left.links) == kept


def test_a_reward_of_an_agent_that_works_among_the_logs_is_left_out() -> None:
    reward = WorkspaceFile("reward.txt", b"1")
    spec = SandboxSpec(workdir="/logs/verifier")
    assert agents_files(Snapshot((reward,)), spec) == Snapshot()


@pytest.fixture
def with_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox has the pytest of these tests."""

    def spec_for(needs: SandboxNeeds) -> SandboxSpec:
        spec = needs_module.spec_for(needs)
        packages = str(Path(pytest.__file__).parent.parent)
        return replace(spec, mounts=(Mount(packages, PACKAGES),))

    monkeypatch.setattr(verifier_run, "spec_for", spec_for)


@needs_bwrap
@pytest.mark.usefixtures("with_pytest")
@pytest.mark.parametrize(
    ("module", "reward", "unfinished"),
    [
        ("def add(a, b): return a + b", 1, ""),
        ("def add(a, b): return 0", 0, "pytest reported exit 1, not 0"),
        ("import os; os._exit(0)", 1, "pytest did not report its end"),
        (
            "import atexit, os; atexit.register(os._exit, 0)",
            1,
            "pytest reported exit 2",
        ),
        ("import sys; sys.exit(0)", 0, "pytest reported exit"),
    ],
    ids=["good", "wrong", "exits at once", "exits at the end", "exits"],
)
def test_code_of_an_agent_does_not_end_the_tests(
    module: str, reward: int, unfinished: str
) -> None:
    left = {"sums.py": module, "pytest.py": "raise SystemExit(0)"}
    verified = verify(RUN_TESTS, left, {"test_sums.py": TEST})
    assert reward_in(verified) == reward
    assert verified.unfinished.startswith(unfinished)
    assert bool(verified.unfinished) == bool(unfinished)


@needs_bwrap
@pytest.mark.parametrize(
    "script",
    [
        f"python3 --version # pytest\necho 1 > {REWARD}",
        f"PYTHONPATH=/tests pytest; echo 1 > {REWARD}",
        f"no-such-uvx pytest; echo 1 > {REWARD}",
    ],
)
def test_a_pytest_that_was_never_there_is_not_waited_for(script: str) -> None:
    assert verify(script).unfinished == ""


@needs_bwrap
@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (
            f"import os; open('{REWARD}', 'w').write('1'); os.kill(os.getppid(), 9)",
            "signal 9",
        ),
        (
            f"open('/tests/test.sh', 'a').write('echo 1 > {REWARD}\\n' * 99)",
            "was changed",
        ),
    ],
    ids=["kills the script", "rewrites the script"],
)
def test_code_of_an_agent_that_interferes_is_an_error(
    module: str, problem: str
) -> None:
    script = f"PYTHONPATH=. python3 -c 'import sums'; echo 0 > {REWARD}"
    assert problem in verify(script, {"sums.py": module}).problem


SMALL = NEEDS._replace(storage_mb=32)


@needs_bwrap
@pytest.mark.parametrize(
    ("script", "needs", "problem"),
    [
        (f"echo 1 > {REWARD}; sleep 600", NEEDS, "no end within 2 s"),
        (f"yes > /tmp/full; echo 1 > {REWARD}", SMALL, "no space is left in /tmp"),
        (f"echo 1 > {REWARD}; kill -9 $$", NEEDS, "signal 9"),
    ],
    ids=["hangs", "fills the disk", "is killed"],
)
def test_a_verifier_without_a_proper_end(
    script: str, needs: SandboxNeeds, problem: str
) -> None:
    timeout = 2 if "sleep" in script else 300
    assert problem in verify(script, needs=needs, timeout=timeout).problem


@needs_bwrap
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (f"ln -s /tests/one.txt {REWARD}", "is no file"),
        (f"mkdir {REWARD}", "is no file"),
        (f"mkdir {REWARD}; touch {REWARD}/1", "is no file"),
        (f"mkfifo {REWARD}", "neither"),
        ("rm -rf /logs/verifier", "neither"),
    ],
    ids=["link", "empty folder", "folder", "pipe", "nothing"],
)
def test_a_reward_that_is_no_file(script: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        reward_in(verify(script, tests={"one.txt": "1"}))


@needs_bwrap
def test_a_verifier_may_close_the_workspace() -> None:
    verified = verify(f"echo 1 > {REWARD}; chmod a-w /app")
    assert (reward_in(verified), verified.problem) == (1, "")


@needs_bwrap
def test_a_flood_of_output_and_a_process_in_the_background() -> None:
    script = (
        "yes flood | head -c 20000000; (sleep 600 &); echo 'the end'; echo 1 >"
        f" {REWARD}"
    )
    verified = verify(script)
    assert verified.output.endswith("flood\nflthe end")
    assert len(verified.output) <= 4000
    assert reward_in(verified) == 1


@needs_bwrap
@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ("no-such-uvx pytest", "no-such-uvx: command not found"),
        (
            "python3 -c 'import socket; socket.create_connection((\"a.test\", 1))'",
            "Name",
        ),
        ("echo 'answer: command not found'", ""),
    ],
    ids=["a program", "a host", "neither"],
)
def test_what_a_verifier_misses_is_told(script: str, missing: str) -> None:
    verified = verify(f"{script}; echo 0 > {REWARD}")
    assert missing in verified.missing
    assert bool(verified.missing) == bool(missing)


@needs_bwrap
def test_a_verifier_has_the_packages_of_the_task(tmp_path: Path) -> None:
    (tmp_path / "wax.py").write_text("print('melted')")
    spec = SandboxSpec((Mount(str(tmp_path), PACKAGES),))
    verifier = Verifier("test.sh", "tests", files({"test.sh": "python3 -m wax"}), 300)
    ran = asyncio.run(verified(Bwrap(), spec, Snapshot(), verifier, network=False))
    assert ran.output == "melted"


@needs_bwrap
def test_a_package_has_its_tests_in_a_folder_of_its_own_name_too() -> None:
    script = f"cmp /tests/data.txt /verifier/data.txt && echo 1 > {REWARD}"
    assert reward_in(verify(script, tests={"data.txt": "3"}, folder="verifier")) == 1


def test_without_a_sandbox_there_are_no_tests() -> None:
    with pytest.raises(CheckError, match=r"tests/test.sh can't be run: .*/tests"):
        verify("true", sandbox="none")
