"""action.yml: every step's script is run as GitHub runs it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.reports.markdown import MARKER, markdown_summary
from support.github import Api, Job, github_api
from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.made import made_run

ROOT = Path(__file__).parents[2]
CASES = [case("Open?", "gate up", id="open"), case("Shut?", "gate up", id="shut")]
INPUTS = {"skills": "my skills", "models": "scripted:a.json", "version": "installed"}
PULL = {
    "number": 12,
    "title": "$(touch /x)",
    "head": {"repo": {"full_name": "wick/deploy"}},
}
FORK = {**PULL, "head": {"repo": {"full_name": "eve/deploy"}}}

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not shutil.which("bash"), reason="needs bash"),
]

MakeJob = Callable[..., Job]


@pytest.fixture
def api() -> Iterator[Api]:
    with github_api() as server:
        yield server


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    write_skill(folder / "my skills/gate", CASES)
    write_script(folder / "a.json")
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return folder


@pytest.fixture
def make_job(tmp_path: Path, workspace: Path, api: Api) -> MakeJob:
    def make(pull: dict[str, Any] | None = PULL, **env: str) -> Job:
        name = "pull_request" if pull else "push"
        server = {"GITHUB_API_URL": api.url, "GITHUB_GRAPHQL_URL": f"{api.url}/graphql"}
        event = {"pull_request": pull} if pull else {}
        own = {"GITHUB_EVENT_NAME": name, **server, **env}
        return Job(ROOT, workspace, tmp_path / "run ner", own, event)

    return make


def test_a_green_run_leaves_reports_answers_a_summary_and_one_comment(
    make_job: MakeJob, api: Api
) -> None:
    job = make_job()
    assert job.run(INPUTS) == "success", job.log
    files = {file.name for file in job.artifact().iterdir()}
    assert files == {"report.html", "results.json", "comment.md"}
    results = json.loads((job.artifact() / "results.json").read_text())
    assert (results["schema"], results["summary"][0]["runs"]) == (1, 3)
    (comment,) = api.comments
    lines = comment["body"].splitlines()
    assert lines[0] == MARKER
    assert lines[1] == "## ⚪ gate: 2 cases: no verdict; six or more are needed"
    links = "[Page and JSON](https://github.com/wick/deploy/artifacts/3) · [Log]"
    assert lines[-1] == f"{links}(https://github.com/wick/deploy/actions/runs/7)"
    assert job.summary.read_text().count("\n## ⚪ ") == 1
    (kept,) = job.cache()
    assert kept.name.startswith("pytest-upskill-Linux-skills-")
    assert kept.name.endswith("-skills-7-1")
    assert len(list(kept.glob("0/runs/*.json.gz"))) == 1
    assert "::error" not in job.log


def test_a_red_run_keeps_its_answers_and_replaces_its_own_comment_only(
    make_job: MakeJob, api: Api, workspace: Path
) -> None:
    for number in range(130):
        api.add(f"comment {number}", "ann")
    api.add(f"{MARKER}\n## ✅ Skills: not by us", "eve")
    api.add(f"{MARKER}\n## ✅ Skills")
    api.add("<!-- pytest-upskill: other -->\n## ✅ Skills")
    (workspace / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\nskill_runs = 1\n"
    )
    with LoopbackServer(lambda _: Reply("Push it.")) as server:
        args = f"--skill-base-url {server.url}/v1"
        inputs = {**INPUTS, "models": "m", "args": args}
        job = make_job(GITHUB_RUN_ID="8")
        assert job.run(inputs) == "failure"
        assert len(job.cache()) == 1
        shutil.rmtree(workspace / ".upskill")
        again = make_job(GITHUB_RUN_ID="9")
        again.run(inputs)
        assert len(server.asked) == 4  # by the first job
    assert len(again.cache()) == 2
    failed = [name for name, step in job.steps.items() if step.outcome == "failure"]
    assert failed == ["Test skills"]
    assert job.steps["Test skills"].outputs["status"] == "1"
    assert len(api.comments) == 133
    changed = [one["body"] for one in api.comments[130:]]
    assert changed[0].endswith("not by us")
    assert changed[1].startswith(
        f"{MARKER}\n## ❌ 2 of 2 tests failed; both fail without the skill, too\n"
    )
    assert changed[2].endswith("## ✅ Skills")
    assert job.summary.read_text().count("\n## ❌ ") == 1
    assert (
        "::error file=my skills/gate/skill_meta.json,line=1,title=skill failed::"
        in job.log
    )
    assert (job.artifact() / "report.html").is_file()


def test_answers_are_kept_when_the_budget_is_spent(
    make_job: MakeJob, workspace: Path, api: Api
) -> None:
    write_skill(
        workspace / "my skills/gate",
        [case(f"q{n}", "yes", id=f"c{n}") for n in range(6)],
    )
    (workspace / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nskill_prices = ["m 1 1"]\nskill_concurrency = "1"\n'
    )
    with LoopbackServer(
        lambda _: Reply("yes", input_tokens=40, output_tokens=60)
    ) as server:
        job = make_job()
        args = f"--skill-base-url {server.url}/v1 --skill-max-output 60"
        inputs = {**INPUTS, "models": "m", "max-cost": "0.0005", "args": args}
        assert job.run(inputs) == "failure"
        assert 0 < len(server.asked) < 12
    assert "budget reached" in api.comments[0]["body"]
    assert api.comments[0]["body"].startswith(f"{MARKER}\n## ❌ gate: ")
    assert "title=skill unanswered::gate on m: " in job.log
    assert len(job.cache()) == 1


def test_a_fork_replays_and_writes_no_comment(
    make_job: MakeJob, workspace: Path, api: Api
) -> None:
    recorded = make_job(None)
    assert (
        recorded.run({**INPUTS, "args": "--skill-record 'my answers.jsonl'"})
        == "success"
    )
    assert recorded.steps["Comment"].outcome == "skipped"
    shutil.rmtree(workspace / ".upskill")
    (workspace / "a.json").write_text('[{"answer": "asked!"}]')
    job = make_job(FORK, ANTHROPIC_API_KEY="")
    inputs = {**INPUTS, "replay": "my answers.jsonl", "max-cost": "1"}
    assert job.run(inputs) == "success", job.log
    summary = job.summary.read_text()
    assert summary.startswith(
        "> This pull request comes from a fork, so it has no secrets and asks no model."
    )
    assert "`my answers.jsonl`" in summary
    assert summary.count("\n## ✅ ") == 1
    assert "No comment: this pull request comes from a fork" in summary
    assert api.comments == []
    assert job.steps["Save answers"].outcome == "skipped"


@pytest.mark.parametrize(
    ("pull", "actor", "why"),
    [
        (FORK, "eve", "This pull request comes from a fork"),
        (
            {**PULL, "head": {"repo": None}},
            "eve",
            "This pull request comes from a fork",
        ),
        (PULL, "dependabot[bot]", "This pull request is Dependabot's"),
    ],
)
def test_without_a_recording_a_fork_is_not_tested_and_told_why(
    make_job: MakeJob, api: Api, pull: dict[str, Any], actor: str, why: str
) -> None:
    job = make_job(pull, GITHUB_ACTOR=actor)
    assert job.run(INPUTS) == "failure"
    summary = job.summary.read_text()
    assert f"## ❌ Nothing was tested\n\n{why}, so it has no secrets" in summary
    assert "no file `answers.jsonl`" in summary
    assert "[command]" not in job.log
    assert api.comments == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_comment_that_is_refused_fails_no_job_but_is_told(
    make_job: MakeJob, api: Api, status: int
) -> None:
    api.refuse = status
    job = make_job()
    assert job.run(INPUTS) == "success"
    told = (
        f"No comment on the pull request: {status} Resource not accessible by"
        " integration."
    )
    assert f"::warning title=pytest-upskill::{told}" in job.log
    assert told in job.summary.read_text()
    assert ("pull-requests: write" in job.log) is (status != 500)


def test_a_server_that_is_gone_fails_no_job(make_job: MakeJob) -> None:
    job = make_job(GITHUB_GRAPHQL_URL="http://127.0.0.1:9/graphql")
    assert job.run(INPUTS) == "success"
    assert "::warning title=pytest-upskill::No comment on the pull request: " in job.log


def test_a_usage_error_is_in_summary_and_comment(
    make_job: MakeJob, api: Api, workspace: Path
) -> None:
    api.add(f"{MARKER}\n## ✅ Skills")
    job = make_job()
    assert job.run({**INPUTS, "skills": "no such folder"}) == "failure"
    (comment,) = api.comments
    assert "## ❌ No results: pytest exited with 4, a usage error\n" in comment["body"]
    assert "no such folder" in comment["body"]
    assert "❌ No results:" in job.summary.read_text()
    assert not (workspace / "no such folder").exists()


@pytest.mark.parametrize(
    ("args", "addopts"),
    [
        ("--collect-only", ""),
        ("", "--collect-only"),
        ("--help", ""),
        ("", "--markers"),
        ("--setup-plan", ""),
        ("--fixtures", ""),
        ("tests -k unit", ""),
    ],
)
def test_a_run_without_results_is_red(
    make_job: MakeJob, api: Api, workspace: Path, args: str, addopts: str
) -> None:
    (workspace / "tests").mkdir()
    (workspace / "tests/test_unit.py").write_text("def test_unit(): pass\n")
    ini = f'[tool.pytest.ini_options]\naddopts = "{addopts}"\n'
    (workspace / "pyproject.toml").write_text(ini)
    job = make_job()
    earlier = job.folder / "temp/pytest-upskill/skills"
    earlier.mkdir(parents=True)
    for name in ("comment.md", "results.json", "report.html"):
        (earlier / name).write_text(f"{MARKER}\n## ✅ Skills\n\n**Passed.**\n")
    assert job.run({**INPUTS, "args": args}) == "failure"
    assert job.steps["Test skills"].outputs["status"] == "1"
    (comment,) = api.comments
    assert comment["body"].startswith(f"{MARKER}\n## ❌ No")
    assert "❌" in job.summary.read_text()
    assert (
        "::error title=pytest-upskill::pytest exited with 0, but no case was tested"
        in job.log
    )
    assert not [
        file for file in job.artifact().iterdir() if "✅ Skills" in file.read_text()
    ]


def test_nothing_that_is_given_runs_as_a_script(
    make_job: MakeJob, workspace: Path
) -> None:
    evil = (
        "$(touch evil) `touch evil` ; touch evil & \n --skill-no-baseline '|' \"a b\""
    )
    job = make_job({**PULL, "title": evil})
    assert (
        job.run({**INPUTS, "args": evil.replace("\n", ""), "max-cost": "1"})
        == "failure"
    )
    assert not list(workspace.rglob("evil"))
    assert (
        "[command]pytest --skill-runs=3 '$(touch' 'evil)' '`touch' 'evil`' ';' touch"
        " evil" in job.log
    )
    job = make_job()
    assert job.run({**INPUTS, "name": "a\n## b"}) == "failure"
    assert "::error title=pytest-upskill::name: " in job.log
    assert job.steps["Test skills"].outcome == "skipped"
    assert job.steps["Save answers"].outcome == "skipped"


def test_a_folder_below_the_workspace_keeps_the_answers_of_its_rootdir(
    make_job: MakeJob, workspace: Path, api: Api
) -> None:
    below = workspace / "sub folder"
    shutil.copytree(workspace / "my skills", below / "my skills")
    shutil.copy(workspace / "a.json", below)
    job = make_job()
    inputs = {
        **INPUTS,
        "working-directory": "sub folder",
        "name": "sub",
        "comment": "true",
    }
    assert job.run(inputs) == "success", job.log
    assert (workspace / ".upskill").is_dir()
    (kept,) = job.cache()
    assert [path.name for path in kept.iterdir()] == ["1"]
    assert api.comments[0]["body"].startswith("<!-- pytest-upskill: sub -->\n## ✅ ")
    assert (job.artifact("sub") / "report.html").is_file()
    assert make_job().run({**INPUTS, "working-directory": ".."}) == "failure"


def test_a_cancelled_run_keeps_its_answers_and_posts_nothing(
    make_job: MakeJob, api: Api
) -> None:
    job = make_job()
    job.cancel_after = "Test skills"
    job.run(INPUTS)
    assert len(job.cache()) == 1
    assert (job.artifact() / "results.json").is_file()
    assert api.comments == []


def test_a_comment_that_calls_a_failed_run_passed_is_mended(tmp_path: Path) -> None:
    """As another plugin may fail a run after the comment was written."""
    comment = tmp_path / "comment.md"
    text = markdown_summary(made_run(passes=lambda _n, _m, arm, _r: arm == "skill"))
    assert text.startswith(f"{MARKER}\n## ✅ ")
    script = tmp_path / "pytest.py"
    script.write_text(
        "import sys\nopen('comment.md', 'w',"
        f" encoding='utf-8').write({text!r})\nsys.exit(3)\n"
    )
    load = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'ci')!r}); import run_skills; from"
        " pathlib"
    )
    call = (
        f"run_skills.run([sys.executable, {str(script)!r}], Path('.'),"
        " Path('comment.md'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{load} import Path; sys.exit({call})"],
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 3
    mended = comment.read_text("utf-8")
    assert mended.startswith(
        f"{MARKER}\n## ❌ pytest exited with 3, an internal error\n\n**Failed:** the"
        " log says why."
    )
    assert mended.endswith(text[-200:])


def test_a_quote_that_is_not_closed_is_an_error_before_anything_is_asked(
    make_job: MakeJob,
) -> None:
    job = make_job()
    assert job.run({**INPUTS, "args": "-k 'gate%0A"}) == "failure"
    assert job.steps["Plan"].outcome == "failure"
    told = (
        '::error title=pytest-upskill::args: No closing quotation in "-k \'gate%250A"'
    )
    assert told in job.log
    assert "Traceback" not in job.log


OWN = {"head_repository": {"full_name": "wick/deploy"}, "actor": {"login": "ann"}}
EVES = {**OWN, "head_repository": {"full_name": "eve/deploy"}, "event": "pull_request"}


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("pull_request_target", {"pull_request": FORK}),
        ("pull_request_target", {"pull_request": PULL}),
        ("issue_comment", {"issue": {"number": 12, "pull_request": {"url": "u"}}}),
        ("issue_comment", {"issue": {"number": 12}, "pull_request": PULL}),
        ("discussion_comment", {}),
        ("check_suite", {"check_suite": {}}),
        ("pull_request", {}),
        ("workflow_run", {"workflow_run": EVES}),
        ("workflow_run", {"workflow_run": {**EVES, "head_repository": None}}),
        ("workflow_run", {"workflow_run": EVES, "pull_request": PULL}),
        ("workflow_run", {"workflow_run": {**OWN, "event": "issue_comment"}}),
        ("workflow_run", {"workflow_run": {**OWN, "event": "workflow_run"}}),
        (
            "workflow_run",
            {
                "workflow_run": {
                    **OWN,
                    "event": "push",
                    "actor": {"login": "dependabot[bot]"},
                }
            },
        ),
        ("workflow_run", {}),
    ],
)
def test_events_that_may_run_the_code_of_forks_with_secrets_are_refused(
    make_job: MakeJob, name: str, event: dict[str, Any]
) -> None:
    job = make_job(GITHUB_EVENT_NAME=name)
    job.event = event
    assert job.run(INPUTS) == "failure"
    assert f"{name} would run code of forks with your secrets" in job.log
    assert {one for one, step in job.steps.items() if step.outcome == "success"} <= {
        "Set up Python"
    }


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("workflow_run", {"workflow_run": {**OWN, "event": "push"}}),
        ("workflow_dispatch", {}),
        ("pull_request_review", {"pull_request": PULL}),
    ],
)
def test_other_events_run(make_job: MakeJob, name: str, event: dict[str, Any]) -> None:
    job = make_job(GITHUB_EVENT_NAME=name)
    job.event = event
    assert job.run({**INPUTS, "comment": "false"}) == "success", job.log


def test_the_folder_of_the_pull_request_replaces_no_module_of_pip(
    make_job: MakeJob, workspace: Path, tmp_path: Path
) -> None:
    """It is not tested here: only what Python takes for pip."""
    for name in ("pip", "json", "shlex"):
        (workspace / f"{name}.py").write_text("open('evil', 'w')\n")
    job = make_job(PIP_NO_INDEX="1", HOME=str(tmp_path))
    job.run({**INPUTS, "version": "0.0.0.dev0"})
    assert "pytest-upskill==0.0.0.dev0" in job.steps["Install"].log
    assert not (workspace / "evil").exists()


@pytest.mark.parametrize(
    ("version", "extras", "wanted"),
    [
        ("", "", [str(ROOT)]),
        ("", "local", [f"{ROOT}[local]"]),
        ("1.2.3", "", ["pytest-upskill==1.2.3"]),
        (
            "1.2.3; touch evil",
            "local,vertex",
            ["pytest-upskill[local,vertex]==1.2.3; touch evil"],
        ),
    ],
)
def test_installing(
    make_job: MakeJob, tmp_path: Path, version: str, extras: str, wanted: list[str]
) -> None:
    """A program named python tells what it was called with."""
    fake = tmp_path / "bin/python"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nfor one in "$@"; do echo "<$one>"; done\n')
    fake.chmod(0o755)
    job = make_job(PATH=f"{fake.parent}:/usr/bin:/bin")
    job.run({**INPUTS, "version": version, "extras": extras})
    words = ["-P", "-m", "pip", "install", *wanted]
    assert job.steps["Install"].log.splitlines() == [f"<{word}>" for word in words]
    assert job.steps["Set up Python"].inputs == {"python-version": "3.13"}


@pytest.mark.parametrize("folded", [True, False])
def test_a_comment_that_is_too_long_is_cut_before_a_folded_case(
    api: Api, tmp_path: Path, folded: bool
) -> None:
    case_text = (
        f"<details><summary>é</summary>\n\n{'x' * 999}\n\n</details>"
        if folded
        else "é" * 999
    )
    text = "\n\n".join([f"{MARKER}\n## ❌ Skills", "**Failed:**", *[case_text] * 80])
    (tmp_path / "comment.md").write_text(text, encoding="utf-8")
    env = {
        "GITHUB_API_URL": api.url,
        "GITHUB_GRAPHQL_URL": f"{api.url}/graphql",
        "GITHUB_REPOSITORY": "wick/deploy",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_RUN_ID": "7",
        "GITHUB_TOKEN": "token",
        "ARTIFACT_URL": "",
        "INPUT_NAME": "skills",
        "PLAN_NUMBER": "12",
        "PLAN_NO_SECRETS": "",
        "PLAN_FOLDER": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    script = [sys.executable, str(ROOT / "ci/post_comment.py")]
    ran = subprocess.run(script, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    (comment,) = api.comments
    body = comment["body"]
    assert len(body) <= 65_536
    assert "The rest does not fit into a comment" in body
    assert body.splitlines()[-1].startswith("[Log](")
    assert body.count("<details>") == body.count("</details>")
    if folded:
        assert len(body) > 63_000
        assert body.startswith(f"{MARKER}\n## ❌ Skills\n\n**Failed:**")
