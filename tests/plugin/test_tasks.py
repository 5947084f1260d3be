"""Folders of tasks as a test set: what is collected, compared and counted."""

import shutil
from pathlib import Path

import pytest

from support.fake_docker import use_docker
from support.kit import write_skill
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_docker

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = f"scripted:{EXAMPLES}/harbour_tasks_model.py:answer"
LOOP = ("--skill-agent", "loop")
ORACLE = ("--skill-agent", "oracle")
DUES, BERTH = "tasks/dues/task.toml::dues", "tasks/berth/task.md::berth"


@pytest.fixture
def tasks(pytester: pytest.Pytester) -> Path:
    folder = pytester.path / "tasks"
    shutil.copytree(EXAMPLES / "harbour-tasks", folder)
    return folder


def play(pytester: pytest.Pytester, *args: str, model: str = MODEL) -> SkillRun:
    return run_skills(pytester, model, "--skill-allow-code", *args, skill="")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    result = pytester.runpytest("--collect-only", "-q", *args)
    return [line for line in result.outlines if "::" in line]


def outcomes(run: SkillRun) -> dict[str, str]:
    return {one["nodeid"]: one["outcome"] for one in run.report["outcomes"]}


@needs_docker
def test_each_task_is_compared_with_and_without_its_own_skills(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    run = play(pytester, str(tasks), *LOOP)
    assert run.status == 0
    row = run.summary
    assert (row["skill"], row["cases"]) == ("tasks", 2)
    assert (row["baseline_rate"], row["skill_rate"]) == (0, 1)
    scores = {(one["case"], one["arm"]): one["outcome"] for one in run.records}
    assert scores == {
        ("dues", "baseline"): "failed",
        ("dues", "skill"): "passed",
        ("berth", "baseline"): "failed",
        ("berth", "skill"): "passed",
    }
    assert list(outcomes(run)) == [f"{BERTH}[loop/{MODEL}]", f"{DUES}[loop/{MODEL}]"]
    [skill] = run.report["skills"]
    assert (skill["name"], skill["tokens"]) == ("tasks", 0)


@needs_docker
@pytest.mark.parametrize(
    "args",
    [pytest.param((), marks=pytest.mark.nightly), ("-n", "1")],
    ids=["alone", "xdist"],
)
def test_the_oracle_solves_them_all(
    pytester: pytest.Pytester, tasks: Path, args: tuple[str, ...]
) -> None:
    run = play(pytester, str(tasks), *ORACLE, *args)
    assert outcomes(run) == {f"{BERTH}[oracle]": "passed", f"{DUES}[oracle]": "passed"}


@needs_docker
def test_the_reward_is_the_score_the_verifier_says_why_and_it_can_run_again(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    solution = tasks / "dues/solution/solve.sh"
    solution.write_text(solution.read_text().replace("99", "98"))
    run = play(pytester, str(tasks), *ORACLE)
    assert (run.status, run.outcomes) == (1, {"passed": 1, "failed": 1})
    record = run.record(case="dues", arm="skill")
    assert [
        (one["check"], one["passed"], one["share"]) for one in record["checks"]
    ] == [("verifier", False, 0.75)]
    assert "/app/dues.csv has no line wool,99" in run.screen
    assert collected(pytester, str(tasks), *ORACLE, "--lf") == [f"{DUES}[oracle]"]


@needs_docker
def test_the_same_tasks_with_another_skill(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    write_skill(pytester.path / "other", [])
    args = ("--skill", "other", "--skill-tests", str(tasks))
    assert len(collected(pytester, *args, *LOOP, "--model", MODEL)) == 2
    run = play(pytester, *args, *LOOP, "-k", "dues")
    row = run.summary
    assert (row["skill"], row["cases"]) == ("other", 1)
    assert row["activation"]["count"] == 0


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (["tasks"], [BERTH, DUES]),
        (["--skill", "tasks"], [BERTH, DUES]),
        (["--skill", "."], [BERTH, DUES]),
        (["tasks/dues"], [DUES]),
        (["--skill", "tasks/dues"], [DUES]),
        (["tasks/berth/task.md"], [BERTH]),
        (["tasks/dues", "tasks/berth"], [BERTH, DUES]),
        (["tasks", "-m", "easy"], [DUES]),
        (["tasks", "-k", "berth"], [BERTH]),
    ],
    ids=" ".join,
)
def test_a_set_or_some_of_its_tasks(
    pytester: pytest.Pytester, tasks: Path, named: list[str], found: list[str]
) -> None:
    assert tasks.is_dir()
    assert collected(pytester, *named, *ORACLE) == [f"{task}[oracle]" for task in found]


def test_a_node_id_names_the_agent(pytester: pytest.Pytester, tasks: Path) -> None:
    assert tasks.is_dir()
    assert collected(pytester, f"{DUES}[oracle]") == [f"{DUES}[oracle]"]


def test_without_an_agent_nothing_is_collected_and_the_header_says_why(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    result = pytester.runpytest(str(tasks))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*tasks*--skill-agent*"])


def test_a_plain_completion_can_not_do_tasks(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    run = play(pytester, "--skill", str(tasks))
    assert run.status == 1
    assert "--skill-agent" in run.screen
    assert run.records == []


def test_broken_tasks_are_errors_with_their_files_and_others_run(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    for name in ("toml", "verifier", "skill", "gpu"):
        shutil.copytree(tasks / "dues", tasks / name)
    (tasks / "toml/task.toml").write_text('version = "1.0"\n[agent\n')
    (tasks / "verifier/tests/test.sh").unlink()
    (tasks / "skill/environment/skills/harbour-dues/SKILL.md").write_text("")
    (tasks / "gpu/task.toml").write_text("[environment]\ngpus = 1\n")
    result = pytester.runpytest(
        *(str(tasks), *ORACLE, "-k", "not dues and not berth", "-rs"),
        "--skill-allow-code",
    )
    result.assert_outcomes(errors=3, skipped=1, deselected=2)
    for text in (
        "it needs 1 GPU",
        "toml/task.toml:2: ",
        "verifier/task.toml:1: ",
        "SKILL.md",
    ):
        assert text in result.stdout.str()
    assert "NotAnswered" not in result.stdout.str()


def test_no_code_of_a_task_is_collected_or_imported(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    code = (
        "open('/'.join([*__file__.split('/')[:-1], 'ran']), 'w')\ndef test_it(): pass\n"
    )
    for name in (
        "conftest.py",
        "dues/conftest.py",
        "dues/tests/conftest.py",
        "dues/tests/test_a.py",
    ):
        (tasks / name).write_text(code)
    for trust in ((), ("--skill-allow-code",)):
        assert len(collected(pytester, str(tasks), *ORACLE, *trust)) == 2
        assert list(tasks.rglob("ran")) == []


def test_deeper_tasks_are_found_and_tests_beside_them_are_not_lost(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    deep = pytester.path / "deep"
    (deep / "a").mkdir(parents=True)
    shutil.copytree(tasks, deep / "a/tasks")
    code = "open('ran', 'w')\ndef test_it(): pass\n"
    (deep / "a/tasks/dues/tests/test_a.py").write_text(code)
    named = [f"deep/a/{BERTH}[oracle]", f"deep/a/{DUES}[oracle]"]
    assert collected(pytester, "deep", *ORACLE) == named
    (deep / "test_own.py").write_text("def test_own(): pass\n")
    assert collected(pytester, "deep", *ORACLE) == ["deep/test_own.py::test_own"]
    assert not (pytester.path / "ran").exists()
    (tasks / "test_own.py").write_text("def test_own(): pass\n")
    assert len(collected(pytester, "tasks", *ORACLE)) == 2
    header = pytester.runpytest("--collect-only", "tasks", *ORACLE).stdout.str()
    assert "1 test file beside tasks" in header
    assert len(collected(pytester, "tasks/dues", "tasks/test_own.py", *ORACLE)) == 2


def test_the_id_of_a_task_with_a_number_names_it_alone_too(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    shutil.copytree(tasks / "dues", tasks / "more/dues")
    second = "tasks/more/dues/task.toml::dues"
    assert f"{second}-2[oracle]" in collected(pytester, "tasks", *ORACLE)
    assert collected(pytester, f"{second}-2[oracle]") == [f"{second}[oracle]"]


@needs_docker
def test_a_task_without_skills_has_nothing_to_compare(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    shutil.rmtree(tasks / "dues/environment/skills")
    dockerfile = tasks / "dues/environment/Dockerfile"
    lines = dockerfile.read_text().splitlines()
    dockerfile.write_text("\n".join(line for line in lines if "skills" not in line))
    run = play(pytester, str(tasks / "dues"), *LOOP)
    row = run.summary
    assert {one["arm"] for one in run.records} == {"skill"}
    assert (row["baseline_rate"], row["skill_rate"], row["lift"]) == (None, 0, None)


@pytest.mark.nightly
@needs_docker
def test_workers_of_a_cluster_have_all_that_a_task_needs(
    pytester: pytest.Pytester, tasks: Path
) -> None:
    pytest.importorskip("distributed")
    with (tasks / "dues/environment/Dockerfile").open("a") as file:
        file.write("RUN touch made.txt\n")
    run = play(pytester, str(tasks), *LOOP, "--skill-cluster", "local:2")
    row = run.summary
    assert (row["cases"], row["baseline_rate"], row["skill_rate"]) == (2, 0, 1)


@pytest.mark.parametrize("agent", [LOOP, ORACLE])
def test_no_image_of_a_task_is_built_before_its_author_is_trusted(
    pytester: pytest.Pytester,
    tasks: Path,
    agent: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = use_docker(pytester.path, monkeypatch)
    result = pytester.runpytest(str(tasks), *agent, "--model", MODEL)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skill-allow-code: tasks needs an image, *"])
    assert not log.exists()
