"""pytest-upskill eval and benchmark: upskill's flags, run through pytest."""

import json
import shlex
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.cli.commands.eval import pytest_arguments
from support.kit import write_script, write_skill
from support.shell import COMMAND, Shell


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two skills, a model, and tests that have nothing to do with them."""
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "skills/gate")
    write_skill(tmp_path / "skills/other")
    write_script(tmp_path / "a.json")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_other.py").write_text("def test_other(): assert False")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nfilterwarnings = error\n"
    )
    return tmp_path


def translated(*words: str) -> list[str]:
    given = make_parser().parse_args(words)
    given.for_pytest = []
    *arguments, option, selected = pytest_arguments(given, {})
    assert (option, selected) == ("-m", "not trigger")
    return arguments


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
    assert translated("eval", written) == [f"--skill={wanted}"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("eval gate -m haiku --model sonnet", "--model haiku --model sonnet"),
        ("eval gate --runs 5 --no-baseline", "--skill-no-baseline --skill-runs 5"),
        ("eval gate --skill-agent loop -m a", "--model a --skill-agent loop"),
        ("eval gate -t cases.json -v", "--skill-tests cases.json -v"),
        ("eval gate --tests cases.json --verbose", "--skill-tests cases.json -v"),
        ("eval gate --base-url http://here/v1", "--skill-base-url http://here/v1"),
        ("eval gate --runs-dir logs", "-o skill_runs_dir={here}/logs"),
        ("eval gate --no-log-runs", "-o skill_history=false"),
        (
            "benchmark gate -m haiku -m opus",
            "--model haiku --model opus --skill-runs 3",
        ),
        (
            "benchmark gate -m a --runs 7 -o out",
            "--model a --skill-runs 7 -o skill_runs_dir={here}/out",
        ),
        (
            "benchmark gate -m a --no-baseline",
            "--skill-no-baseline --model a --skill-runs 3",
        ),
    ],
)
def test_the_flags_of_upskill_become_those_of_pytest(words: str, wanted: str) -> None:
    wanted = wanted.format(here=Path.cwd())
    assert " ".join(translated(*words.split())) == f"--skill=skills/gate {wanted}"


def test_a_name_is_looked_up_in_skills_dir(project: Path) -> None:
    (project / "skills").rename(project / "kept")
    (project / "upskill.config.yaml").write_text("skills_dir: ./kept")
    assert translated("eval", "gate") == ["--skill=kept/gate"]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["eval", "gone"], "gone: no such file or folder, and no skill of this name"),
        (["eval", "no/where"], "no/where: no such file or folder"),
        (["eval", ""], "SKILL: must not be empty"),
        (["eval", "g" * 5000], "no such file or folder"),
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


def test_only_the_skill_is_tested_and_the_command_is_printed_first(
    project: Path, shell: Shell
) -> None:
    in_its_own_process = [COMMAND, "eval", "gate", "-m", "scripted:a.json"]
    done = shell.run(in_its_own_process, project)
    first, *rest = done.out.splitlines()
    assert (
        first == "pytest --skill=skills/gate --model scripted:a.json -m 'not trigger'"
    )
    assert (done.status, done.err) == (0, "")
    counts = [line.strip("=") for line in rest if line.endswith("=")][-1]
    assert counts.startswith(" 1 passed in ")  # no warning either
    assert shell.run(shlex.split(first), project).status == 0


def test_arguments_after_two_dashes_are_for_pytest(project: Path, shell: Shell) -> None:
    words = ["-m", "scripted:a.json", "--", "-n", "0", "--skill-json", "out file.json"]
    shown = shell.output(
        ["pytest-upskill", "benchmark", "skills/gate", *words], project
    )
    command = "--skill-runs 3 -m 'not trigger' -n 0 --skill-json 'out file.json'"
    assert shown.splitlines()[0].endswith(command)
    records = json.loads((project / "out file.json").read_text())["records"]
    assert len(records) == 6  # three runs, with and without the skill


def test_triggers_are_asked_only_if_marks_are_selected(
    project: Path, shell: Shell
) -> None:
    queries = [{"query": "Open it", "should_trigger": False}]
    (project / "skills/gate/evals").mkdir()
    (project / "skills/gate/evals/triggers.json").write_text(json.dumps(queries))
    words = [
        "pytest-upskill",
        "eval",
        "gate",
        "-m",
        "scripted:a.json",
        "--",
        "--skill-json=a",
    ]
    asked = dict[str, set[str]]()
    for marks in ("", "trigger", "trigger or not trigger"):
        shell.run([*words, *(["-m", marks] if marks else [])], project)
        tests = json.loads((project / "a").read_text())["tests"]
        asked[marks] = {test["kind"] for test in tests}
    assert asked == {
        "": {"case"},
        "trigger": {"query"},
        "trigger or not trigger": {"case", "query"},
    }


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["-m", "scripted:b.json"], 1),
        (["-m", "hiku"], 4),
        (["-m", "scripted:a.json", "--", "-k", "none"], 5),
    ],
)
def test_the_exit_status_is_that_of_pytest(
    project: Path, shell: Shell, words: list[str], status: int
) -> None:
    write_script(project / "b.json", knows="No.")
    assert (
        shell.run(["pytest-upskill", "eval", "gate", *words], project).status == status
    )


def test_the_configured_model_is_asked_if_none_is_named(
    project: Path, shell: Shell
) -> None:
    (project / "upskill.config.yaml").write_text("eval_model: scripted:a.json")
    assert "from upskill.config.yaml" in shell.output(
        ["pytest-upskill", "eval", "gate"], project
    )


def test_an_output_encoding_without_some_characters_works(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(project / "skills/tür")
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(pytest, "main", lambda _: 0)
    assert main(["eval", "tür", "-m", "haiku"]) == 0
    assert (
        written.getvalue()
        == b"pytest '--skill=skills/t?r' --model haiku -m 'not trigger'\n"
    )


def test_a_skill_without_cases_is_offered_the_command_that_writes_some(
    project: Path, shell: Shell
) -> None:
    (project / "skills/gate/skill_meta.json").unlink()
    words = ["-m", "big", "--base-url", "http://127.0.0.1:9/v1"]
    done = shell.run(["pytest-upskill", "eval", "gate", *words], project)
    command = (
        "pytest-upskill cases skills/gate --model big --base-url http://127.0.0.1:9/v1"
    )
    assert (done.status, f": {command}\n" in done.err) == (4, True), done.err
