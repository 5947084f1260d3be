"""pytest-upskill eval and benchmark: upskill's flags, run through pytest."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.cli.commands.eval import pytest_arguments
from support.kit import write_script, write_skill

COMMAND = str(Path(sys.executable).with_name("pytest-upskill"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two skills, a model, and tests that have nothing to do with them."""
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "skills/gate")
    write_skill(tmp_path / "skills/other")
    write_script(tmp_path / "a.json")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_other.py").write_text("def test_other(): assert False")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nfilterwarnings = error\n")
    return tmp_path


def translated(*words: str) -> list[str]:
    given = make_parser().parse_args(words)
    given.for_pytest = []
    return pytest_arguments(given, {})


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("skills/gate", "skills/gate"),
        ("./skills/gate/", "skills/gate"),
        ("skills/gate/SKILL.md", "skills/gate/SKILL.md"),
        ("skills", "skills"),
        ("gate", "skills/gate"),
    ],
)
def test_a_skill_is_a_path_or_a_name(written: str, wanted: str) -> None:
    assert translated("eval", written) == ["--skill", wanted]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("eval gate -m haiku --model sonnet", "--model haiku --model sonnet"),
        ("eval gate --runs 5 --no-baseline", "--skill-runs 5 --skill-no-baseline"),
        ("eval gate --runs 3..12", "--skill-runs 3..12"),
        ("eval gate -t cases.json -v", "--skill-tests cases.json -v"),
        ("eval gate --tests cases.json --verbose", "--skill-tests cases.json -v"),
        ("eval gate --base-url http://here/v1", "--skill-base-url http://here/v1"),
        ("eval gate --runs-dir logs --log-runs", "--skill-runs-dir logs"),
        ("eval gate --no-log-runs", "--skill-no-history"),
        ("benchmark gate -m haiku -m opus", "--model haiku --model opus --skill-runs 3"),
        ("benchmark gate -m a --runs 7 -o out", "--model a --skill-runs 7 --skill-runs-dir out"),
        ("benchmark gate -m a --no-baseline", "--model a --skill-runs 3 --skill-no-baseline"),
    ],
)
def test_the_flags_of_upskill_become_those_of_pytest(words: str, wanted: str) -> None:
    assert shlex.join(translated(*words.split())) == f"--skill skills/gate {wanted}"


def test_a_name_is_looked_up_in_skills_dir(project: Path) -> None:
    (project / "skills").rename(project / "kept")
    (project / "upskill.config.yaml").write_text("skills_dir: ./kept")
    assert translated("eval", "gate") == ["--skill", "kept/gate"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["eval", "gone"], "gone: no such folder, and no skill of this name in skills"),
        (["eval", "no/where"], "no/where: no such file or folder"),
        (["eval", ""], "SKILL: it is empty"),
        (["eval", "g" * 5000], "no such folder"),
        (["eval", "gate", "--test-gen-model", "opus"], "--test-gen-model: not supported"),
        (["benchmark", "gate", "-m", "haiku", "--provider", "openai"], "--provider: not supported"),
    ],
)
def test_input_errors_are_status_2(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    told_in = capsys.readouterr()
    assert told in told_in.err
    assert told_in.out == ""


def test_a_benchmark_needs_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["benchmark", "gate"])
    assert caught.value.code == 2
    assert "-m/--model" in capsys.readouterr().err


def test_only_the_skill_is_tested_and_the_command_is_printed_first(project: Path) -> None:
    done = run("eval", "gate", "-m", "scripted:a.json")
    first, *rest = done.stdout.splitlines()
    assert first == "pytest --skill skills/gate --model scripted:a.json"
    assert (done.returncode, done.stderr) == (0, "")
    assert rest[-1].strip("=").startswith(" 1 passed in ")  # no warning either
    again = subprocess.run(
        [COMMAND.replace("pytest-upskill", "pytest"), *shlex.split(first)[1:]],
        capture_output=True,
        cwd=project,
        check=False,
    )
    assert again.returncode == 0


@pytest.mark.parametrize("workers", ["0", "2"])
def test_arguments_after_two_dashes_are_for_pytest(project: Path, workers: str) -> None:
    words = ["-m", "scripted:a.json", "--", "-n", workers, "--skill-json", "out file.json"]
    done = run("benchmark", "skills/gate", *words)
    assert done.returncode == 0
    told = f"--skill-runs 3 -n {workers} --skill-json 'out file.json'"
    assert done.stdout.splitlines()[0].endswith(told)
    records = json.loads((project / "out file.json").read_text())["records"]
    assert len(records) == 6  # three runs, with and without the skill


def test_the_exit_status_is_that_of_pytest(project: Path) -> None:
    write_script(project / "b.json", knows="No.")
    assert run("eval", "gate", "-m", "scripted:b.json").returncode == 1
    assert run("eval", "gate", "-m", "hiku").returncode == 4
    assert run("eval", "gate", "-m", "scripted:a.json", "--", "-k", "none").returncode == 5


def test_the_configured_model_is_asked_if_none_is_named(project: Path) -> None:
    (project / "upskill.config.yaml").write_text("eval_model: scripted:a.json")
    done = run("eval", "gate")
    assert done.returncode == 0
    assert "from upskill.config.yaml" in done.stdout


def test_an_output_encoding_without_some_characters_works(project: Path) -> None:
    write_skill(project / "skills/tür")
    done = subprocess.run(
        [COMMAND, "eval", "tür", "-m", "haiku", "--", "--collect-only"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("pytest --skill 'skills/t?r' --model haiku")
