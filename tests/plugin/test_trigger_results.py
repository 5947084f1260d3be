"""What comes of triggers in a run: the summary, gates, accepted results and files."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run_file import read_run
from support.accepted_project import accepted_names
from support.pages import page_words
from support.runs import SkillRun, run_skills

QUERIES = {
    "Fill in this form": True,
    "Complete the tax form": True,
    "Sign the contract": True,
    "What is the capital of France?": False,
    "Write a haiku": False,
}
MODEL = """
from pathlib import Path
from pytest_upskill import Answer, ToolCall

def answer(question):
    text = question.messages[-1][1]
    for line in Path(__file__).with_name("opens.txt").read_text().splitlines():
        words, _, names = line.partition(":")
        if words in text:
            name = (names.split(",") * 9)[question.run - 1]
            if name == "error":
                raise RuntimeError("the model broke")
            call = ToolCall("1", "skill", {"name": name})
            return Answer("", calls=(call,)) if name else "No."
    return "hi"
"""
ALL = "Fill:pdf\ntax:pdf\nSign:pdf\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    for name, about in {"pdf": "Fill in forms.", "docs": "Write contracts."}.items():
        folder = pytester.mkdir(name)
        text = f"---\nname: {name}\ndescription: {about}\n---\nDo it.\n"
        (folder / "SKILL.md").write_text(text)
    pytester.path.joinpath("pdf/evals").mkdir()
    write_queries(pytester, QUERIES)
    pytester.path.joinpath("model.py").write_text(MODEL)
    opens(pytester, ALL)
    return pytester


def write_queries(pytester: pytest.Pytester, queries: dict[str, bool]) -> None:
    listed = [
        {"query": query, "should_trigger": should} for query, should in queries.items()
    ]
    pytester.path.joinpath("pdf/evals/triggers.json").write_text(json.dumps(listed))


def write_case(pytester: pytest.Pytester, *more: str) -> None:
    cases = [
        {"id": name, "input": f"Say hi, {name}", "expected": {"contains": ["hi"]}}
        for name in ("greet", *more)
    ]
    pytester.path.joinpath("pdf/skill_meta.json").write_text(
        json.dumps({"cases": cases})
    )


def opens(pytester: pytest.Pytester, text: str) -> None:
    """Which skill the model opens for which words."""
    pytester.path.joinpath("opens.txt").write_text(text)


def run(pytester: pytest.Pytester, *args: str) -> SkillRun:
    options = ("--skill-with", "docs", "--skill-fresh")
    return run_skills(
        pytester, "scripted:model.py:answer", *options, *args, skill="pdf"
    )


def triggers(run: SkillRun) -> dict[str, Any]:
    [row] = run.report["summary"]
    found: dict[str, Any] = row
    return found


def accepted() -> list[str]:
    return accepted_names(Path("pdf"), "scripted:model.py:answer")


def test_a_run_of_triggers_alone_passes_and_all_files_have_them(
    project: pytest.Pytester, workers: str
) -> None:
    names = {"html": "r.html", "markdown": "r.md"}
    files = [f"--skill-{kind}={name}" for kind, name in names.items()]
    finished = run(project, *files, "--junitxml", "r.xml", "-n", workers)
    assert (finished.status, finished.outcomes) == (0, {"passed": 5})
    row = triggers(finished)
    shares = (row["recall"]["rate"], row["false_alarms"]["rate"])
    assert (shares, row["agent"]) == ((1, 0), "chat")
    [summary] = finished.report["trigger_summaries"]
    assert {query["query"] for query in summary["queries"]} == set(QUERIES)
    assert finished.gate["passed"] is None
    assert "nothing was tested" not in finished.screen
    assert "opened in 3 of 3 that need it" in page_words(
        Path("r.html").read_text("utf-8")
    )
    assert re.search(r"\| +100% \| +0% \|", Path("r.md").read_text())
    junit = Path("r.xml").read_text()
    assert "trigger-sign-the-contract" in junit
    assert 'answer:recall" value="1"' in junit
    assert 'name="upskill_tags" value="stays-closed"' in junit


def test_a_skill_that_is_opened_instead_is_named(project: pytest.Pytester) -> None:
    opens(project, "Fill:pdf\ntax:pdf\nSign:docs\n")
    finished = run(project)
    assert finished.status == 1
    assert '"Sign the contract" (0 of 3)' in finished.screen
    assert "opened instead: docs in 3 trials" in finished.screen


@pytest.mark.parametrize(
    ("opened", "gate", "reason"),
    [
        (ALL, "--skill-min-recall=1", ""),
        (f"{ALL}haiku:,,pdf", "--skill-max-false-alarms=0.1", "17%"),
        (f"France:error\n{ALL}", "--skill-min-recall=0.1", "3 trials without a result"),
    ],
)
def test_gates_decide(
    project: pytest.Pytester, opened: str, gate: str, reason: str
) -> None:
    opens(project, opened)
    finished = run(project, gate)
    assert finished.status == (1 if reason else 0)
    assert finished.gate["passed"] is not bool(reason)
    assert reason in " ".join(finished.gate["reasons"])


def test_a_gate_without_queries_does_not_pass(project: pytest.Pytester) -> None:
    write_case(project)
    deselected = run(project, "--skill-min-recall", "0.1", "-m", "not trigger")
    assert deselected.status == 1
    assert deselected.gate["passed"] is False


@pytest.mark.parametrize(
    "workers_of_xdist", ["0", pytest.param("2", marks=pytest.mark.nightly)]
)
def test_gates_of_the_ini_file_are_for_what_is_selected(
    project: pytest.Pytester, workers_of_xdist: str
) -> None:
    write_case(project)
    opens(project, "Fill:pdf")
    project.makeini("[pytest]\nskill_min_lift = 0.1\nskill_min_recall = 0.9\n")
    parallel = ("-n", workers_of_xdist)
    shards = []
    for mark, words in {"trigger": "recall is 33%", "not trigger": "lift"}.items():
        [reason] = run(project, "-m", mark, *parallel).gate["reasons"]
        assert words in reason
        shards.append(Source(mark, read_run(project.path / "report.json")))
    assert len(merged(shards)[0].gate.reasons) == 2
    by_hand = run(project, "-m", "trigger", "--skill-min-lift", "0.1", *parallel)
    assert len(by_hand.gate["reasons"]) == 2


def test_queries_are_accepted_and_compared(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = ("-o", "skill_trigger_runs=5")
    opens(project, "Fill:pdf\ntax:pdf\n")
    assert run(project, "--skill-accept", *runs).outcomes == {"passed": 4, "xfailed": 1}
    assert len(accepted()) == 5
    again = run(project, *runs)
    assert (again.status, again.outcomes) == (0, {"passed": 4, "xfailed": 1})
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    opens(project, "Sign:pdf\ntax:pdf")
    worse = run(project, *runs)
    assert worse.outcomes == {"passed": 4, "failed": 1}
    assert "better than accepted:" in worse.screen
    assert "trigger-fill-in-this-form: 0 of 5 passed" in worse.gate["reasons"][0]
    assert "::error file=pdf/evals/triggers.json,line=1," in worse.screen
    assert re.search(r"\| +67% \| +0% \|", Path("summary.md").read_text())


def test_queries_that_always_opened_the_skill_regress(project: pytest.Pytester) -> None:
    run(project, "--skill-accept")
    opens(project, "Sign:pdf")
    worse = run(project)
    assert worse.outcomes == {"passed": 3, "failed": 2}
    assert [": 0 of 5 passed" in reason for reason in worse.gate["reasons"]] == [
        *(True, True)
    ]


def test_gone_and_changed_queries_are_told(project: pytest.Pytester) -> None:
    run(project, "--skill-accept")
    some = {query: should for query, should in QUERIES.items() if "Fill" not in query}
    write_queries(project, {**some, "Write a haiku": True})
    finished = run(project)
    assert finished.status == 1
    text = " ".join(finished.screen.split())
    assert "for this model now: trigger-fill-in-this-form (3 of 3)" in text
    assert "changed since accepted: trigger-write-a-haiku (3 of 3)" in text
    assert run(project, "-k", "tax").status == 0  # a part says nothing of the rest


def test_queries_of_a_file_that_is_gone(project: pytest.Pytester) -> None:
    write_case(project)
    both = run(project, "--skill-accept")
    assert both.outcomes == {"passed": 6}
    assert "accepted 6 cases in" in both.screen
    # A part says nothing of the rest
    assert run(project, "-m", "not trigger").status == 0
    Path("pdf/evals/triggers.json").unlink()
    gone = run(project)
    assert "trigger-complete-the-tax-form" in gone.gate["reasons"][0]
    run(project, "--skill-accept=lower")
    assert accepted() == ["greet"]


def test_a_run_of_all_cases_or_all_queries_tells_which_of_them_is_gone(
    project: pytest.Pytester,
) -> None:
    write_case(project, "wave")
    run(project, "--skill-accept")
    write_case(project)
    write_queries(
        project, {query: should for query, should in QUERIES.items() if should}
    )
    gone = {"not trigger": ["wave"], "trigger": ["capital", "haiku"]}
    for mark, names in gone.items():
        finished = run(project, "-m", mark)
        [reason] = finished.gate["reasons"]
        assert finished.status == 1
        assert [
            name for name in ("wave", "capital", "haiku") if name in reason
        ] == names
    assert run(project, "-k", "tax").status == 0
    run(project, "-m", "trigger", "--skill-accept=lower")
    cases = accepted()
    assert sorted(name for name in cases if not name.startswith("trigger-")) == [
        "greet",
        "wave",
    ]
    assert len(cases) == 5


def test_a_run_of_queries_alone_keeps_what_was_accepted_of_cases(
    project: pytest.Pytester,
) -> None:
    write_case(project)
    run(project, "--skill-accept")
    assert run(project, "--skill-accept", "-m", "trigger").status == 0
    assert len(accepted()) == 6
