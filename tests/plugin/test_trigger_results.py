"""What comes of triggers in a run: the summary, gates, accepted results and files."""

import json
import re
from pathlib import Path

import pytest

from support.kit import gates

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
            return Answer("", calls=(ToolCall("1", "skill", {"name": name}),)) if name else "No."
    return "hi"
"""
ALL = "Fill:pdf\ntax:pdf\nSign:pdf\n"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("COLUMNS", "80")
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
    listed = [{"query": query, "should_trigger": should} for query, should in queries.items()]
    pytester.path.joinpath("pdf/evals/triggers.json").write_text(json.dumps(listed))


def opens(pytester: pytest.Pytester, text: str) -> None:
    """Which skill the model opens for which words."""
    pytester.path.joinpath("opens.txt").write_text(text)


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    options = ("--skill-with", "docs", "--model", "scripted:model.py:answer", "--skill-fresh")
    wanted = () if "--skill-triggers" in args else ("--skill-triggers", "only")
    return pytester.runpytest("--skill", "pdf", *options, *wanted, *args)


def test_a_run_of_triggers_alone_passes_and_reads_well(
    project: pytest.Pytester, workers: str
) -> None:
    result = run(project, "-n", workers)
    assert result.ret == 0
    shown = result.stdout.str()
    assert "triggers · 3 queries that need pdf, 2 that don't × 3 runs" in shown
    assert "opened in 3 of 3 that need it" in shown
    assert "without an agent" in shown
    assert "nothing was tested" not in shown


def test_a_skill_that_is_opened_instead_is_named(project: pytest.Pytester) -> None:
    opens(project, "Fill:pdf\ntax:pdf\nSign:docs\n")
    result = run(project)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ['  not opened for: "Sign the contract" (0 of 3)', "  opened instead: docs in 3 trials"]
    )


@pytest.mark.parametrize(
    ("opened", "options", "last"),
    [
        (ALL, ["--skill-min-recall", "1", "--skill-max-false-alarms", "0"], ""),
        (
            "Fill:pdf\ntax:,pdf,pdf\nSign:pdf\n",
            ["--skill-min-recall", "0.9"],
            "recall is 89% (minimum 90%)",
        ),
        (
            f"{ALL}haiku:,,pdf",
            ["--skill-max-false-alarms", "0.1"],
            "share of false alarms is 17% (maximum 10%)",
        ),
        (
            ALL,
            ["--skill-min-recall", "0.5", "--skill-confident"],
            "lowest likely recall is 44% (minimum 50%)",
        ),
        (
            f"France:error\n{ALL}",
            ["--skill-min-recall", "0.1"],
            "can't pass: 3 trials without a result",
        ),
    ],
)
def test_gates_decide(project: pytest.Pytester, opened: str, options: list[str], last: str) -> None:
    opens(project, opened)
    result = run(project, *options)
    assert result.ret == (1 if last else 0)
    if last:
        assert gates(result) == [f"pdf on scripted:model.py:answer: {last}"]


def test_a_gate_without_queries_does_not_pass(project: pytest.Pytester) -> None:
    cases = {"cases": [{"id": "greet", "input": "Say hi", "expected": {"contains": ["hi"]}}]}
    project.path.joinpath("pdf/skill_meta.json").write_text(json.dumps(cases))
    result = run(project, "--skill-triggers", "off", "--skill-min-recall", "0.1")
    assert result.ret == 4
    deselected = run(
        project, "--skill-triggers", "also", "--skill-min-recall", "0.1", "-k", "greet"
    )
    assert deselected.ret == 1
    assert gates(deselected) == ["pdf: can't pass: no query was tested"]


def test_gates_of_cases_and_a_run_of_triggers_alone(project: pytest.Pytester) -> None:
    result = run(project, "--skill-min-lift", "0.1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--skill-min-lift*can't be combined with --skill-triggers*"])
    project.makeini("[pytest]\nskill_min_lift = 0.1\n")  # is for the cases
    assert run(project).ret == 0


def test_gates_have_ini_twins(project: pytest.Pytester) -> None:
    opens(project, "Fill:pdf")
    project.makeini("[pytest]\nskill_min_recall = 0.9\nskill_max_false_alarms = 0.1\n")
    run(project).stdout.fnmatch_lines(["*recall is 33% (minimum 90%)"])


def test_queries_are_accepted_and_compared(project: pytest.Pytester) -> None:
    opens(project, "Fill:pdf\ntax:pdf\n")
    accepted = run(project, "--skill-accept", "--skill-trigger-runs", "5")
    accepted.assert_outcomes(passed=4, xfailed=1)
    kept = json.loads(Path("pdf/skill_results.json").read_text())
    (name,) = kept["models"]
    assert name == "scripted:model.py:answer (triggers)"
    assert len(kept["models"][name]["cases"]) == 5
    again = run(project, "--skill-trigger-runs", "5")
    again.assert_outcomes(passed=4, xfailed=1)
    assert again.ret == 0
    opens(project, "Sign:pdf\ntax:pdf")
    worse = run(project, "--skill-trigger-runs", "5")
    worse.assert_outcomes(passed=4, failed=1)
    worse.stdout.fnmatch_lines(["*better than accepted:*"])
    assert gates(worse)[0].startswith(
        "pdf on scripted:model.py:answer: regression: "
        "trigger-fill-in-this-form: 0 of 5 passed (accepted: 5 of 5, "
    )


def test_the_queries_together_regress(project: pytest.Pytester) -> None:
    run(project, "--skill-accept")
    opens(project, "Sign:pdf")
    result = run(project)
    result.assert_outcomes(passed=3, failed=2)
    last = gates(result)[-1]
    assert "regression of all queries together: 9 of 15 runs passed (accepted: 15 of 15" in last


def test_gone_and_changed_queries_are_told(project: pytest.Pytester) -> None:
    run(project, "--skill-accept").assert_outcomes(passed=5)
    some = {query: should for query, should in QUERIES.items() if "Fill" not in query}
    write_queries(project, {**some, "Write a haiku": True})
    result = run(project)
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert "accepted, but gone from the file: trigger-fill-in-this-form (3 of 3)" in text
    assert "changed since accepted: trigger-write-a-haiku (3 of 3)" in text
    assert run(project, "-k", "tax").ret == 0  # a part says nothing of the rest
    Path("pdf/evals/triggers.json").unlink()
    cases = {"cases": [{"id": "greet", "input": "Say hi", "expected": {"contains": ["hi"]}}]}
    project.path.joinpath("pdf/skill_meta.json").write_text(json.dumps(cases))
    gone = run(project, "--skill-triggers", "also")
    assert "accepted, but gone from the file: trigger-complete-the-tax-form" in gates(gone)[0]
    assert run(project, "--skill-triggers", "off").ret == 0
    dropped = run(project, "--skill-triggers", "also", "--skill-accept")
    assert "dropped: trigger-complete-the-tax-form" in " ".join(dropped.stdout.str().split())
    kept = json.loads(Path("pdf/skill_results.json").read_text())
    assert list(kept["models"]) == ["scripted:model.py:answer"]


def test_results_of_cases_and_queries_stay_apart(project: pytest.Pytester) -> None:
    cases = {"cases": [{"id": "greet", "input": "Say hi", "expected": {"contains": ["hi"]}}]}
    project.path.joinpath("pdf/skill_meta.json").write_text(json.dumps(cases))
    run(project, "--skill-triggers", "also", "--skill-accept").assert_outcomes(passed=6)
    assert run(project).ret == 0
    assert run(project, "--skill-triggers", "off").ret == 0
    assert run(project, "--skill-accept").ret == 0
    kept = json.loads(Path("pdf/skill_results.json").read_text())["models"]
    assert {name: len(own["cases"]) for name, own in kept.items()} == {
        "scripted:model.py:answer": 1,
        "scripted:model.py:answer (triggers)": 5,
    }


def test_all_files_have_them(project: pytest.Pytester) -> None:
    names = {"json": "r.json", "html": "r.html", "markdown": "r.md", "csv": "r.csv"}
    files = [text for kind, name in names.items() for text in (f"--skill-{kind}", name)]
    assert run(project, *files, "--junitxml", "r.xml").ret == 0
    report = json.loads(Path("r.json").read_text())
    (row,) = report["triggers"]
    assert (row["recall"], row["false_alarms"], row["decided_by"]) == (1, 0, "model")
    assert {one["query"] for one in row["queries"]} == set(QUERIES)
    assert report["gate"]["passed"] is None
    for name in ("r.html", "r.md", "r.csv"):
        assert "trigger-sign-the-contract" in Path(name).read_text() or name == "r.md"
    assert "opened in 3 of 3 that need it" in Path("r.md").read_text()
    junit = Path("r.xml").read_text()
    assert re.search(
        r'name="upskill:pdf:scripted:model.py:answer:triggers:recall" value="1"', junit
    )
    assert 'name="upskill_should_trigger" value="false"' in junit
    assert 'name="upskill_opened" value="3"' in junit


def test_github_sees_them(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    run(project, "--skill-accept", "--skill-trigger-runs", "5")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    opens(project, "Sign:pdf\ntax:pdf")
    result = run(project, "--skill-trigger-runs", "5")
    result.stdout.fnmatch_lines(
        ["::error file=pdf/evals/triggers.json,line=1,title=skill regression::*fill-in-this-form*"]
    )
    assert "opened in 2 of 3 that need it" in Path("summary.md").read_text()
