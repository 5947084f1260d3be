"""What GitHub and others read of this repository: workflows, forms, hook, citation."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_upskill

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = [
    file
    for file in sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))
    if file.stem != "config"
]
PINNED = re.compile(r"[\w-]+/[\w./-]+@(v\d+|release/v\d+|[0-9a-f]{40})|\./[\w./-]*|\./")
# The current major versions; a new one is one line here and a search.
CURRENT = {
    "actions/checkout": "v7",
    "actions/setup-python": "v7",
    "actions/cache/restore": "v6",
    "actions/cache/save": "v6",
    "actions/upload-artifact": "v7",
    "actions/download-artifact": "v8",
    "actions/upload-pages-artifact": "v5",
    "actions/deploy-pages": "v5",
    "pypa/gh-action-pypi-publish": "release/v1",
    "pytest-upskill/pytest-upskill": "v1",
}


def examples() -> dict[str, dict[str, Any]]:
    """The workflows of GitHub in the documentation."""
    found = {}
    for page in sorted(ROOT.glob("docs/*.md")):
        for number, text in enumerate(
            re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.S | re.M)
        ):
            flow = yaml.safe_load(text)
            if isinstance(flow, dict) and "jobs" in flow:
                found[f"{page.name} {number}"] = flow
    return found


ALL = {file.name: yaml.safe_load(file.read_text()) for file in WORKFLOWS} | examples()


def steps_of(flow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in flow["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.parametrize("name", ALL)
def test_workflows_have_least_permissions_and_pinned_actions(name: str) -> None:
    flow = ALL[name]
    assert flow[True]  # "on", which YAML 1.1 takes for a truth value
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        writes = {
            key for key, value in job.get("permissions", {}).items() if value == "write"
        }
        assert writes <= {"pull-requests", "id-token", "contents", "pages"}
        assert job.get("permissions") != "write-all"
        assert "uses" in job or job["runs-on"]
    for step in steps_of(flow):
        check_step(step)


def test_the_action_uses_current_actions_and_takes_texts_by_the_environment() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        check_step(step)
        assert "uses" in step or step["shell"] == "bash"
    save = [
        step for step in action["runs"]["steps"] if "cache/save" in step.get("uses", "")
    ]
    assert [step["if"].startswith("always() &&") for step in save] == [True]
    for one in (*action["inputs"].values(), *action["outputs"].values()):
        assert one["description"]
    text = (ROOT / "action.yml").read_text()
    for name in action["inputs"]:
        assert f"inputs.{name} " in text or f"inputs.{name}\n" in text, name


def check_step(step: dict[str, Any]) -> None:
    assert ("uses" in step) != ("run" in step)
    if used := step.get("uses"):
        assert PINNED.fullmatch(used), used
        action, _, version = used.partition("@")
        assert not version or CURRENT[action] == version, used
    # What others write, such as a title, would be a part of the script.
    assert "${{" not in step.get("run", "")


def test_only_the_job_that_publishes_may_ask_for_an_identity() -> None:
    flow = ALL["release.yml"]
    jobs = [
        name
        for name, job in flow["jobs"].items()
        if "id-token" in job.get("permissions", {})
    ]
    assert jobs == ["publish"]
    publish = flow["jobs"]["publish"]
    assert publish["environment"] == "release"
    assert set(publish["needs"]) == {"test", "build"}
    assert publish["if"] == "github.ref == 'refs/heads/main'"
    for step in publish["steps"]:
        assert "password" not in step.get("with", {})


def test_one_click_releases_and_a_tag_follows() -> None:
    flow = ALL["release.yml"]
    assert list(flow[True]) == ["workflow_dispatch"]  # YAML reads "on" as true
    assert set(flow["jobs"]["github-release"]["needs"]) == {"build", "publish"}


@pytest.mark.parametrize(
    ("changes", "tags", "good"),
    [
        ("## 0.1.0 (2026-11-18)", "", True),
        ("## 0.1.0 (unreleased)", "", False),
        ("## 0.1.0 (2026-11-18)", "abc refs/tags/v0.1.0", False),
    ],
)
def test_a_version_is_released_once_and_with_a_date(
    tmp_path: Path, changes: str, tags: str, good: bool
) -> None:
    [step] = [
        step for step in ALL["release.yml"]["jobs"]["build"]["steps"] if "id" in step
    ]
    (tmp_path / "src/pytest_upskill").mkdir(parents=True)
    (tmp_path / "src/pytest_upskill/__init__.py").write_text(
        '__version__: Final = "0.1.0"\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(f"{changes}\n")
    programs = {
        "git": f"#!/bin/sh\necho '{tags}'\n",
        "python": f'#!/bin/sh\n{sys.executable} "$@"\n',
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    env = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=env, check=False
    )
    assert (done.returncode == 0) is good
    assert (tmp_path / "output").is_file() is good


def test_the_matrix_has_every_python_that_the_project_claims_and_every_session() -> (
    None
):
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "classifiers"
    ]
    claimed = [one for text in classifiers for one in re.findall(r":: (3\.\d+)$", text)]
    rows = ALL["test.yml"]["jobs"]["nox"]["strategy"]["matrix"]["include"]
    sessions = {row["session"]: row["python"] for row in rows}
    assert sessions == {
        **{f"tests-{one}": one for one in claimed},
        "oldest": claimed[0],
        "newest": claimed[-1],
    }
    noxfile = (ROOT / "noxfile.py").read_text()
    assert (
        f"PYTHONS = ({', '.join(f'{chr(34)}{one}{chr(34)}' for one in claimed)})"
        in noxfile
    )
    for name in ("tests", "oldest", "newest"):
        assert f"\ndef {name}(session: nox.Session)" in noxfile


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_forms_of_issues_are_what_github_takes(file: Path) -> None:
    form = yaml.safe_load(file.read_text())
    assert form.keys() <= {
        "name",
        "description",
        "labels",
        "title",
        "body",
        "assignees",
    }
    assert form["name"]
    assert form["description"]
    ids = [part["id"] for part in form["body"]]
    assert len(set(ids)) == len(ids)
    for part in form["body"]:
        assert part["type"] in (
            "input",
            "textarea",
            "dropdown",
            "checkboxes",
            "markdown",
        )
        assert part.keys() <= {"type", "id", "attributes", "validations"}
        assert part["attributes"]["label"]
        allowed = {"label", "description", "placeholder", "value", "render", "options"}
        assert part["attributes"].keys() <= allowed
        assert part.get("validations", {}).keys() <= {"required"}


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == pytest_upskill.__version__
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    newest = re.findall(
        r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )[0]
    assert newest[0] == pytest_upskill.__version__
    assert newest[1] == "unreleased" or re.fullmatch(r"20\d\d-\d\d-\d\d", newest[1])
    # As release.yml reads it.
    source = (ROOT / "src/pytest_upskill/__init__.py").read_text()
    found = re.search('__version__.*"(.+)"', source)
    assert found
    assert found[1] == pytest_upskill.__version__


def test_citation_has_what_the_project_says() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["title"] == project["name"]
    assert citation["license"] == project["license"]
    assert [one["name"] for one in citation["authors"]] == [
        one["name"] for one in project["authors"]
    ]
