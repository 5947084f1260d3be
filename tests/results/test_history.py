"""The history of runs: written whole or not at all, listed without being unpacked,
pruned.
"""

import gzip
import json
import os
import re
import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.git import Commit
from pytest_upskill.errors import ResultsError
from pytest_upskill.results import run
from pytest_upskill.results.history import (
    KeptRun,
    default_folder,
    find,
    keep,
    newest,
    packed,
    read_head,
    runs,
    worth_keeping,
)
from pytest_upskill.results.run_file import read_run, results_text, results_values
from support.agent_runs import agent_run
from support.folders import new_folder
from support.made import STARTED, made_record, made_run, made_triggers

BIG = 10**9
PACKED = packed(made_run(cases=1))


def kept(folder: Path, count: int, size_limit: int = BIG) -> list[str]:
    """The ids of runs that start a minute apart, newest first."""
    for minutes in range(count):
        keep(made_run(started=STARTED + timedelta(minutes=minutes)), folder, size_limit)
    return [run.id for run in runs(folder)]


def test_a_run_is_named_by_its_start_and_reads_back_whole(tmp_path: Path) -> None:
    zone = timezone(timedelta(hours=2))
    results = made_run(started=datetime(2026, 11, 15, 10, 30, 12, tzinfo=zone))
    file = keep(results, tmp_path / "runs", BIG)
    assert re.fullmatch(r"20261115T083012Z-[0-9a-f]{6}\.json\.gz", file.name)
    assert results_text(read_run(file)) == results_text(results)
    assert (
        json.loads(gzip.decompress(file.read_bytes()))["versions"] == results.versions
    )
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("cases", [0, 1, 3])
def test_a_file_has_the_text_of_the_report(cases: int) -> None:
    run = made_run(cases=cases)
    report = json.loads(gzip.decompress(packed(run)))
    del report["tested"], report["failed"]  # keys of the head alone
    assert report == json.loads(json.dumps(results_values(run)))


def test_transcripts_are_kept_as_far_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = agent_run(cases=2)
    whole = read_run(keep(results, tmp_path, BIG))
    transcripts = [record.transcript for record in results.records]
    assert [record.transcript for record in whole.records] == transcripts
    size = sum(run._TURN_LENGTH + len(turn.text) for turn in transcripts[0])
    monkeypatch.setattr(run, "_MAX_TRANSCRIPTS_LENGTH", size)
    cut = read_run(keep(results, tmp_path, BIG))
    assert [record.transcript for record in cut.records] == [transcripts[0], (), (), ()]


def test_a_list_reads_only_the_head_of_a_file(tmp_path: Path) -> None:
    results = made_run(
        models=("haiku", "local"), cases=50, commit=Commit("abc", dirty=True)
    )
    file = keep(results, tmp_path, BIG)
    head, _, records = gzip.decompress(file.read_bytes()).partition(b"\n")
    both = gzip.compress(head + b"\n") + gzip.compress(records)
    file.write_bytes(both[:-20])  # the end is missing
    (run,) = runs(tmp_path)
    assert [row.model for row in run.head.summary] == ["haiku", "local"]
    assert run.head.summary[0].lift == results.rows[0].lift
    assert (run.head.started, run.head.commit) == (
        results.started,
        Commit("abc", dirty=True),
    )
    assert (run.head.summary[0].cases, run.head.summary[0].all_cases) == (50, 50)
    with pytest.raises(ResultsError, match="damaged"):
        read_run(file)


def test_a_run_of_a_subset_is_marked(tmp_path: Path) -> None:
    whole = made_run(cases=6)
    some = replace(whole, tests=whole.tests[:2], records=whole.records[:4])
    heads = [read_head(keep(run, tmp_path, BIG)) for run in (whole, some)]
    assert [head.summary[0].subset for head in heads] == [False, True]


def test_a_file_without_a_head_is_no_run_of_the_history(tmp_path: Path) -> None:
    file = tmp_path / "run.json.gz"
    file.write_bytes(gzip.compress(results_text(made_run()).encode()))
    with pytest.raises(ResultsError, match="not written as a run of the history"):
        read_head(file)


@given(st.binary(max_size=300), st.integers(0, len(PACKED)), st.integers(0, 50))
def test_a_damaged_file_is_a_results_error(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int, lost: int
) -> None:
    file = new_folder(tmp_path_factory) / "run.json.gz"
    file.write_bytes(PACKED[:at] + junk + PACKED[at + lost :])
    for read in (read_head, read_run):
        with suppress(ResultsError):
            read(file)


def test_an_infinite_number_is_a_results_error(tmp_path: Path) -> None:
    whole = keep(made_run(), tmp_path, BIG)
    text = gzip.decompress(whole.read_bytes())
    data, changed = re.subn(rb'"lift": [\d.]+', b'"lift": Infinity', text, count=1)
    assert changed
    whole.write_bytes(gzip.compress(data))
    damaged = results_text(made_run()).replace('"cost": 0.0015,', '"cost": Infinity,')
    (tmp_path / "other.json").write_text(damaged)
    with pytest.raises(ResultsError):
        read_head(whole)
    with pytest.raises(ResultsError, match="cost: must be a finite number"):
        read_head(tmp_path / "other.json")
    infinite = made_record("gate", "case-0", "haiku", "skill", 1, cost=float("inf"))
    with pytest.raises(ValueError, match=r"(?i)out of range"):
        keep(made_run(records=(infinite,)), tmp_path / "new", BIG)
    assert runs(tmp_path / "new") == []


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_names_of_skills_and_models_are_kept(
    tmp_path_factory: pytest.TempPathFactory, skill: str, model: str
) -> None:
    results = made_run(skills=(skill + "\ud800\0",), models=(model,), cases=1)
    head = read_head(keep(results, new_folder(tmp_path_factory), BIG))
    assert [(row.skill, row.model) for row in head.summary] == [
        (skill + "\ud800\0", model)
    ]


def test_names_are_unique_even_at_the_same_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = iter(["aaaaaa", "aaaaaa", "bbbbbb"])
    monkeypatch.setattr(
        secrets, "token_hex", lambda size: next(marks) if size == 3 else "draft"
    )
    files = [keep(made_run(cases=number), tmp_path, BIG) for number in (1, 2)]
    assert files[1].name.endswith("-bbbbbb.json.gz")
    assert [len(read_run(file).tests) for file in files] == [1, 2]


def test_two_writers_at_once_lose_no_run(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        files = list(
            pool.map(lambda n: keep(made_run(cases=n), tmp_path, BIG), range(1, 25))
        )
    assert [len(read_run(file).tests) for file in files] == list(range(1, 25))
    assert len(list(tmp_path.iterdir())) == 24


@pytest.mark.nightly
def test_two_processes_that_prune_keep_their_own_runs(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from support.made import made_run\n"
        "from pytest_upskill.results.history import keep\n"
        "for _ in range(20): assert keep(made_run(), Path(sys.argv[1]), 5000)\n"
    )
    command = [
        sys.executable,
        "-c",
        script,
        str(tmp_path),
        str(Path(__file__).parents[1]),
    ]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    left = runs(tmp_path)
    assert 0 < len(left) < 40
    assert all(run.head.summary for run in left)


def test_the_oldest_runs_beyond_the_size_limit_are_deleted(tmp_path: Path) -> None:
    size = keep(made_run(), tmp_path / "one", BIG).stat().st_size
    ids = kept(tmp_path / "runs", 6, size_limit=3 * size + size // 2)
    assert [int(run_id[11:13]) for run_id in ids] == [9, 8, 7]  # of minutes 4 to 9


def test_the_newest_run_and_this_one_stay_however_large(tmp_path: Path) -> None:
    assert len(kept(tmp_path, 3, size_limit=1)) == 1
    older = keep(made_run(started=STARTED), tmp_path, 1)
    left = [run.path for run in runs(tmp_path)]
    assert len(left) == 2
    assert older in left


def test_only_runs_are_deleted(tmp_path: Path) -> None:
    others = [
        "notes.json.gz",
        "20260102T030405Z-xyz.json.gz",
        "keep.draft",
        ".other.draft",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"x" * 9999)
        os.utime(tmp_path / name, (0, 0))
    kept(tmp_path, 3, size_limit=1)
    assert {file.name for file in tmp_path.iterdir()} > set(others)


def test_a_run_can_be_deleted_by_hand(tmp_path: Path) -> None:
    ids = kept(tmp_path, 3)
    runs(tmp_path)[1].path.unlink()
    assert [run.id for run in runs(tmp_path)] == [ids[0], ids[2]]
    assert runs(tmp_path / "nowhere") == []


def test_only_the_default_folder_has_a_gitignore(tmp_path: Path) -> None:
    keep(made_run(), default_folder(tmp_path), BIG)
    assert default_folder(tmp_path) == tmp_path / ".upskill/runs"
    assert "*" in (tmp_path / ".upskill/.gitignore").read_text().splitlines()
    keep(made_run(), tmp_path / "shared/runs", BIG)
    assert [file.name for file in (tmp_path / "shared").iterdir()] == ["runs"]


def some_runs(*ids: str) -> list[KeptRun]:
    return [KeptRun(run_id, Path(run_id)) for run_id in ids]


KNOWN = some_runs(
    "20261115T083012Z-1a2b3c", "20261115T083012Z-aaaaaa", "20261114T000000Z-bbbbbb"
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("last", 0),
        ("last~0", 0),
        ("last~2", 2),
        ("1a2b3c", 0),
        ("aaaaaa", 1),
        ("20261114", 2),
        ("20261115T083012Z-a", 1),
        ("20261115T083012Z-1a2b3c.json.gz", 0),
    ],
)
def test_a_run_is_found_by_id_or_last(text: str, number: int) -> None:
    assert find(KNOWN, text) is KNOWN[number]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("last~3", "last~3: the history has 3 runs"),
        (
            "20261115",
            "matches several runs: 20261115T083012Z-1a2b3c, 20261115T083012Z-aaaaaa",
        ),
        ("", "no such run in the history"),
        ("first\x1b[31m", r"first\x1b[31m: no such run in the history"),
    ],
)
def test_an_unknown_or_ambiguous_id_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ResultsError) as caught:
        find(KNOWN, text)
    assert problem in str(caught.value)


def test_a_short_id_is_the_end_of_the_id_if_unique(tmp_path: Path) -> None:
    for run_id in ("20260101T000000Z-aaaaaa", "20260102T000000Z-aaaaaa", KNOWN[0].id):
        (tmp_path / f"{run_id}.json.gz").touch()
    kept = runs(tmp_path)
    assert [run.short for run in kept] == ["1a2b3c", kept[1].id, kept[2].id]
    assert all(find(kept, run.short) is run for run in kept)


def test_the_last_results_are_the_newest_of_each_model(tmp_path: Path) -> None:
    for minutes, models in enumerate((["haiku", "opus"], ["haiku"], ["haiku"])):
        started = STARTED + timedelta(minutes=minutes)
        keep(
            made_run(skills=("gate", "door"), models=models, started=started),
            tmp_path,
            BIG,
        )
    runs(tmp_path)[0].path.write_bytes(b"damaged")
    found = newest(tmp_path)["door"]
    started_at = {model: last.run.head.started for model, last in found.items()}
    assert started_at == {"haiku": STARTED + timedelta(minutes=1), "opus": STARTED}
    assert {last.row.skill for last in found.values()} == {"door"}
    assert "window" not in newest(tmp_path)


def test_a_run_without_answers_is_not_kept() -> None:
    lost = made_record(
        "gate", "case-0", "haiku", "skill", 1, outcome="errored", error="no key"
    )
    answered = made_record("gate", "case-0", "haiku", "baseline", 1, passed=False)
    assert not worth_keeping(made_run(records=()))
    assert not worth_keeping(made_run(records=(lost,)))
    assert worth_keeping(made_run(records=(lost, answered)))


def test_a_run_of_triggers_alone_is_kept_with_its_recall(tmp_path: Path) -> None:
    only = made_triggers(["ooo", "---"], ["---"])
    assert worth_keeping(only)
    (row,) = read_head(keep(only, tmp_path, 10**9)).summary
    assert (row.skill, row.model, row.agent) == ("gate", "haiku", "claude")
    assert row.recall
    assert row.false_alarms
    assert (row.recall.rate, row.false_alarms.rate) == (0.5, 0.0)
    assert (row.cases, row.lift) == (0, None)
    both = made_triggers(["ooo", "---"], ["---"], only=False)
    (row,) = read_head(keep(both, tmp_path, 10**9)).summary
    assert row.recall
    assert (row.recall.rate, row.cases) == (0.5, 6)
    assert row.recall.interval.low < 0.5
