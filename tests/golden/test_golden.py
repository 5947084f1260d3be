"""Golden runs: whole runs as a user types them,
compared with what they showed and wrote before.

Each folder here is a run: ``commands``, one per line; ``input``, the files that they
find, on top of those in ``shared``; and the outputs, the screen and the reports,
which ``make golden`` renews.
"""

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from golden.outputs import (
    difference,
    laid_out,
    masked_json,
    masked_text,
    renew,
    shortened,
)
from support.sandboxes import require_bwrap
from support.shell import Shell

HERE = Path(__file__).parent
RUNS = sorted(file.parent.name for file in HERE.glob("*/commands"))
ENVIRONMENT = {
    "COLUMNS": "80",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_DEFAULT_HASH": "sha1",
    **{f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-01-02T03:04:05Z" for who in ("AUTHOR", "COMMITTER")},
}
# Pytest heeds them, too
COLOURS = ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "BUILD_NUMBER")


@pytest.mark.usefixtures("short_pauses")
def set_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in list(os.environ):
        if variable.startswith("GIT_") or variable in COLOURS:
            monkeypatch.delenv(variable)
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))


@pytest.mark.parametrize("name", RUNS)
def test_run(
    name: str,
    shell: Shell,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    commands = (HERE / name / "commands").read_text(encoding="utf-8").splitlines()
    if any("bwrap" in command for command in commands):
        require_bwrap()
    folder = pytester.path
    set_environment(folder, monkeypatch)
    for source in (HERE / "shared", HERE / name / "input"):
        if source.exists():
            shutil.copytree(source, folder, dirs_exist_ok=True)
    screen = ""
    for command in commands:
        finished = shell.run(shlex.split(command), folder)
        screen += (
            f"$ {command}\n{finished.out}{finished.err}[exit status"
            f" {finished.status}]\n\n"
        )
    outputs = {"screen.txt": masked_text(screen, folder)}
    if (file := folder / "comment.md").exists():
        outputs["comment.md"] = masked_text(file.read_text(encoding="utf-8"), folder)
    if (file := folder / "report.json").exists():
        report = masked_json(json.loads(file.read_text(encoding="utf-8")), folder)
        if name == "three_hundred_cases":
            report = shortened(report)
        outputs["report.json"] = laid_out(report) + "\n"
    if pytestconfig.getoption("--renew", default=False):
        renew(HERE / name, outputs)
    elif changes := difference(HERE / name, outputs):
        pytest.fail(changes, pytrace=False)


def test_there_are_fourteen_runs_and_each_has_a_screen() -> None:
    assert len(RUNS) == 14
    assert all((HERE / name / "screen.txt").is_file() for name in RUNS)


def test_a_changed_output_fails_with_a_diff_until_it_is_renewed(tmp_path: Path) -> None:
    before = {"screen.txt": "same\n3 passed\n", "comment.md": "good\n"}
    renew(tmp_path, before)
    assert difference(tmp_path, before) == ""
    after = {"screen.txt": "same\n2 passed\n", "report.json": "{}\n"}
    lines = difference(tmp_path, after).splitlines()
    assert {"-3 passed", "+2 passed", " same", "-good", "+{}"} <= set(lines)
    assert f"make golden RUNS={tmp_path.name}" in lines[-1]
    renew(tmp_path, after)
    assert difference(tmp_path, after) == ""
    assert not (tmp_path / "comment.md").exists()


def test_times_dates_and_paths_are_masked_and_nothing_else(tmp_path: Path) -> None:
    text = (
        f"rootdir: {tmp_path}/x\n===== 3 passed in 61.20s (0:01:01) =====\n2026-01-02 3"
        " tokens\n"
    )
    wanted = "rootdir: FOLDER/x\n===== 3 passed in TIME =====\nDATE 3 tokens\n"
    assert masked_text(text, tmp_path) == wanted
    report = {
        "seconds": 1.5,
        "lift": 0.1 + 0.2,
        "tokens": 12,
        "date": None,
        "file": f"{tmp_path}",
    }
    assert masked_json(report, tmp_path) == {
        "seconds": "MASKED",
        "lift": 0.3,
        "tokens": 12,
        "date": None,
        "file": "FOLDER",
    }


def test_a_report_is_laid_out_with_a_line_for_each_record() -> None:
    records = [{"case": str(number), "answer": "x" * 120} for number in range(3)]
    report = {
        "gate": {"passed": True, "reasons": []},
        "records": records,
        "other": ["y" * 99],
    }
    text = laid_out(report)
    assert json.loads(text) == report
    assert [line[:12] for line in text.splitlines()] == [
        *("{", ' "gate": {"p', ' "records": ', *(['  {"case": "'] * 3), " ],"),
        *(' "other": [', '  "yyyyyyyyy', " ]", "}"),
    ]
