"""Every command and flag that upskill has, or had in 0.1 and 0.2, has an answer here."""

import argparse
import json
import re
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.cli.commands.upskill_commands import pytest_arguments
from support.kit import BODY, write_script
from support.shell import Shell
from support.upskill_logs import logged, write_batch

# As on its command line.
TODAY = [
    "generate task -e in->out --example in->out --tool file#name",
    "generate task -f SKILLS --from SKILLS -m opus --model opus --test-gen-model sonnet",
    "generate task -o out --output out --no-eval --eval-model haiku",
    "generate task --runs-dir runs --log-runs",
    "generate task --no-log-runs",
    "eval SKILLS -t tests.json --tests tests.json -m haiku -m sonnet --model opus --runs 5",
    "eval SKILLS --no-baseline -v --verbose --log-runs --runs-dir runs --test-gen-model opus",
    "eval SKILLS --no-log-runs",
    "benchmark SKILLS -m haiku --model sonnet --runs 3 -t tests.json --test-gen-model opus",
    "benchmark SKILLS -m haiku -o out --output out -v --verbose",
    *(
        f"{command} {flag}"
        for command in ("generate task", "eval SKILLS", "benchmark SKILLS -m haiku")
        for flag in (
            "--executor jobs --artifact-repo me/data --max-parallel 4",
            "--jobs-timeout 2h --jobs-flavor cpu --jobs-secrets HF_TOKEN --jobs-namespace me",
            "--wait",
            "--no-wait",
        )
    ),
    "runs -d SKILLS --dir SKILLS -s gate --skill gate -m haiku --model haiku --csv out.csv",
    "runs --metric success",
    "runs --metric tokens",
    "list -d SKILLS --dir SKILLS -v --verbose",
]
EARLIER = [
    "generate task --trace trace.md --eval-provider openai --eval-base-url http://here/v1",
    "eval SKILLS --provider openai --base-url http://here/v1",
]


def test_its_flags_are_known(tmp_path: Path) -> None:
    parser = make_parser()
    for written in (*TODAY, *EARLIER):
        words = [str(tmp_path) if word == "SKILLS" else word for word in written.split()]
        assert isinstance(parser.parse_args(words), argparse.Namespace)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("eval SKILLS --provider openai", "--provider: not supported by pytest-upskill"),
        ("eval SKILLS --test-gen-model opus", "pytest-upskill cases SKILL"),
        ("generate task --eval-provider openai", "--eval-model openai:ID"),
        ("generate task --max-parallel 4", "while a server is busy"),
        ("eval SKILLS --executor jobs", "Runs are local"),
        ("benchmark SKILLS -m haiku --no-wait", "Runs are local"),
        ("generate task --jobs-flavor cpu-basic", "Runs are local"),
        ("delete gate --force", "Delete the folder of the skill"),
        ("ci --scope changed", "see docs/ci.md"),
    ],
)
def test_what_has_no_counterpart_says_what_to_use(
    written: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path) if word == "SKILLS" else word for word in written.split()]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, told in shown.err) == ("", True)


def test_the_number_of_runs_and_of_calls_at_once_may_be_in_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gate").mkdir()

    def translated(*words: str) -> list[str]:
        given = make_parser().parse_args(words)
        given.for_pytest = []
        return pytest_arguments(given, {})[1:]

    assert translated("eval", "gate", "--executor", "local") == []
    assert translated("eval", "gate", "--max-parallel", "4") == ["--skill-concurrency", "4"]
    assert translated("benchmark", "gate", "-m", "x")[2:] == ["--skill-runs", "3"]
    Path("upskill.config.yaml").write_text("num_runs: 2\nmax_parallel: 5\nexecutor: jobs\n")
    assert translated("eval", "gate") == ["--skill-runs", "2", "--skill-concurrency", "5"]
    assert translated("benchmark", "gate", "-m", "x")[2:4] == ["--skill-runs", "2"]
    assert translated("eval", "gate", "--runs", "7")[:2] == ["--skill-runs", "7"]


def test_a_trace_is_a_source() -> None:
    given = make_parser().parse_args(["generate", "task", "--trace", "trace.md"])
    assert given.source == Path("trace.md")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()  # parent folders may have runs, too
    write_batch(tmp_path / "runs", "2026_01_21_15_30", [logged(1, 1, arm="baseline"), logged(2, 3)])
    write_batch(tmp_path / "runs", "2026_01_22_15_30", [logged(n, 4) for n in (1, 2, 3)])
    return tmp_path / "runs"


def shown(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(words) == status
    return capsys.readouterr().out


@pytest.mark.usefixtures("runs")
def test_its_runs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "pytest-upskill runs --dir runs" in shown(capsys, "runs")
    head, _, newest, oldest = shown(capsys, "runs", "-d", "runs").splitlines()
    assert " ".join(head.split()) == "run when skill model cases without with lift tokens"
    assert newest.split()[2:] == ["gate", "haiku", "4", "-", "100%", "-", "100"]
    assert oldest.split()[2:] == ["gate", "haiku", "4", "25%", "75%", "+50", "100"]
    Path("upskill.config.yaml").write_text("runs_dir: ./runs")
    assert len(shown(capsys, "runs").splitlines()) == 4


@pytest.mark.usefixtures("runs")
def test_its_runs_are_plotted_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    plotted = shown(capsys, "runs", "-d", "runs", "--plot", "--metric", "success")
    assert plotted.startswith("gate on haiku: pass rate with the skill")
    assert "75% → 100% (+25 points)" in plotted
    assert main(["plot", "-d", "runs", "-s", "gate", "-m", "haiku"]) == 0
    told = capsys.readouterr()
    assert told.out == plotted
    assert told.err == "pytest-upskill plot is now: pytest-upskill runs --plot\n"
    assert "tokens of an answer" in shown(capsys, "plot", "-d", "runs", "--metric", "tokens")
    assert shown(capsys, "runs", "-d", "runs", "--csv", "out.csv") == "out.csv: 2 lines\n"
    assert len(Path("out.csv").read_text().splitlines()) == 3


def test_its_damaged_runs_are_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "2026_01_22_15_30/batch_summary.json").write_text("\x1b[31m{")
    lines = shown(capsys, "runs", "-d", "runs").splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("skipped, damaged: runs/2026_01_22_15_30/batch_summary.json: Inv")
    assert "\x1b" not in lines[-1]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("words", [["show", "last"], ["compare", "last~1", "2026_01_22"]])
def test_its_runs_have_no_cases_to_show(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "-d", "runs", *words]) == 2
    assert "a run of upskill, which has only totals" in capsys.readouterr().err


def test_the_page_has_every_command_and_flag() -> None:
    page = (Path(__file__).parents[2] / "docs/upskill.md").read_text()
    for written in [*TODAY, *EARLIER]:
        command, *words = written.split()
        assert f"`{command}" in page
        for flag in (word for word in words if word.startswith("--")):
            assert re.search(rf"{flag}\b", page), flag


def as_saved_today(question: str, **more: object) -> dict[str, object]:
    """upskill writes every key, also those that are not set."""
    unset = dict.fromkeys(("context", "expected", "output_file", "validator", "validator_config"))
    return {"input": question, **unset, "verifiers": [], **more}


def test_its_skills_run_as_it_saved_them(tmp_path: Path, shell: Shell) -> None:
    today, old = tmp_path / "skills/gate-keeping", tmp_path / "skills/Old Gate"
    for folder in (today, old):
        folder.mkdir(parents=True)
    head = "name: gate-keeping\ndescription: Gates: up and down\nallowed-tools: Bash, Read\n"
    (today / "SKILL.md").write_text(f"---\n{head}user-invocable: false\n---\n\n{BODY}")
    verifier = {"type": "contains", "name": None, "values": ["gate up"], "path": None}
    unset = {"text": None, "cmd": None, "config": None}
    tests = [
        as_saved_today("How?", context={"files": None}, expected={"contains": ["gate", "up"]}),
        as_saved_today("How, please?", verifiers=[verifier | unset]),
    ]
    metadata = {"version": "1.0", "generated_by": "sonnet", "license": None, "compatibility": None}
    text = json.dumps({"metadata": metadata, "tests": tests}, indent=2)
    (today / "skill_meta.json").write_text(text)
    # 0.1 wrote no frontmatter and no cases.
    (old / "SKILL.md").write_text(f"# gate\n\nOpen gates.\n\n## Instructions\n\n{BODY}")
    (tmp_path / "tests.json").write_text('[{"input": "How?", "expected": {"contains": "gate up"}}]')
    given = ["-m", write_script(tmp_path / "a.json"), "--", "-W", "default"]
    shown = shell.output(["pytest-upskill", "eval", "gate-keeping", *given], tmp_path)
    assert " 2 passed" in shown
    words = ["eval", "Old Gate", "-t", "tests.json", *given]
    shown = shell.output(["pytest-upskill", *words], tmp_path)
    assert " 1 passed" in shown
