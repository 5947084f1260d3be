"""``pytest-upskill route``: a whole catalogue, by a choice and by our own agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.measure.evaluate import Evaluator
from support.kit import write_skill
from support.pages import page_words

MODEL = "scripted:model.py:answer"
QUERIES = {
    "Merge these PDFs": "pdf",
    "Fill in the form": "pdf",
    "Write a letter": "docx",
    "Hi": None,
}
Output = pytest.CaptureFixture[str]

_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage

OPENS = {"Merge": ["pdf", "docx"], "Fill": ["docx"], "Write": ["docx"]}


def answer(question):
    """Takes forms for letters."""
    names = OPENS.get(question.messages[-1][1].split()[0], [])
    calls = [ToolCall(name, "skill", '{"name": "%s"}' % name) for name in names]
    return Answer("" if calls else "Hi!", Usage(10, 5, 0), calls=tuple(calls))


def broken(question):
    if "Merge" in question.messages[-1][1]:
        raise OSError("down")
    return answer(question)
'''


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("pdf", "docx", "xlsx"):
        write_skill(tmp_path / "skills" / name, [])
    write_routes(QUERIES)
    (tmp_path / "model.py").write_text(_MODEL, encoding="utf-8")
    return tmp_path


def write_routes(
    queries: dict[str, Any], file: str = "skills/evals/routes.json"
) -> None:
    routes = [{"query": text, "expected_skill": name} for text, name in queries.items()]
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(json.dumps({"routes": routes}), encoding="utf-8")


def route(*words: str, model: str = MODEL) -> int:
    return main(["route", "skills", "--model", model, "--json", "out.json", *words])


def outcomes() -> dict[str, str]:
    (routing,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["sections"]
    return {query["query"]: query["outcome"] for query in routing["queries"]}


ROUTED = {
    "Merge these PDFs": "right",
    "Fill in the form": "wrong skill",
    "Write a letter": "right",
    "Hi": "right",
}


@pytest.mark.parametrize(
    "agent", [["--agent", "chat"], ["--agent", "loop", "--sandbox", "none"]]
)
def test_one_trial_per_query_serves_every_skill(agent: list[str]) -> None:
    assert route(*agent) == 0
    assert outcomes() == ROUTED
    (routing,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["sections"]
    assert routing["table"] == {
        "opened": ["docx", "pdf", "xlsx", "(none)"],
        "rows": {"docx": [1, 0, 0, 0], "pdf": [1, 1, 0, 0], "(none)": [0, 0, 0, 1]},
    }
    assert routing["queries"][0]["also"] == {"docx": 1}
    assert routing["recall"]["rate"] == pytest.approx(2 / 3)
    assert routing["precision"]["rate"] == pytest.approx(2 / 3)
    assert routing["false_alarms"]["rate"] == 0


def test_a_gate_sets_the_status_and_its_reason_is_the_last_line(capsys: Output) -> None:
    files = ["--html", "out.html", "--markdown", "out.md"]
    assert route("--min-recall", "0.6", "--max-false-alarms", "0.2") == 0
    capsys.readouterr()
    assert route("--min-recall", "0.9", *files) == 1
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert last.startswith(f"upskill: {MODEL}: recall is 67% (minimum 90%; ")
    for file in ("out.html", "out.md"):
        text = Path(file).read_text(encoding="utf-8")
        words = page_words(text) if file.endswith("html") else text
        assert "docx is opened in 1 trial in place of pdf" in words
        assert "recall is 67% (minimum 90%" in words
    assert main(["report", "out.json"]) == 1
    assert capsys.readouterr().out.rstrip().splitlines()[-1] == last
    assert main(["report", "out.json", "--min-recall", "0.5"]) == 0
    capsys.readouterr()
    assert main(["runs", "show", "out.json"]) == 0
    assert "Which skill each query opens" in capsys.readouterr().out


def test_a_query_without_an_answer_is_an_error_and_passes_no_gate(
    capsys: Output,
) -> None:
    assert route(model="scripted:model.py:broken") == 1
    assert outcomes() == {**ROUTED, "Merge these PDFs": "error"}
    assert capsys.readouterr().out.rstrip().endswith("1 trial without a result")
    assert route("--max-false-alarms", "1", model="scripted:model.py:broken") == 1
    assert (
        capsys.readouterr()
        .out.rstrip()
        .endswith("can't pass: 1 trial without a result")
    )


def test_repeats_are_runs_of_the_same_query() -> None:
    assert route("--runs", "3") == 0
    (routing,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["sections"]
    assert routing["queries"][1]["opened"] == {"docx": 3}
    assert routing["recall"]["queries"] == 3


def test_queries_may_be_in_another_file_or_be_the_triggers_of_skills(
    capsys: Output,
) -> None:
    write_routes({"Write a letter": "docx"}, "mine.json")
    assert route("--tests", "mine.json") == 0
    assert outcomes() == {"Write a letter": "right"}
    Path("skills/evals/routes.json").unlink()
    triggers = [{"query": "Fill in the form", "should_trigger": False}]
    Path("skills/docx/evals").mkdir()
    Path("skills/docx/evals/triggers.json").write_text(
        json.dumps(triggers), encoding="utf-8"
    )
    assert route() == 0
    assert outcomes() == {"Fill in the form": "false alarm"}
    assert "triggers and cases of 1 skill" in capsys.readouterr().out


def test_without_a_query_it_says_how_to_write_some(capsys: Output) -> None:
    Path("skills/evals/routes.json").unlink()
    assert route() == 2
    error = capsys.readouterr().err
    assert "no query to route" in error
    assert "skills/evals/routes.json" in error
    assert '"expected_skill": null' in error


def test_skills_that_no_model_can_open_are_named(project: Path, capsys: Output) -> None:
    write_skill(
        project / "skills/deploy", [], frontmatter="disable-model-invocation: true\n"
    )
    assert route() == 0
    assert "(disable-model-invocation): deploy" in " ".join(
        capsys.readouterr().out.split()
    )
    assert outcomes() == ROUTED


def test_a_broken_skill_is_left_out_and_two_of_one_name_are_an_error(
    project: Path, capsys: Output
) -> None:
    (project / "skills/odd").mkdir()
    (project / "skills/odd/SKILL.md").write_bytes(b"\xff\xfe\x00")
    assert route() == 0
    assert "Left out, as broken: skills/odd/SKILL.md" in " ".join(
        capsys.readouterr().out.split()
    )
    write_skill(project / "skills/more/pdf", [], body="Another one.")
    assert route() == 2
    assert "same name (pdf)" in capsys.readouterr().err


def test_after_ctrl_c_there_is_what_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records, calls = Evaluator.records, list[int]()

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return records(*args)

    monkeypatch.setattr(Evaluator, "records", interrupted)
    assert route("--min-recall", "0.1") == 130
    saved = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert saved["interrupted"] == "Ctrl-C"
    assert saved["gate"]["passed"] is False
