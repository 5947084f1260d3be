"""``pytest-upskill report``: reports of files of results, shards made one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.plugin.pytest_options import FLAGS
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.writers import REPORTS, report_paths
from pytest_upskill.results.history import keep
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_bytes
from pytest_upskill.settings import Gates, Settings
from support.agent_runs import agent_run
from support.kit import write_skill
from support.made import made_run


def good(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def write(file: Path, results: RunResults) -> str:
    file.write_bytes(results_bytes(results))
    return str(file)


def part_of(results: RunResults, *numbers: int) -> RunResults:
    """The run of some of the cases."""
    names = {f"case-{number}" for number in numbers}
    return replace(
        results,
        tests=tuple(test for test in results.tests if test.case in names),
        records=tuple(record for record in results.records if record.case in names),
    )


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A skill of eight cases, run in two parts, and as a whole."""
    monkeypatch.chdir(tmp_path)
    whole = made_run(cases=8, passes=good)
    write(Path("whole.json"), whole)
    parts = {"one.json": (1, 3, 5, 7), "two.json": (0, 2, 4, 6)}
    return [
        write(Path(name), part_of(whole, *numbers)) for name, numbers in parts.items()
    ]


def test_shards_become_the_verdict_of_the_whole_run(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "whole.json"]) == 0
    whole = capsys.readouterr().out
    assert main(["report", *shards, "--json", "merged.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "written: merged.json"
    assert "gate · 8 cases × 1 run" in whole
    verdict = read_run(Path("merged.json")).verdicts[0]
    assert verdict == read_run(Path("whole.json")).verdicts[0]
    assert verdict.lift == 1.0


def test_a_missing_shard_is_reported_and_fails(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", shards[0], "--markdown", "one.md"]) == 0  # a run of its own
    assert "4 of 8 cases" in capsys.readouterr().out
    assert "4 of 8 cases" in Path("one.md").read_text()
    less = write(Path("less.json"), part_of(read_run(Path(shards[1])), 0, 2, 4))
    assert main(["report", shards[0], less]) == 1
    assert (
        "upskill: gate on haiku: 1 case missing from all files"
        in capsys.readouterr().out
    )
    assert main(["report", shards[0], less, "--subset"]) == 0


def test_two_answers_to_one_trial_are_refused(
    shards: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(shards[0]).read_text()
    Path("other.json").write_text(text.replace("Type gate up.", "Say gate up."))
    assert main(["report", shards[0], "other.json"]) == 2
    assert (
        "other.json: case-1 of gate on haiku (arm skill, run 1)"
        in capsys.readouterr().err
    )


def test_a_kept_run_has_what_its_json_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = keep(agent_run(cases=1), tmp_path / ".upskill/runs", 10**9)
    for name in ("last", file.name.removesuffix(".json.gz"), str(file)):
        main(["report", name, "--json", "run.json", "--transcripts", "t"])
        assert len(list(Path("t").rglob("*.jsonl"))) == 2
    assert main(["report", "run.json", "--transcripts", "u"]) == 2
    assert "only kept runs of agents have transcripts" in capsys.readouterr().err
    assert main(["report", "last~1"]) == 2
    assert "the history has 1 run" in capsys.readouterr().err


def test_pytest_has_an_option_for_the_reports_that_people_read() -> None:
    assert set(REPORTS) - FLAGS.keys() == {"transcripts_folder", "badge_folder"}
    assert not any(report_paths(Settings()).values())


@pytest.mark.parametrize(
    ("results", "args", "status", "said"),
    [
        (made_run(cases=8, passes=good), [], 0, ""),
        (made_run(cases=8), [], 1, "upskill: 1 failed"),
        (made_run(cases=8, passes=good), ["--min-lift", "0.9"], 0, ""),
        (
            made_run(cases=8, passes=good),
            ["--min-lift", "0.9", "--confident"],
            1,
            "upskill: gate on haiku: ",
        ),
        (
            made_run(cases=8, passes=good, gates=Gates(max_token_growth=0.5)),
            [],
            1,
            "upskill: gate on haiku: ",
        ),
        (
            made_run(cases=8, passes=good, gates=Gates(max_token_growth=0.5)),
            ["--min-pass-rate", "1"],  # in place of those of the run
            0,
            "",
        ),
    ],
)
def test_the_exit_status_says_whether_it_passed(
    results: RunResults,
    args: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", write(tmp_path / "run.json", results), *args]) == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ["--min-lift", "200"],
        ["--min-pass-rate", "x"],
        ["--max-token-growth", "inf"],
    ],
)
def test_a_bad_gate_is_a_usage_error(args: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report", "run.json", *args])
    assert caught.value.code == 2


def test_every_report_of_the_last_run_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == 2
    assert "the history has 0 runs" in capsys.readouterr().err

    write_skill(tmp_path / "skills/gate")
    results = made_run(cases=12, passes=good)
    keep(results, tmp_path / ".upskill/runs", 10**9)
    files = ["--html", "r.html", "--markdown", "r.md", "--json", "r.json"]
    assert main(["report", *files, "--badge", "badges", "--benchmark-md"]) == 0
    assert Path("r.md").read_text() == markdown_summary(results, [])
    assert "</html>" in Path("r.html").read_text("utf-8")
    assert Path("r.json").read_bytes() == results_bytes(results)
    assert Path("badges/gate.json").is_file()
    assert Path("skills/gate/BENCHMARK.md").is_file()


def test_an_unwritable_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write(tmp_path / "run.json", made_run(passes=good))
    assert main(["report", run, "--json", str(tmp_path)]) == 2
    assert (
        f"--json {tmp_path}: can't be written: is a directory"
        in capsys.readouterr().err
    )


def test_an_unwritable_file_leaves_the_rest_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write(tmp_path / "run.json", made_run(passes=good))
    new = tmp_path / "new/r.json"
    wanted = ["--html", str(tmp_path), "--markdown", str(tmp_path), "--json", str(new)]
    wanted[3] += "/run.json/r.md"
    assert main(["report", run, *wanted]) == 2
    shown = capsys.readouterr()
    assert f"written: {new}" in shown.out
    assert main(["report", run]) == 0
    assert shown.out.startswith(capsys.readouterr().out)
    assert [line.split(":")[1] for line in shown.err.splitlines()] == [
        f" --html {wanted[1]}",
        f" --markdown {wanted[3]}",
    ]
    assert new.is_file()


def test_two_reports_can_not_share_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write(tmp_path / "run.json", made_run(passes=good))
    one, same = str(tmp_path / "x"), str(tmp_path / "y/../x")
    assert main(["report", run, "--json", one, "--html", same]) == 2
    assert "--json uses the same file" in capsys.readouterr().err
    before = Path(run).read_bytes()
    (tmp_path / "hard").hardlink_to(run)
    for path in (run, str(tmp_path / "hard")):
        assert main(["report", run, "--html", path]) == 2
        assert "an input uses the same file" in capsys.readouterr().err
    assert main(["report", run, "--html", one, "--json", f"{one}/r.json"]) == 2
    assert "--json is below it" in capsys.readouterr().err
    assert Path(run).read_bytes() == before
    capsys.readouterr()
    other = str(tmp_path / "r.md")
    assert main(["report", run, "--json", one, "--markdown", other]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.endswith(f"written: {one}, {other}")


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    run = write(tmp_path / "run.json", made_run(passes=good))
    program = "import sys; from pytest_upskill.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "report", run],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "the output: can't be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("lacks", "reason"),
    [
        ({"records": ()}, "gate on haiku: can't pass: 6 cases not run"),
        ({"records": (), "tests": ()}, "can't pass: nothing was tested"),
        (
            {"interrupted": "-x", "lost": ("x",)},
            "interrupted: -x; 1 of 7 tests did not run",
        ),
        ({"untested": {"door": "no cases"}}, "door: can't pass: no cases"),
    ],
)
def test_a_report_of_nothing_does_not_pass(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lacks: dict[str, Any],
    reason: str,
) -> None:
    file = write(
        tmp_path / "r.json", replace(made_run(passes=lambda *_: True), **lacks)
    )
    assert main(["report", file, "--min-pass-rate", "0.1"]) == 1
    assert capsys.readouterr().out.endswith(f"upskill: {reason}\n")
