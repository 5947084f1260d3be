"""The results say how to run one test again, as it was run."""

import shlex
from pathlib import Path

import pytest

from pytest_upskill.results.run_file import read_run
from support.kit import case, write_script, write_skill
from support.runs import run_skills

CASES = [case("Open?", "gate up", id="open"), case("Lift?", "gate up", id="lift")]


def commands(folder: Path) -> list[str]:
    results = read_run(folder / "r.json")
    return [results.rerun.command(test.nodeid) for test in results.tests]


def test_the_command_runs_just_this_test_with_the_same_options(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "my skills/gate", CASES)
    write_script(pytester.path / "a.json")
    chosen = ["--skill", "my skills", "--model", "scripted:a.json", "-k", "open"]
    shaping = ["--skill-runs", "3", "-o", "skill_case_threshold=0.5"]
    written = ["--skill-json", "r.json", "--skill-max-cost", "5", "-q"]
    pytester.runpytest_inprocess(*chosen, *shaping, *written)
    (command,) = commands(pytester.path)
    name, verbose, nodeid, *options = shlex.split(command)
    assert (name, verbose) == ("pytest", "-vv")
    assert options == shaping
    again = pytester.runpytest_inprocess(verbose, nodeid, *options)
    again.assert_outcomes(passed=1)


def test_the_command_works_where_pytest_was_called(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "my skills/gate", CASES)
    pytester.makeini("[pytest]")
    (pytester.path / "work").mkdir()
    write_script(pytester.path / "work/a.json")
    monkeypatch.chdir(pytester.path / "work")
    more = [
        "--skill",
        "../my skills",
        "--model",
        "scripted:a.json",
        "--skill-no-baseline",
    ]
    pytester.runpytest_inprocess(*more, "--skill-json", "r.json")
    first, _ = commands(pytester.path / "work")
    words = shlex.split(first)
    assert words[2].startswith("../my skills/gate/skill_meta.json::")
    assert words[3:] == ["--skill-no-baseline"]
    pytester.runpytest_inprocess(*words[1:]).assert_outcomes(passed=1)


def test_a_password_in_an_address_is_not_kept(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    model = write_script(pytester.path / "a.json")
    url = "http://me:hunter22@127.0.0.1:9/v1"
    run = run_skills(
        pytester, model, "--skill-base-url", url, "-o", "a_token=hush-of-mine"
    )
    assert "--skill-base-url" in run.report["rerun"]["options"]
    text = (pytester.path / "report.json").read_text()
    assert "hunter22" not in text
    assert "hush-of-mine" not in text
