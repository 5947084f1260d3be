"""evals.json with an agent, as skill-creator means it."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.kit import write_skill
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

PDF = b"%PDF-1.7\0\1\2"
EVALS: Any = {
    "skill_name": "gate",
    "evals": [
        {
            "id": 7,
            "prompt": "Read june.csv and evals/files/scan.pdf, then write report.md.",
            "expected_output": "A report with the total 19.",
            "files": ["evals/files/june.csv", "evals/files/scan.pdf"],
            "expectations": ["The report has the total 19", "scripts/sum.sh was run"],
        }
    ],
}
# The judge looks for words in what it is shown, and keeps that.
MODELS = r"""
import json, re
from pathlib import Path
from pytest_upskill.agents.probe import ScriptStep, ToolScript

COPY = ScriptStep(
    "shell", "cp evals/files/scan.pdf copy.pdf; mkdir sub; echo x > sub/page.html"
)
WITHOUT = [
    COPY,
    ScriptStep("write", "report.md", "No idea\n"),
    ScriptStep("say", "See report.md."),
]
WITH = [
    COPY,
    ScriptStep("skill", "gate"),
    ScriptStep("shell", "cat june.csv; sh /skills/gate/scripts/sum.sh > report.md"),
    ScriptStep("say", "The total is 19."),
]

def agent(question):
    has = any(tool.name == "skill" for tool in question.tools)
    return ToolScript(WITH if has else WITHOUT, "gate")(question)

def judge(question):
    shown = question.messages[0][1]
    with Path("shown.txt").open("a") as kept:
        kept.write(shown)
    mark = re.findall(r'"mark": "(\w+)"', shown)[-1]
    work = shown.partition("This is how the author")[0]
    wanted = ("Total: 19", "scripts/sum.sh")
    found = ["pass" if text in work else "fail" for text in wanted]
    told = [
        {"criterion": number, "quote": "", "reason": 'It says "so".',
         "verdict": verdict}
        for number, verdict in enumerate(found, start=1)
    ]
    return json.dumps({"mark": mark, "verdicts": told})
"""


@pytest.fixture
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(
        pytester.path / "skills/gate", body="Run `scripts/sum.sh` for reports.\n"
    )
    (folder / "skill_meta.json").unlink()
    (folder / "evals/files").mkdir(parents=True)
    (folder / "evals/evals.json").write_text(json.dumps(EVALS))
    (folder / "evals/files/june.csv").write_text("wool,12\ngrain,7\n")
    (folder / "evals/files/scan.pdf").write_bytes(PDF)
    (folder / "scripts").mkdir()
    (folder / "scripts/sum.sh").write_text("echo Total: 19\n")
    pytester.makepyfile(models=MODELS)
    return folder


RUN = [
    "--skill",
    "skills",
    "--skill-agent",
    "loop",
    "--model",
    "scripted:models.py:agent",
]
JUDGED = [*RUN, "--skill-judge", "scripted:models.py:judge"]


def texts_of(record: Any) -> dict[str, str | None]:
    return {file["path"]: file["text"] for file in record["files"]}


@pytest.mark.usefixtures("skill")
def test_evals_run_with_their_files(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(
        *JUDGED, "--skill-runs", "2", "--skill-json", "r.json"
    )
    result.assert_outcomes(passed=1)
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    outcomes = {(record["arm"], record["run"]): record["outcome"] for record in records}
    assert outcomes == {
        ("skill", 1): "passed",
        ("skill", 2): "passed",
        ("baseline", 1): "failed",
        ("baseline", 2): "failed",
    }
    by_arm = {record["arm"]: record for record in records}
    assert by_arm["skill"]["case"] == "7"
    assert by_arm["skill"]["output"] == "The total is 19."
    assert texts_of(by_arm["skill"])["report.md"] == "Total: 19\n"
    assert texts_of(by_arm["baseline"])["report.md"] == "No idea\n"

    shown = (pytester.path / "shown.txt").read_text()
    assert "- made: copy.pdf (11 bytes)" in shown
    assert "A report with the total 19." in shown
    assert "/skills/gate" not in shown


@pytest.mark.usefixtures("skill")
def test_without_a_judge_the_line_says_what_is_missing(
    pytester: pytest.Pytester,
) -> None:
    result = pytester.runpytest_inprocess(*RUN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*evals.json:1: *--skill-judge*"])
