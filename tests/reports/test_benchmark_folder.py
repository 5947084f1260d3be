"""report --benchmark: what skill-creator's aggregator and viewer need,
and the guide's names.
"""

import json
import math
import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.benchmark_folder import (
    benchmark_places,
    folder_names,
    output_names,
)
from pytest_upskill.reports.writers import add_benchmark
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.records import Grade
from support.agent_runs import agent_run
from support.made import helps, made_record, made_run
from support.skill_creator import aggregated, read, viewed


def written(results: RunResults, folder: Path) -> Path:
    add_benchmark(folder, results)
    return folder / "iteration-1"


def test_one_skill_on_one_model_has_no_subfolders(tmp_path: Path) -> None:
    iteration = written(made_run(cases=1, runs=2), tmp_path)
    names = sorted(
        str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()
    )
    one = [
        f"iteration-1/eval-case-0/{arm}/{name}"
        for arm in ("with_skill", "without_skill")
        for name in (
            "eval_metadata.json",
            *(
                f"run-{run}/{file}"
                for run in (1, 2)
                for file in ("grading.json", "outputs/answer.md", "timing.json")
            ),
        )
    ]
    about = "iteration-1/eval-case-0/eval_metadata.json"
    assert names == sorted(
        [*one, about, "iteration-1/benchmark.json", "iteration-1/benchmark.md"]
    )
    assert read(iteration / "eval-case-0/eval_metadata.json") == {
        "eval_id": 1,
        "eval_name": "case-0",
        "prompt": "How do I open case-0?",
        "assertions": ["contains"],
    }
    run = iteration / "eval-case-0/with_skill/run-1"
    assert read(run / "timing.json") == {
        "total_tokens": 150,
        "duration_ms": 1250,
        "total_duration_seconds": 1.25,
        "executor_duration_seconds": 1.25,
    }
    grading = read(run / "grading.json")
    grade = {
        "text": "contains",
        "passed": True,
        "evidence": "'gate up' is in the answer",
    }
    assert grading["expectations"] == grading["assertion_results"] == [grade]
    assert grading["summary"] == {
        "passed": 1,
        "failed": 0,
        "total": 1,
        "pass_rate": 1.0,
    }
    assert (run / "outputs/answer.md").read_text() == "Type gate up."


def test_the_aggregator_finds_the_numbers_of_benchmark_json(tmp_path: Path) -> None:
    results = made_run(cases=7, runs=3)
    iteration = written(results, tmp_path)
    summary = read(iteration / "benchmark.json")["run_summary"]
    found = aggregated(iteration)
    assert list(found) == ["with_skill", "without_skill"]
    for configuration, numbers in found.items():
        for name, values in numbers.items():
            assert len(values) == 21
            assert summary[configuration][name] == {
                "mean": round(fmean(values), 4),
                "stddev": round(stdev(values), 4),
                "min": min(values),
                "max": max(values),
            }
    lift = fmean(found["with_skill"]["pass_rate"]) - fmean(
        found["without_skill"]["pass_rate"]
    )
    assert summary["delta"] == {
        "pass_rate": f"{lift:+.2f}",
        "time_seconds": "+0.0",
        "tokens": "+100",
    }


def test_the_viewer_finds_all_files(tmp_path: Path) -> None:
    results = made_run(cases=12, runs=2)
    iteration = written(results, tmp_path)
    runs = viewed(iteration)
    assert len(runs) == len(results.records)
    assert {run["prompt"] for run in runs[:4]} == {"How do I open case-0?"}
    benchmark = read(iteration / "benchmark.json")
    assert benchmark["metadata"] == {
        "skill_name": "gate",
        "skill_path": "skills/gate",
        "executor_model": "id-of-haiku",
        "analyzer_model": "pytest-upskill",
        "timestamp": "2026-01-02T03:04:05Z",
        "evals_run": list(range(1, 13)),
        "runs_per_configuration": 2,
    }
    first, *_ = benchmark["runs"]
    assert (first["eval_id"], first["eval_name"]) == (1, "case-0")
    assert (first["configuration"], first["run_number"]) == ("with_skill", 1)
    assert first["result"] == {
        "pass_rate": 0.0 if not helps(0, "", "skill", 1) else 1.0,
        "passed": 1,
        "failed": 0,
        "total": 1,
        "time_seconds": 1.25,
        "tokens": 150,
        "tool_calls": 0,
        "errors": 0,
    }
    # It lists the configurations of an eval in the order of its runs,
    # the skill's first.
    assert [run["configuration"] for run in benchmark["runs"][:4]] == [
        "with_skill"
    ] * 2 + ["without_skill"] * 2
    # These it multiplies, rounds and compares: each has to be a number.
    for statistics in (
        benchmark["run_summary"][arm] for arm in ("with_skill", "without_skill")
    ):
        assert all(
            math.isfinite(v) for stat in statistics.values() for v in stat.values()
        )
    assert float(benchmark["run_summary"]["delta"]["pass_rate"]) > 0
    assert benchmark["notes"][0].startswith(f"{results.verdicts[0].word}: ")


def test_assertions_are_distinct_and_the_same_in_every_run(tmp_path: Path) -> None:
    def record(arm: Any, *passed: bool) -> Any:
        names = [("contains", "up"), ("contains", "up"), ("judge", "It is kind.")]
        grades = [
            Grade(name, good, f"reason of {arm}", asks=asks)
            for (name, asks), good in zip(names, passed, strict=True)
        ]
        return made_record(
            "gate", "case-0", "haiku", arm, 1, checks=tuple(grades), passed=False
        )

    records = (
        record("baseline", False, False, True),
        record("skill", True, True, False),
    )
    iteration = written(replace(made_run(cases=1), records=records), tmp_path)
    texts = ["contains: up", "contains: up (2)", "It is kind."]
    runs = read(iteration / "benchmark.json")["runs"]
    assert [[e["text"] for e in run["expectations"]] for run in runs] == [texts, texts]
    assert read(iteration / "eval-case-0/eval_metadata.json")["assertions"] == texts
    assert [run["result"]["pass_rate"] for run in runs] == [0.6667, 0.3333]


def test_an_ungraded_trial_is_only_in_the_notes(tmp_path: Path) -> None:
    made = made_run(cases=2)
    lost = replace(
        made.records[0], outcome="errored", output=None, checks=(), error="no network"
    )
    iteration = written(replace(made, records=(lost, *made.records[1:])), tmp_path)
    run = iteration / "eval-case-0/without_skill/run-1"
    assert [file.name for file in run.rglob("*") if file.is_file()] == ["error.txt"]
    assert len(aggregated(iteration)["without_skill"]["pass_rate"]) == 1
    assert viewed(iteration)[1]["outputs"] == {"error.txt": "no network"}
    benchmark = read(iteration / "benchmark.json")
    assert len(benchmark["runs"]) == 3
    assert "case-0, without_skill, run 1: no network" in benchmark["notes"][-1]


def test_unknown_usage_is_left_out(tmp_path: Path) -> None:
    made = made_run(cases=1)
    records = tuple(replace(record, input_tokens=None) for record in made.records)
    iteration = written(replace(made, records=records), tmp_path)
    # And not how long the answer is
    assert aggregated(iteration)["with_skill"]["tokens"] == [0]
    benchmark = read(iteration / "benchmark.json")
    assert "tokens" not in benchmark["run_summary"]["with_skill"]
    assert set(benchmark["run_summary"]["delta"]) == {"pass_rate", "time_seconds"}


@pytest.mark.parametrize(
    ("arms", "names", "delta"),
    [
        (("skill",), ["with_skill"], {}),
        # Their aggregator sorts by name, and takes the second from the first.
        (("skill", "previous"), ["new_skill", "old_skill"], None),
        (
            ("baseline", "previous", "skill"),
            ["new_skill", "old_skill", "without_skill"],
            None,
        ),
    ],
)
def test_each_arm_has_its_configuration(
    tmp_path: Path, arms: Any, names: list[str], delta: Any
) -> None:
    iteration = written(made_run(arms=arms), tmp_path)
    summary = read(iteration / "benchmark.json")["run_summary"]
    assert list(summary) == [*names, "delta"]
    assert list(aggregated(iteration)) == names
    assert delta is None or summary["delta"] == delta


@pytest.mark.parametrize(
    ("more", "folders"),
    [
        ({}, [""]),
        ({"models": ("haiku", "hf:Org/Name")}, ["haiku", "hf-org-name"]),
        ({"skills": ("gate", "a/gate")}, ["gate", "a-gate"]),
        ({"skills": ("a", "b"), "models": ("c", "d")}, ["a/c", "a/d", "b/c", "b/d"]),
    ],
)
def test_each_skill_and_model_has_a_folder(more: Any, folders: list[str]) -> None:
    assert [place.folder for place in benchmark_places(made_run(**more))] == folders


def test_an_iteration_is_never_overwritten(tmp_path: Path) -> None:
    for number, results in enumerate(
        [made_run(), made_run(models=("a", "b")), made_run()], 1
    ):
        add_benchmark(tmp_path, results)
        assert (tmp_path / "iteration-2").exists() == (number == 3)
    (tmp_path / "iteration-11").mkdir()
    (tmp_path / "iteration-x").mkdir()
    add_benchmark(tmp_path, made_run())
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == [
        "a", "b", "iteration-1", "iteration-11", "iteration-12",
        "iteration-2", "iteration-x",
    ]  # fmt: skip
    (tmp_path / "b/iteration-7").mkdir()
    # The number is that of the run
    add_benchmark(tmp_path, made_run(models=("a", "b")))
    assert (tmp_path / "a/iteration-8").is_dir()
    assert (tmp_path / "b/iteration-8").is_dir()


def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def full(draft: Path, target: Path) -> Path:
        if target.name == "benchmark.md":
            raise OSError(28, "No space left on device")
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        add_benchmark(tmp_path, made_run())
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.text(), unique=True, max_size=8))
def test_folder_names_are_distinct_and_plain(names: list[str]) -> None:
    folders = folder_names(names)
    assert list(folders) == names
    assert len(set(folders.values())) == len(names)
    assert all(
        re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", folder) for folder in folders.values()
    )


@given(st.text(), st.text(), st.text())
def test_any_text_makes_files_that_can_be_read(
    name: str, answer: str, reason: str
) -> None:
    grades = (Grade("contains", False, reason, asks=reason),)
    record = made_record(
        "gate", name, "haiku", "skill", 1, output=answer, checks=grades
    )
    made = replace(made_run(cases=1), records=(replace(record, outcome="failed"),))
    (place,) = benchmark_places(made)
    files = dict(place.files)
    for path, text in files.items():
        assert not Path(path).is_absolute()
        assert ".." not in Path(path).parts
        if path.endswith(".json"):
            assert text.isascii()
            json.loads(text)
    html: str = cmarkgfm.github_flavored_markdown_to_html(files["benchmark.md"])
    assert html.count("<table>") == 1


def with_files(*files: AnswerFile, cases: int = 1) -> RunResults:
    made = agent_run(cases=cases)
    return replace(
        made, records=tuple(replace(one, files=files) for one in made.records)
    )


def test_an_agent_leaves_its_files(tmp_path: Path) -> None:
    made = with_files(
        AnswerFile.of("answer.md", b"not the answer"),
        AnswerFile.of("../../up.md", b"up"),
        AnswerFile.of("data/metrics.json", b"{}"),
        AnswerFile.of("metrics.json", b"{}"),
        AnswerFile("gone.md", None, 0, "", "deleted"),
    )
    iteration = written(made, tmp_path)
    assert viewed(iteration)[0]["outputs"] == {
        "answer.md": "Type gate up.",
        "answer-2.md": "not the answer",
        "up.md": "up",
        "data-metrics.json": "{}",
        "metrics-2.json": "{}",
    }
    grading = read(iteration / "eval-case-0/with_skill/run-1/grading.json")
    metrics = grading["execution_metrics"]
    assert (metrics["total_tool_calls"], metrics["total_steps"]) == (4, 5)
    (result,) = [
        run["result"]
        for run in read(iteration / "benchmark.json")["runs"]
        if run["configuration"] == "with_skill"
    ]
    assert result["tool_calls"] == 4


def test_nothing_ends_the_script_that_the_viewer_puts_texts_into(
    tmp_path: Path,
) -> None:
    bad = "</ScRipt><script>alert(1)</script><!--"
    made = with_files(
        AnswerFile.of("page.html", bad.encode()), AnswerFile.of("a.py", bad.encode())
    )
    grade = Grade("judge", False, f'{bad} "', asks=bad)
    records = [replace(one, output=bad, checks=(grade,)) for one in made.records]
    records[0] = replace(records[0], outcome="errored", error=bad)
    questions = dict.fromkeys(made.questions, bad)
    iteration = written(
        replace(made, records=tuple(records), questions=questions), tmp_path
    )
    ending = re.compile("</?script|<!--", re.IGNORECASE)
    runs = viewed(iteration)
    assert runs[0]["outputs"]["page.html.htm"] == bad.encode()  # offered as a download
    assert runs[0]["outputs"]["a.py.bin"] == bad.encode()
    for run in runs:
        texts = [text for text in run["outputs"].values() if isinstance(text, str)]
        assert not ending.search("\n".join([*texts, run["prompt"], *run["assertions"]]))
    for file in iteration.rglob("*.json"):
        assert not ending.search(json.dumps(read(file)))
    benchmark = read(iteration / "benchmark.json")
    # It stands in an attribute, too.
    assert not any(
        '"' in e["evidence"] for run in benchmark["runs"] for e in run["expectations"]
    )


def test_pytest_finds_nothing_to_run_among_outputs(tmp_path: Path) -> None:
    """Nor doctests: it takes test*.txt for some."""
    texts = {
        "test_a.py": "left-test_a.py.txt",
        "sub/a_test.py": "left-sub-a_test.py.txt",
        "Conftest.py": "left-Conftest.py.txt",
        "test_a.txt": "left-test_a.txt.txt",
        "sub/conftest.py": "sub-conftest.py",
        "pytest.ini": "left-pytest.ini.txt",
        "plain.py": "plain.py",
    }
    made = with_files(*[AnswerFile.of(name, b">>> 1 / 0") for name in texts])
    iteration = written(made, tmp_path)
    assert set(viewed(iteration)[0]["outputs"]) == {"answer.md", *texts.values()}
    names = {file.name for file in iteration.rglob("*")}
    assert not any(
        fnmatch(name, "test*") or fnmatch(name, "*_test.py") for name in names
    )


def test_a_file_that_gets_another_name_hides_none(tmp_path: Path) -> None:
    names = ["test_a.py", "left-test_a.py.txt"]
    made = with_files(*[AnswerFile.of(name, name.encode()) for name in names])
    outputs = written(made, tmp_path).rglob("*test_a*")
    assert {file.read_text() for file in outputs} == {*names}


def test_numbers_of_evals_are_kept(tmp_path: Path) -> None:
    made = made_run(cases=2)
    ids = {"case-0": "0", "case-1": "12"}
    named = replace(
        made,
        records=tuple(replace(one, case=ids[one.case]) for one in made.records),
        questions={
            ("gate", ids[case]): text for (_, case), text in made.questions.items()
        },
    )
    iteration = written(named, tmp_path)
    about = [
        read(iteration / f"eval-{number}/eval_metadata.json") for number in (0, 12)
    ]
    assert [one["eval_id"] for one in about] == [0, 12]
    assert about[1]["eval_name"] == "12: How do I open case-1?"
    assert read(iteration / "benchmark.json")["metadata"]["evals_run"] == [0, 12]


@given(st.lists(st.text(), unique=True, max_size=8))
def test_names_of_outputs_are_distinct_and_plain(paths: list[str]) -> None:
    names = output_names(dict.fromkeys(paths, ""))
    assert list(names) == paths
    assert len({name.casefold() for name in names.values()}) == len(paths)
    for name in names.values():
        assert re.fullmatch(r"[\w \[\].-]+", name, re.ASCII)
        assert name not in (".", "..", "answer.md", "metrics.json")
        assert len(name) < 130
