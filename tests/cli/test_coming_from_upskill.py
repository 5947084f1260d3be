"""Commands, flags, settings and skills of upskill work here."""

import argparse
import json
import re
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.cli.commands.eval import pytest_arguments
from support.kit import BODY, write_script
from support.shell import Shell

# As on its command line.
FLAGS = [
    "generate task -e in->out --example in->out --tool file#name",
    "generate task -f SKILLS --from SKILLS -m opus --model opus",
    "generate task -o out --output out --no-eval --eval-model haiku",
    (
        "eval SKILLS -t tests.json --tests tests.json -m haiku -m sonnet --model opus"
        " --runs 5"
    ),
    (
        "eval SKILLS --no-baseline -v --verbose --runs-dir runs --no-log-runs"
        " --max-parallel 4"
    ),
    "benchmark SKILLS -m haiku --model sonnet --runs 3 -t tests.json --max-parallel 4",
    "benchmark SKILLS -m haiku -o out --output out -v --verbose",
    "runs -d SKILLS --dir SKILLS -s gate --skill gate -m haiku --model haiku",
    "list SKILLS",
]


def test_its_flags_are_known(tmp_path: Path) -> None:
    parser = make_parser()
    for written in FLAGS:
        words = [
            str(tmp_path) if word == "SKILLS" else word for word in written.split()
        ]
        assert isinstance(parser.parse_args(words), argparse.Namespace)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("plot -d runs", "pytest-upskill runs"),
        ("delete gate --force", "Delete the folder of the skill"),
        ("ci --scope changed", "see docs/ci.md"),
    ],
)
def test_commands_without_a_counterpart_say_what_to_use(
    words: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert hint in capsys.readouterr().err


def test_the_number_of_runs_and_of_calls_at_once_may_be_in_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gate").mkdir()

    def translated(*words: str) -> list[str]:
        given = make_parser().parse_args(words)
        given.for_pytest = []
        return pytest_arguments(given, {})[1:-2]  # less the skill, and -m "not trigger"

    assert translated("eval", "gate", "--max-parallel", "4") == [
        "--skill-concurrency",
        "4",
    ]
    assert translated("benchmark", "gate", "-m", "x")[2:] == ["--skill-runs", "3"]
    Path("upskill.config.yaml").write_text(
        "num_runs: 2\nmax_parallel: 5\nexecutor: jobs\n"
    )
    at_once = ["--skill-concurrency", "5"]
    assert translated("eval", "gate") == [*at_once, "--skill-runs", "2"]
    benchmark = translated("benchmark", "gate", "-m", "x")
    assert benchmark == ["--model", "x", *at_once, "--skill-runs", "2"]
    assert translated("eval", "gate", "--runs", "7") == [*at_once, "--skill-runs", "7"]


def test_the_page_has_every_command_and_flag() -> None:
    page = (Path(__file__).parents[2] / "docs/coming-from.md").read_text()
    for written in FLAGS:
        command, *words = written.split()
        assert f"`{command}" in page
        for flag in (word for word in words if word.startswith("--")):
            assert re.search(rf"{flag}\b", page), flag


def as_saved_today(question: str, **more: object) -> dict[str, object]:
    """upskill writes every key, also those that are not set."""
    unset = dict.fromkeys(
        ("context", "expected", "output_file", "validator", "validator_config")
    )
    return {"input": question, **unset, "verifiers": [], **more}


def test_its_skills_run_as_it_saved_them(tmp_path: Path, shell: Shell) -> None:
    today, old = tmp_path / "skills/gate-keeping", tmp_path / "skills/Old Gate"
    for folder in (today, old):
        folder.mkdir(parents=True)
    head = (
        "name: gate-keeping\ndescription: Gates: up and down\nallowed-tools: Bash,"
        " Read\n"
    )
    (today / "SKILL.md").write_text(f"---\n{head}user-invocable: false\n---\n\n{BODY}")
    verifier = {"type": "contains", "name": None, "values": ["gate up"], "path": None}
    unset = {"text": None, "cmd": None, "config": None}
    tests = [
        as_saved_today(
            "How?", context={"files": None}, expected={"contains": ["gate", "up"]}
        ),
        as_saved_today("How, please?", verifiers=[verifier | unset]),
    ]
    metadata = {
        "version": "1.0",
        "generated_by": "sonnet",
        "license": None,
        "compatibility": None,
    }
    text = json.dumps({"metadata": metadata, "tests": tests}, indent=2)
    (today / "skill_meta.json").write_text(text)
    # 0.1 wrote no frontmatter and no cases.
    (old / "SKILL.md").write_text(f"# gate\n\nOpen gates.\n\n## Instructions\n\n{BODY}")
    (tmp_path / "tests.json").write_text(
        '[{"input": "How?", "expected": {"contains": "gate up"}}]'
    )
    given = ["-m", write_script(tmp_path / "a.json"), "--", "-W", "default"]
    shown = shell.output(["pytest-upskill", "eval", "gate-keeping", *given], tmp_path)
    assert " 2 passed" in shown
    words = ["eval", "Old Gate", "-t", "tests.json", *given]
    shown = shell.output(["pytest-upskill", *words], tmp_path)
    assert " 1 passed" in shown
