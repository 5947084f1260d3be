"""The command pytest-upskill runs."""

import json
import re
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill._util.git import Commit
from pytest_upskill.cli import main
from pytest_upskill.results.history import keep, runs
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import read_run, results_bytes
from pytest_upskill.settings import Gates
from support.agent_runs import agent_run
from support.made import STARTED, helps, made_record, made_run
from support.pages import data_of

BIG = 10**9


def none_pass(_number: int, _model: str, _arm: str, _run: int) -> bool:
    return False


def later(minutes: int, **more: object) -> RunResults:
    commit = Commit(f"{minutes:040x}"[::-1], minutes == 1)
    started = STARTED + timedelta(minutes=minutes)
    return made_run(started=started, commit=commit, **more)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs: gate on two models, gate and door on one, and gate again, worse."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".upskill/runs"
    keep(later(0, models=("haiku", "opus"), cases=12), folder, BIG)
    keep(later(1, skills=("gate", "door"), cases=12), folder, BIG)
    keep(later(2, cases=12, passes=none_pass), folder, BIG)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *args: str, status: int = 0) -> str:
    assert main(["runs", *args]) == status
    return capsys.readouterr().out


def test_an_unknown_subcommand_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["runs", "compar", "a", "b"])
    assert "argument COMMAND: invalid choice: 'compar'" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_a_run_alone_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "last~1") == shown(capsys, "show", "last~1")
    assert main(["runs", "foo"]) == 2
    assert "foo: no such run" in capsys.readouterr().err


def test_runs_are_listed_newest_first(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys).splitlines()
    kept = [run.id for run in runs(project / ".upskill/runs")]
    ids = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]
    assert ids == [run_id.rpartition("-")[2] for run_id in kept]
    assert len(lines) == 2 + 5
    assert "\x1b" not in "".join(lines)


def test_the_history_of_a_parent_folder_is_found(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shown(capsys)
    (project / "a/b").mkdir(parents=True)
    monkeypatch.chdir(project / "a/b")
    assert shown(capsys) == whole
    assert shown(capsys, "--dir", "../../.upskill/runs") == whole


def test_an_empty_history_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(later(0), tmp_path / ".upskill/runs", BIG)  # of another project
    (tmp_path / "repository/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    assert "pytest --skill PATH" in shown(capsys)
    assert json.loads(shown(capsys, "--json"))["rows"] == []
    assert main(["runs", "--dir", "nowhere"]) == 2
    assert "--dir nowhere: no such folder" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("args", "pairs"),
    [
        (["--skill", "door"], [("door", "haiku")]),
        (["--skill", "d*", "--skill", "gate", "--model", "opus"], [("gate", "opus")]),
        (
            ["--model", "h*"],
            [(skill, "haiku") for skill in ("gate", "gate", "door", "gate")],
        ),
        (["-n", "1"], [("gate", "haiku")]),
        (["--skill", "window"], []),
    ],
)
def test_filters(
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    pairs: list[tuple[str, str]],
) -> None:
    rows = json.loads(shown(capsys, "--json", *args))["rows"]
    assert [(row["skill"], row["model"]) for row in rows] == pairs


@pytest.mark.usefixtures("project")
def test_no_match_and_older_runs_are_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "No run matches" in shown(capsys, "--skill", "window")
    assert "older runs: show them with -n 2" in shown(capsys, "-n", "1")
    assert "older runs: show them with -n 4" in shown(capsys, "-n", "2")
    assert "older" not in shown(capsys, "-n", "3")
    assert "older" not in shown(capsys, "-n", "1", "--skill", "door")


def test_of_a_run_with_many_rows_the_lowest_lifts_are_listed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def all_but_first(_number: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and model != "m0"

    models = [f"m{number}" for number in range(14)]
    keep(
        later(5, models=models, cases=1, passes=all_but_first),
        project / ".upskill/runs",
        BIG,
    )
    text = shown(capsys, "-n", "1")
    assert re.findall(r" (m\d+) ", text) == models[:12]
    assert "the 12 lowest lifts" in text


def test_a_damaged_run_is_skipped_and_reported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = runs(project / ".upskill/runs")[1]
    damaged.path.write_bytes(b"\x1f\x8bdamaged\x1b[31m")
    lines = shown(capsys).splitlines()
    assert len(lines) == 2 + 3 + 1
    assert lines[-1].startswith(
        f"skipped, damaged: .upskill/runs/{damaged.path.name}: "
    )
    assert "\x1b" not in lines[-1]
    data = json.loads(shown(capsys, "--json"))
    assert (len(data["rows"]), len(data["damaged"])) == (3, 1)
    for run in runs(project / ".upskill/runs"):
        run.path.write_bytes(b"")
    assert shown(capsys).splitlines()[0] == "No kept run can be read."
    assert main(["runs", "show", "last~1"]) == 2
    assert damaged.path.name in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_answers_can_not_harm_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b[31m\x9b31m\u202e\ud800"
    record = made_record(
        "gate", "case-0", "haiku", "skill", 1, passed=False, output=bad
    )
    keep(later(9, cases=1, records=(record,)), Path(".upskill/runs"), BIG)
    data = shown(capsys, "show", "last", "--json")
    assert data.isascii()
    assert json.loads(data)["records"][0]["output"] == bad


def test_show_prints_the_whole_run_as_json(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "again.json").write_text(shown(capsys, "show", "last~2", "--json"))
    assert (
        read_run(project / "again.json").records
        == read_run(runs(project / ".upskill/runs")[2].path).records
    )


def test_compare_takes_files_of_other_machines(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = made_run(cases=12, passes=helps)
    edited = [replace(test, digest="new") for test in made.tests[:2]]
    other = replace(
        made,
        tests=(*edited, *made.tests[2:11]),
        records=made.records[:-2],
        skills=tuple(replace(skill, digest="1" * 64) for skill in made.skills),
        model_ids={"haiku": "another"},
    )
    (project / "ci.json").write_bytes(results_bytes(other))
    text = shown(capsys, "compare", "ci.json", "last")
    assert text.startswith("ci.json ")
    assert "the skill was edited" in text
    last = runs(project / ".upskill/runs")[0].short
    assert f"left out: 1 case only in {last}\n" in text
    assert "left out: 2 cases edited" in text
    assert "the model was another and is now id-of-haiku" in text


def test_runs_with_nothing_in_common_are_reported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(later(9, skills=("window",)), project / ".upskill/runs", BIG)
    text = shown(capsys, "compare", "last~1", "last")
    assert "the runs share no tests of a skill on the same model" in text
    text = shown(capsys, "compare", "last~1", "last", "--fail-if-worse", status=1)
    assert text.endswith(
        "\nFailed: the runs share no tests of a skill on the same model.\n"
    )


def test_a_comparison_that_lacks_cases_does_not_pass(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project / ".upskill/runs"
    whole = later(8, cases=12, passes=helps)
    keep(whole, folder, BIG)
    keep(
        replace(later(9, cases=12, passes=helps), records=whole.records[:-4]),
        folder,
        BIG,
    )
    shown(capsys, "compare", "last~1", "last")
    text = shown(capsys, "compare", "last~1", "last", "--fail-if-worse", status=1)
    assert text.endswith("\nFailed: gate on haiku: 2 cases not answered in both.\n")
    edited = tuple(replace(test, digest="new") for test in whole.tests)
    keep(replace(later(10, cases=12, passes=helps), tests=edited), folder, BIG)
    text = shown(capsys, "compare", "last~2", "last", "--fail-if-worse", status=1)
    assert text.endswith("\nFailed: gate on haiku: no case in common.\n")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "args", [["show", "nope"], ["compare", "last", "last~9"], ["show", ""]]
)
def test_an_unknown_run_is_one_error(
    capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    assert main(["runs", *args]) == 2
    assert "pytest-upskill runs" in capsys.readouterr().err


@pytest.mark.parametrize("args", [["-n", "0"], ["-n", "x"]])
def test_a_bad_option_is_a_usage_error(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["runs", *args])
    assert caught.value.code == 2
    assert "usage: pytest-upskill runs" in capsys.readouterr().err


def test_show_has_facts_tables_failures_and_why_the_run_fails(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = made_record(
        "gate", "case-0", "haiku", "skill", 1, outcome="errored", error="busy"
    )
    whole = made_run(
        runs=3,
        passes=lambda number, *_: number != 1,
        gates=Gates(min_pass_rate=0.99),
        commit=Commit("abc" * 13 + "a", dirty=True),
        started=STARTED + timedelta(minutes=5),
    )
    run = replace(whole, records=(lost, *whole.records[1:]))
    keep(run, project / ".upskill/runs", BIG)
    text = shown(capsys, "show", "last")
    assert "commit abcabc" in text
    assert "with uncommitted changes" in text
    assert "pytest-upskill 1.2.3" in text
    assert "gate · 6 cases × 3 runs" in text
    assert "gate on haiku: case-1" in text
    assert "gate on haiku: case-0: busy" in text
    assert "\nFailed:\n" in text
    for reason in run.gate.reasons:
        assert reason in " ".join(text.split())


@pytest.mark.parametrize(
    ("tests", "more", "end"),
    [
        (5, {}, "Passed."),
        (2, {}, "Passed."),
        (5, {"interrupted": "Ctrl-C", "lost": ("x",)}, "1 of 6 tests did not run"),
    ],
)
def test_show_says_whether_a_run_is_whole_and_passed(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    tests: int,
    more: dict[str, Any],
    end: str,
) -> None:
    run = later(5, cases=5, passes=lambda *_: True, **more)
    run = replace(run, tests=run.tests[:tests], records=run.records[: 2 * tests])
    keep(run, project / ".upskill/runs", BIG)
    text = shown(capsys, "show", "last")
    assert text.rstrip().endswith(end)
    assert ("2 of 5 cases" in text) == (tests == 2)
    (row,) = json.loads(shown(capsys, "-n", "1", "--json"))["rows"]
    assert row["interrupted"] is bool(more)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("pair", "status"), [(("last~1", "last"), 1), (("last", "last~1"), 0)]
)
def test_compare_says_what_changed_and_fails_only_if_asked_and_worse(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    pair: tuple[str, str],
    status: int,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(capsys, "compare", *pair)
    rates = "83 → 0 %" if status else "0 → 83 %"
    assert re.search(rf"haiku +12 +{rates} .* {'worse' if status else 'better'}", text)
    assert f"10 {'fell: case-0 (100 → 0 %)' if status else 'rose'}" in text
    assert "door on haiku" in text
    assert "Failed" not in text
    assert max(map(len, text.splitlines())) <= 80

    text = shown(capsys, "compare", *pair, "--fail-if-worse", status=status)
    assert ("Failed: gate on haiku: " in text) == bool(status)
    options = ["--fail-if-worse", "--json"]
    data = json.loads(shown(capsys, "compare", *pair, *options, status=status))
    assert data["pairs"][0]["left_out"]["edited"] == 0


def test_compare_writes_a_page_with_both_runs_and_overwrites_no_input(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = runs(project / ".upskill/runs")[1::-1]
    text = shown(capsys, "compare", "last~1", "last", "--html", "both.html")
    assert f"both.html: {after.id} since {before.id}" in text
    values = data_of((project / "both.html").read_text("utf-8"))
    assert values["view"] == "changes"

    (project / "a.json").write_bytes(results_bytes(read_run(before.path)))
    assert main(["runs", "compare", "a.json", "last", "--html", "a.json"]) == 2
    assert "--html a.json: an input uses the same file" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_has_colours_and_no_name_harms_it(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    bad = "m\x1b[31m\u202e" + "long-name-" * 20
    folder = project / ".upskill/runs"
    for minutes in (6, 7):
        keep(later(minutes, models=(bad,), skills=(bad,), cases=12), folder, BIG)

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for args in ([], ["show", "last"], ["compare", "last~1", "last"]):
        monkeypatch.delenv("NO_COLOR", raising=False)
        painted = shown(capsys, *args)
        plain = re.sub(r"\x1b\[[\d;]*m", "", painted)
        monkeypatch.setenv("NO_COLOR", "1")
        assert shown(capsys, *args) == plain
        assert "\x1b" not in plain
        assert "\u202e" not in plain
        assert "m\\x1b" in plain
        assert max(map(len, plain.splitlines())) <= columns


def test_agents_are_found_by_their_label_and_by_their_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    keep(agent_run(cases=12, also=("haiku", "opus")), tmp_path / ".upskill/runs", BIG)
    rows = json.loads(shown(capsys, "-m", "haiku", "--json"))["rows"]
    assert [row["agent"] for row in rows] in (["loop", "chat"], ["chat", "loop"])
    (row,) = json.loads(shown(capsys, "-m", "loop/*", "--json"))["rows"]
    assert (row["agent"], row["model"]) == ("loop", "haiku")
    assert "loop/haiku" in shown(capsys)
    assert "loop/haiku" in shown(capsys, "show", "last")
