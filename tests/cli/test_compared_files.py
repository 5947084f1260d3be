"""The command pytest-upskill runs compare, on files and on runs that were really
made.
"""

import json
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.results.history import runs
from pytest_upskill.results.run_file import results_bytes
from support.kit import write_script, write_skill
from support.made import made_run


def test_files_of_one_name_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "results.json").write_bytes(
            results_bytes(made_run(cases=12))
        )
    assert main(["runs", "compare", "before/results.json", "after/results.json"]) == 0
    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[:2]]
    assert names[0].startswith("before")
    assert names[1].startswith("after")


def test_two_real_runs_are_compared(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    write_script(pytester.path / "a.json", knows="No idea.")
    pytester.runpytest_inprocess(*args).assert_outcomes(failed=1)
    kept = runs(pytester.path / ".upskill/runs")
    order = sorted(kept, key=lambda run: run.path.stat().st_mtime_ns)
    capsys.readouterr()
    assert main(["runs", "compare", order[0].id, order[1].id, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pairs"][0]["change"]["lift"]["lift"] == -1
