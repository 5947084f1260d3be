"""Answers with files and a transcript: asked, checked, recorded, reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.kit import write_skill
from support.pages import data_of

SCRIPT = """
    from pytest_upskill.trials.answer import Answer, AnswerFile
    from pytest_upskill.trials.transcript import Turn

    def agent(question):
        made = AnswerFile.of("out/gate.txt", question.system[:9].encode())
        binary = AnswerFile.of("logo.png", b"\\x89PNG\\0")
        call = Turn("call", "ls", "bash")
        turns = (call, Turn("result", "<b>no</b>", "bash", failed=True))
        return Answer("done", files=(made, binary), transcript=turns)
"""
CONFTEST = """
    def wrote(context):
        paths = [file.path for file in context.answer.files]
        passed = context.value in paths and len(context.answer.transcript) == 2
        return passed, ", ".join(paths)

    def pytest_upskill_checks(config):
        return {"wrote": wrote}
"""


def records(file: Path) -> Any:
    return json.loads(file.read_text())["records"]


def test_files_and_transcript_arrive_everywhere(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makepyfile(agent=SCRIPT)
    pytester.makeconftest(CONFTEST)
    expected = {"wrote": "out/gate.txt", "contains": "done"}
    write_skill(pytester.path / "skills/gate", [{"input": "q", "expected": expected}])
    run = ["--skill", "skills", "--model", "scripted:agent.py:agent", "-n", workers]
    first = [
        *run,
        "--skill-record",
        "a.jsonl",
        "--skill-json",
        "one.json",
        "--junitxml",
        "j.xml",
    ]
    pytester.runpytest_inprocess(*first, "--skill-html", "r.html").assert_outcomes(
        passed=1
    )
    again = [*run, "--skill-replay", "a.jsonl", "--skill-json", "two.json"]
    pytester.runpytest_inprocess(*again).assert_outcomes(passed=1)
    for file in ("one.json", "two.json"):
        for record in records(pytester.path / file):
            assert [one["path"] for one in record["files"]] == [
                "out/gate.txt",
                "logo.png",
            ]
            assert [one["text"] for one in record["files"]] == ["You are a", None]
            assert not record["transcript"]
            assert record["checks"][0]["reason"] == "out/gate.txt, logo.png"
    junit = (pytester.path / "j.xml").read_text()
    assert "You are a" not in junit.partition("<system-out")[0]
    assert main(["report", "one.json", "--json", "three.json"]) == 0
    assert records(pytester.path / "three.json") == records(pytester.path / "one.json")
    for record in data_of((pytester.path / "r.html").read_text())["results"]["records"]:
        assert [
            (file["path"], file["text"], file["change"]) for file in record["files"]
        ] == [
            ("out/gate.txt", "You are a", "made"),
            ("logo.png", None, "made"),
        ]
        turn = record["transcript"][1]
        assert (turn["kind"], turn["tool"], turn["failed"]) == ("result", "bash", True)
        assert turn["text"] == "<b>no</b>"
