"""``pytest-upskill drift``: skills on an old model and on a new one."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.measure.evaluate import Evaluator
from support.exchange import Asked, Fault, Reply
from support.kit import case, write_skill
from support.loopback import LoopbackServer
from support.pages import page_words
from support.sandboxes import needs_bwrap
from support.stored_answers import age_store

OLD, NEW, GONE, BROKEN = (
    f"scripted:model.py:{name}" for name in ("old", "new", "gone", "broken")
)
Output = pytest.CaptureFixture[str]

_MODEL = """
def old(question):
    return "yes" if "Say yes" in question.system else "no"


def new(question):
    skill, number = question.messages[-1][1].split()[:2]
    helped = "Say yes" in question.system
    if skill == "spare":
        return "yes"
    if skill == "harmful":
        return "no" if helped else "yes"
    return "yes" if helped and (skill, number) != ("broken", "3") else "no"


def gone(question):
    from pytest_upskill.errors import ModelError
    raise ModelError("404 not_found_error: model: old", fatal=True)


def broken(question):
    if question.messages[-1][1].startswith("needed 3"):
        raise OSError("down")
    return new(question)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(_MODEL, encoding="utf-8")
    for name in ("broken", "harmful", "needed", "spare"):
        write(name)
    return tmp_path


def write(name: str, cases: int = 20) -> None:
    questions = [
        case(f"{name} {number} ?", "yes", id=f"c{number}") for number in range(cases)
    ]
    write_skill(Path("skills") / name, questions, body="Say yes.")


def drift(*words: str, old: str = OLD, new: str = NEW, skills: str = "skills") -> int:
    return main(
        ["drift", skills, "--from", old, "--to", new, "--json", "out.json", *words]
    )


def change() -> dict[str, Any]:
    (change,) = json.loads(Path("out.json").read_text(encoding="utf-8"))["sections"]
    return dict(change)


def verdicts() -> dict[str, str]:
    return {skill["skill"]: skill["word"] for skill in change()["skills"]}


WORDS = {
    "broken": "still helps",
    "harmful": "hurts now",
    "needed": "still helps",
    "spare": "no longer needed",
}


def test_each_skill_is_a_row_and_the_last_line_says_what_to_do(capsys: Output) -> None:
    assert drift("--runs", "6", "--html", "out.html", "--markdown", "out.md") == 0
    assert verdicts() == WORDS
    broken = {skill["skill"]: len(skill["broken"]) for skill in change()["skills"]}
    assert broken == {"broken": 1, "harmful": 20, "needed": 0, "spare": 0}
    *_, last, _ = capsys.readouterr().out.splitlines()
    assert (
        last == f"On {NEW}: can go: spare; broke: broken (1 case), harmful (20 cases);"
        " hurts: harmful; helps: broken, needed."
    )
    page = page_words(Path("out.html").read_text(encoding="utf-8"))
    comment = Path("out.md").read_text(encoding="utf-8")
    for text in (page, comment):
        assert f"From {OLD} to {NEW}" in text
        assert "can go: spare" in text
    assert "| no longer needed |" in " ".join(comment.split())
    assert main(["report", "out.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_gate_sets_the_status_and_its_reasons_are_the_last_lines(
    capsys: Output,
) -> None:
    assert drift("--no-worse", skills="skills/needed") == 0
    capsys.readouterr()
    assert drift("--no-worse", skills="skills/harmful") == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"upskill: harmful on {NEW}: hurts now; 20 cases broke"
    assert main(["report", "out.json"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_by_an_agent_it_is_the_same(project: Path) -> None:
    model = """
from pytest_upskill import Answer, ToolCall, Usage


def old(question):
    if question.steps:
        return "yes"
    if "<name>needed</name>" in question.system:
        call = ToolCall("1", "skill", '{"name": "needed"}')
        return Answer("", Usage(1, 1, 0), calls=(call,))
    return "no"


def new(question):
    return "yes"
"""
    (project / "model.py").write_text(model, encoding="utf-8")
    words = ["--agent", "loop", "--sandbox", "none", "--runs", "1"]
    assert drift(*words, skills="skills/needed") == 0
    assert (change()["agent"], verdicts()) == ("loop", {"needed": "no longer needed"})


def test_missing_answers_are_status_1_and_no_verdict(capsys: Output) -> None:
    assert drift("--runs", "1", new=BROKEN) == 1
    assert verdicts() == {
        **verdicts(),
        "needed": "incomplete",
        "spare": "no longer needed",
    }
    assert change()["new"]["errored"] == 2
    out = capsys.readouterr().out
    assert "incomplete: needed;" in out
    assert out.endswith(f"upskill: {BROKEN}: 2 answers missing, 1 skill incomplete\n")


def test_an_old_model_that_is_gone_is_one_message_before_the_new_one_is_asked(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, records = list[str](), Evaluator.records

    def watched(self: Evaluator, to_grade: Any) -> Any:
        asked.extend(item.trial.model for item in to_grade)
        return records(self, to_grade)

    monkeypatch.setattr(Evaluator, "records", watched)
    assert drift(old=GONE) == 2
    assert {*asked} == {GONE}
    error = capsys.readouterr().err
    assert error.startswith(f"pytest-upskill: --from {GONE}: no answer, and 480 of")
    assert "404 not_found_error" in error
    assert "--recorded FILE" in error


def test_after_ctrl_c_it_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    records, calls = Evaluator.records, list[int]()

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return records(*args)

    monkeypatch.setattr(Evaluator, "records", interrupted)
    assert drift() == 130
    assert (
        json.loads(Path("out.json").read_text(encoding="utf-8"))["interrupted"]
        == "Ctrl-C"
    )
    assert "nothing is asked twice" in capsys.readouterr().err


def error_of(capsys: Output, *words: str, **more: str) -> str:
    assert drift(*words, **more) == 2
    return " ".join(capsys.readouterr().err.split())


def test_what_can_not_be_compared_is_a_usage_error(capsys: Output) -> None:
    assert f"--to {OLD}: the same model as --from {OLD}" in error_of(capsys, new=OLD)
    assert "--to scripted:no.py:f" in error_of(capsys, new="scripted:no.py:f")
    assert "--recorded no.jsonl" in error_of(capsys, "--recorded", "no.jsonl")
    write_skill(Path("bare/empty"), [])
    assert "none of these skills has cases" in error_of(capsys, skills="bare")
    write_skill(Path("skills/empty"), [])
    assert drift("--runs", "1") == 0
    assert "Left out, as they have no cases for both: empty" in change()["conclusions"]


# Tasks of a benchmark.

_AGENT = """
import json
from pytest_upskill import Answer, ToolCall, Usage


def _does(question, command):
    if question.steps:
        return "done"
    call = ToolCall("1", "bash", json.dumps({"command": command}))
    return Answer("", Usage(1, 1, 0), calls=(call,))


def old(question):
    knows = "skill" in {tool.name for tool in question.tools}
    knows = knows or "plain" in question.messages[-1][1]
    return _does(question, "echo yes > answer.txt" if knows else "true")


def new(question):
    is_plain = "plain" in question.messages[-1][1]
    return _does(question, "true" if is_plain else "echo yes > answer.txt")
"""


@needs_bwrap
@pytest.mark.usefixtures("docker")
def test_a_task_that_is_never_graded_is_left_out_and_named(
    project: Path, capsys: Output
) -> None:
    (project / "model.py").write_text(_AGENT, encoding="utf-8")
    for number in range(2):
        write_task(
            project / f"tasks/helped-{number}", f"Write it, {number}.", skill=True
        )
    for name, verifier in (
        ("wrong", "echo 5 > /logs/verifier/reward.txt\n"),
        ("none", "true\n"),
    ):
        write_task(project / f"tasks/{name}", f"Write the {name} one.", skill=True)
        (project / f"tasks/{name}/tests/test.sh").write_text(verifier, encoding="utf-8")
    words = ["--agent", "loop", "--runs", "1", "--allow-code"]
    assert drift(*words, skills="tasks") == 1
    found, (tasks,) = change(), change()["skills"]
    assert (found["cases"], tasks["cases"], tasks["change"]["lift"]) == (4, 2, -1)
    assert found["old"]["errored"] == found["new"]["errored"] == 4
    assert found["notes"] == [
        "tasks: 2 of 4 cases left out, never graded on either model: none, wrong"
    ]
    assert len(found["missing"]) == 2  # reasons, each of both models
    label = "loop/scripted:model.py:"
    missing = f"{label}old: 4 answers missing, {label}new: 4 answers missing"
    assert capsys.readouterr().out.endswith(f"upskill: {missing}\n")


@needs_bwrap
@pytest.mark.usefixtures("docker")
def test_a_folder_of_tasks_is_a_row_and_tasks_without_skills_are_another(
    project: Path, capsys: Output
) -> None:
    (project / "model.py").write_text(_AGENT, encoding="utf-8")
    for number in range(6):
        write_task(
            project / f"tasks/plain-{number}", f"Write it plain, {number}.", skill=False
        )
        if number < 2:
            write_task(
                project / f"tasks/helped-{number}", f"Write it, {number}.", skill=True
            )
    write_task(project / "tasks/steps", "Write it.", more="[[steps]]\nname = 'a'\n")
    words = ["--agent", "loop", "--runs", "1", "--allow-code"]
    assert drift(*words, skills="tasks") == 0
    helped, plain = change()["skills"]
    assert (helped["skill"], helped["cases"]) == ("tasks", 2)
    assert [helped[side]["lift"]["lift"] for side in ("old", "new")] == [1, 0]
    assert (plain["skill"], plain["cases"]) == ("tasks (no skills)", 6)
    assert (plain["old"]["lift"], plain["change"]["lift"], plain["word"]) == (
        None,
        -1,
        "worse",
    )
    assert len(plain["broken"]) == 6
    assert (
        "Skipped: 1 of 7 tasks, such as steps: it has several steps"
        in change()["conclusions"]
    )
    capsys.readouterr()
    assert "--agent chat: tasks need an agent" in error_of(capsys, skills="tasks")
    refused = error_of(capsys, "--agent", "loop", skills="tasks")
    assert "--allow-code: tasks needs an image, and building one runs code" in refused


def write_task(
    folder: Path, instruction: str, *, skill: bool = False, more: str = ""
) -> None:
    script = "grep -q yes answer.txt && echo 1 > /logs/verifier/reward.txt"
    files = {
        "task.toml": f'version = "1.0"\n{more}',
        "instruction.md": instruction,
        "tests/test.sh": f"{script} || echo 0 > /logs/verifier/reward.txt\n",
        "environment/Dockerfile": "FROM python:3.13-slim\nWORKDIR /app\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    if skill:
        write_skill(folder / "environment/skills/yes", [], body="Say yes.")


# Answers that are stored.


@pytest.fixture
def server(project: Path) -> Iterator[LoopbackServer]:
    """With an old model that needs the skill, and a new one that does not."""
    (project / "pytest.ini").write_text(
        "[pytest]\nskill_prices =\n  old 1 5\n  new 1 5\n"
    )
    with LoopbackServer(answer_of(gone=False)) as server:
        yield server


def answer_of(*, gone: bool) -> Callable[[Asked], Reply | Fault]:
    def answer(asked: Asked) -> Reply | Fault:
        if asked.model == "old" and gone:
            return Fault("status", 404)
        return Reply(
            "yes" if asked.model == "new" or "Say yes" in asked.system else "no"
        )

    return answer


def drift_at(server: LoopbackServer, *words: str, skills: str = "skills/needed") -> int:
    where = ["--base-url", f"{server.url}/v1", "--yes"]
    return drift(*where, *words, old="old", new="new", skills=skills)


def test_what_is_stored_is_reported_however_often_the_rest_fails(
    server: LoopbackServer,
) -> None:
    def answer(asked: Asked) -> Reply | Fault:
        fails = asked.model == "new" and asked.question.startswith("spare")
        return Fault("status", 400) if fails else Reply("yes")

    server._script = answer
    for name in ("broken", "harmful"):
        shutil.rmtree(f"skills/{name}")
    for stored in (0, 40):
        assert drift_at(server, "--runs", "1", skills="skills") == 1
        assert verdicts() == {"needed": "not needed", "spare": "incomplete"}
        assert change()["new"]["errored"] == 40
        assert change()["new"]["stored"] == stored


def test_a_key_is_only_needed_for_what_is_not_stored(
    monkeypatch: pytest.MonkeyPatch, server: LoopbackServer, capsys: Output
) -> None:
    write("needed", cases=4)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    models = {"old": "openai:old", "new": "openai:new", "skills": "skills/needed"}
    assert "OPENAI_API_KEY is not set" in error_of(capsys, "--yes", **models)
    with monkeypatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        assert drift("--yes", **models) == 0
    assert drift("--yes", **models) == 0
    assert change()["old"]["stored"] == change()["new"]["stored"] == 24
    assert "OPENAI_API_KEY is not set" in error_of(
        capsys, "--yes", "--runs", "4", **models
    )


def test_stored_answers_of_a_model_that_is_gone_are_used_however_old_they_are(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    project: Path,
    server: LoopbackServer,
    capsys: Output,
) -> None:
    monkeypatch.chdir(project)
    url = ["--skill-base-url", f"{server.url}/v1"]
    words = [
        "--skill",
        "skills/needed",
        "--model",
        "old",
        "--skill-record",
        "old.jsonl",
        *url,
    ]
    assert pytester.runpytest_inprocess(*words).ret == 0
    age_store(project, 40)
    server._script = answer_of(gone=True)
    capsys.readouterr()
    assert drift_at(server) == 2
    error = capsys.readouterr().err
    assert "80 of its 120 answers are not stored" in error
    assert "All answers of the first 1 run are stored: --runs 1." in error
    assert drift_at(server, "--runs", "1") == 0
    found = change()
    assert (found["old"]["stored"], found["new"]["stored"]) == (40, 0)
    assert found["old"]["cost"] == 0
    assert found["new"]["cost"] > 0
    assert found["new"]["stored_first"] is None
    assert verdicts() == {"needed": "no longer needed"}
    # Days lie between the models, and that is the point; between the arms of one,
    # they may not.
    assert drift_at(server, "--runs", "1") == 0
    again = change()
    assert again["old"]["stored"] == again["new"]["stored"] == 40
    (project / ".upskill/answers.sqlite").unlink()
    assert drift_at(server, "--runs", "1") == 2
    assert drift_at(server, "--runs", "1", "--recorded", "old.jsonl") == 0
    assert change()["old"]["stored"] == 40
    assert verdicts() == {"needed": "no longer needed"}
