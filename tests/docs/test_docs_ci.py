"""The jobs of docs/ci.md, run as their CI would run them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_upskill.plugin.pytest_options import FLAGS
from support.loopback import Asked, LoopbackServer, Reply

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/ci.md").read_text()
BIN = Path(sys.executable).parent
REPORTS = ("report.html", "results.json", "junit.xml")

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")


def fences(language: str) -> list[str]:
    # As good for this, and faster
    page = PAGE.replace("--skill-runs 5", "--skill-runs 1")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.S | re.M)


def gitlab() -> dict[str, Any]:
    (found,) = [
        flow for flow in map(yaml.safe_load, fences("yaml")) if "jobs" not in flow
    ]
    return dict(found)


def reciter(asked: Asked) -> Reply:
    """Knows what it was told, and nothing else."""
    return Reply(asked.system or "No idea.")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the skill wick, and programs that install nothing."""
    shutil.copytree(ROOT / "skills/wick", tmp_path / "pro ject/skills/wick")
    programs = {
        "pip": '#!/bin/sh\necho "installed $*"\n',
        # A new environment is this one.
        "python3": (
            f"""#!/bin/sh
test "$1 $2" = "-m venv" && mkdir -p "$3/bin"
ln -s {shlex.quote(str(BIN / "pytest"))} "$3/bin/pytest"
ln -s "$(dirname "$0")/pip" "$3/bin/pip"
"""
        ),
    }
    for name, text in programs.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path / "pro ject"


def run(
    project: Path, script: str, *shell: str, **env: str
) -> subprocess.CompletedProcess[str]:
    for name in REPORTS:
        (project / name).unlink(missing_ok=True)
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GITHUB")
    }
    paths = [project.parent / "bin", BIN, own["PATH"]]
    own["PATH"] = os.pathsep.join(map(str, paths))
    ran = subprocess.run(
        [*shell, "-c", script],
        cwd=project,
        env={**own, "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:timeout", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "installed install git+https://" in ran.stdout, ran.stderr
    assert all((project / name).is_file() for name in REPORTS), ran.stdout + ran.stderr
    return ran


def errors(project: Path) -> int:
    summary = json.loads((project / "results.json").read_text())["summary"]
    return sum(int(row["errored"]) for row in summary)


@pytest.mark.nightly
def test_the_jobs_of_gitlab(project: Path) -> None:
    jobs = gitlab()
    scripts = {
        name: "\n".join([*jobs[".skills"]["before_script"], *jobs[name]["script"]])
        for name in ("replay", "ask")
    }
    assert jobs["ask"]["cache"] == {
        "key": "upskill",
        "paths": [".upskill"],
        "when": "always",
    }
    assert jobs[".skills"]["artifacts"]["when"] == "always"
    bash = ("bash", "-eo", "pipefail")
    with LoopbackServer(reciter) as server:
        key = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
        asked = run(project, scripts["ask"], *bash, **key)
        assert asked.returncode in (0, 1)
        assert (project / ".upskill").is_dir()
        run(
            project,
            scripts["replay"].replace("--skill-replay", "--skill-record"),
            *bash,
            **key,
        )
        assert len(server.asked) == 20  # the second job was answered from the cache
    shutil.rmtree(project / ".upskill")
    replayed = run(project, scripts["replay"], *bash)
    assert errors(project) == 0, replayed.stdout


@pytest.mark.nightly
def test_the_script_for_any_other_ci(project: Path) -> None:
    (script,) = fences("sh")
    with LoopbackServer(reciter) as server:
        key = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
        asked = run(project, script, "sh", **key)
        assert asked.returncode in (0, 1)
        assert len(server.asked) == 20
        shutil.rmtree(project / ".venv")
        wanted = script.replace("--skill-max-cost 1", "--skill-record answers.jsonl")
        run(project, wanted, "sh", **key)
    for folder in (".venv", ".upskill"):
        shutil.rmtree(project / folder)
    replayed = run(project, script, "sh", ANTHROPIC_API_KEY="")
    assert errors(project) == 0, replayed.stdout
    failed = 'failures="0"' not in (project / "junit.xml").read_text()
    assert replayed.returncode == int(failed)


def test_the_first_example_is_the_action_with_inputs_that_it_has() -> None:
    flow = yaml.safe_load(fences("yaml")[0])
    (job,) = flow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = job["steps"][-1]
    assert step["uses"] == "pytest-upskill/pytest-upskill@v1"
    assert step["with"].keys() <= action["inputs"].keys()
    flags = set(FLAGS.values())
    words = shlex.split(step["with"]["args"])
    assert {word for word in words if word.startswith("--")} <= flags
    # The table lists every input and its default.
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) *\|", PAGE, re.M))
    assert rows.keys() == action["inputs"].keys()
    for name, one in action["inputs"].items():
        if rows[name].startswith("`"):
            assert rows[name] == f"`{one['default']}`"
        else:
            assert not one["default"] or name == "token"
    for name in action["outputs"]:
        assert f"`{name}`" in PAGE
