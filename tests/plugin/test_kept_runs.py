"""skill_history and skill_runs_dir: every run with answers is kept, once."""

from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.results.history import runs
from pytest_upskill.results.run_file import read_run
from support.kit import commit_all, write_script, write_skill
from support.loopback import Fault, LoopbackServer
from support.usage import usage_error


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    write_skill(pytester.path / "skills/gate")
    return ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]


def folder(pytester: pytest.Pytester) -> Path:
    return pytester.path / ".upskill/runs"


def test_a_run_is_kept_once(
    pytester: pytest.Pytester, args: list[str], workers: str
) -> None:
    commit_all(pytester.path)
    result = pytester.runpytest_inprocess(
        *args, "-n", workers, "--skill-json", "run.json"
    )
    result.assert_outcomes(passed=1)
    (run,) = runs(folder(pytester))
    assert read_run(run.path).records == read_run(pytester.path / "run.json").records
    assert [(row.skill, row.lift) for row in run.head.summary] == [("gate", 1.0)]
    assert run.head.commit
    assert not run.head.commit.dirty
    assert "*" in (pytester.path / ".upskill/.gitignore").read_text().splitlines()


def test_failed_runs_and_replays_are_kept_too(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    write_script(pytester.path / "a.json", knows="No idea.")
    assert pytester.runpytest_inprocess(*args, "--skill-record", "a.jsonl").ret == 1
    assert pytester.runpytest_inprocess(*args, "--skill-replay", "a.jsonl").ret == 1
    assert [run.head.summary[0].skill_rate for run in runs(folder(pytester))] == [
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    "more",
    [
        *(["--collect-only"], ["-o", "skill_history=false"]),
        pytest.param(["--setup-plan"], marks=pytest.mark.nightly),
    ],
    ids="".join,
)
def test_collect_only_and_no_history_keep_nothing(
    pytester: pytest.Pytester, args: list[str], more: list[str]
) -> None:
    assert pytester.runpytest_inprocess(*args, *more).ret == 0
    assert not folder(pytester).exists()


def test_a_run_without_any_answer_is_not_kept(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Fault("status", 401)) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        pytester.runpytest_inprocess(*args).assert_outcomes(errors=1)
    assert not folder(pytester).exists()


def test_the_folder_can_be_chosen(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nskill_runs_dir = of-ini")
    (pytester.path / "sub").mkdir()
    monkeypatch.chdir(pytester.path / "sub")
    args = ["--skill", "../skills", "--model", "scripted:../a.json"]
    pytester.runpytest_inprocess(*args)
    assert len(runs(pytester.path / "of-ini")) == 1
    assert not folder(pytester).exists()


def test_the_size_of_the_history_is_limited(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    folder(pytester).mkdir(parents=True)
    old = folder(pytester) / "20200101T000000Z-aaaaaa.json.gz"
    for size, stays in ((1_500_000, True), (2_500_000, False)):
        old.write_bytes(b"x" * size)
        pytester.runpytest_inprocess(*args, "-o", "skill_history_size=2")
        assert old.exists() == stays
    assert "little" in usage_error(pytester, *args, "-o", "skill_history_size=little")


def test_a_folder_that_cannot_be_written_does_not_fail_the_run(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    (pytester.path / "file").write_text("no folder")
    result = pytester.runpytest_inprocess(*args, "-o", "skill_runs_dir=file")
    assert result.ret == 0
    message = [
        line for line in result.outlines if "could not keep this run in file: " in line
    ]
    assert len(message) == 1
    assert (pytester.path / "file").read_text() == "no folder"


def test_the_folder_of_upskill_config_yaml_counts_where_the_ini_file_names_none(
    pytester: pytest.Pytester, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (pytester.path / "upskill.config.yaml").write_text("runs_dir: kept\n")
    pytester.runpytest_inprocess(*args)
    assert len(list((pytester.path / "kept").iterdir())) == 1
    capsys.readouterr()
    assert main(["runs"]) == 0
    assert "scripted:a.json" in capsys.readouterr().out
    pytester.makeini("[pytest]\nskill_runs_dir = mine\n")
    pytester.runpytest_inprocess(*args)
    assert len(list((pytester.path / "mine").iterdir())) == 1
    assert len(list((pytester.path / "kept").iterdir())) == 1


def test_the_list_of_skills_has_the_last_run_of_each_model(
    pytester: pytest.Pytester, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytester.runpytest_inprocess(*args, "--skill-accept")
    capsys.readouterr()
    assert main(["list", "skills"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "last run scripted:a.json 100%, 0% without (20" in shown
    assert "edited since" not in shown
    assert "accepted" not in shown
    write_skill(pytester.path / "skills/gate", body="Another text.")
    main(["list", "skills"])
    assert "edited since" in " ".join(capsys.readouterr().out.split())
