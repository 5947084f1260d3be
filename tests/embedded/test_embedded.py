"""The embedded model, for real: weights fetched, llama.cpp answering,
the demo's skill helping.
"""

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, ModelSpec
from pytest_upskill.models.anthropic_messages import AnthropicModel
from pytest_upskill.models.local import fetch_weights
from pytest_upskill.models.providers import PROVIDERS
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.trials.trial import Question
from support.kit import write_skill
from support.shell import started
from support.waiting import wait_until

pytestmark = pytest.mark.nightly

WICK = Path(__file__).parents[2] / "skills/wick"
LOCAL = PROVIDERS["local"]
SPEC = ModelSpec("local", LOCAL, "SmolLM2-135M-Instruct")
QUESTION = Question(
    "local", "You are a helpful assistant.", (("user", "Name a colour."),), 12, 1
)


@pytest.fixture(scope="module", autouse=True)
def weights() -> Path:
    return fetch_weights(lambda _done, _total: None)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bytes:
    """In the environment of all that a test starts,
    so that its servers can be told apart.
    """
    if not Path("/proc/self/environ").exists():
        pytest.skip("there is no /proc to find processes in")
    monkeypatch.setenv("TEST_MARK", str(tmp_path))
    return str(tmp_path).encode()


def servers(mark: bytes) -> list[str]:
    """The processes of embedded models that a test has started and that still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended while we look
            command = (process / "cmdline").read_bytes()
            if (
                b"models.local_server" in command
                and mark in (process / "environ").read_bytes()
            ):
                found.append(process.name)
    return found


@contextmanager
def opened(spec: ModelSpec = SPEC) -> Iterator[tuple[Model, asyncio.Runner]]:
    with asyncio.Runner() as runner:
        model = runner.run(LOCAL.open(spec, 60))
        try:
            yield model, runner
        finally:
            runner.run(model.close())


def test_the_same_question_gets_the_same_answer() -> None:
    other = dataclasses.replace(QUESTION, messages=(("user", "What is a gate?"),))
    with opened() as (model, runner):
        answers = [runner.run(model.ask(q)) for q in (QUESTION, other, QUESTION)]
    with opened() as (model, runner):
        answers.append(runner.run(model.ask(QUESTION)))
    first = answers.pop(0)
    same = {(one.text, one.stop, one.usage.output) for one in (first, *answers[1:])}
    assert len(same) == 1
    # Which words, and so how many, depends on the processor.
    assert 1 <= (first.usage.output or 0) <= QUESTION.max_output
    assert first.stop in ("end", "length")
    assert first.stop == "end" or first.usage.output == QUESTION.max_output
    assert (first.usage.input or 0) > 10


def test_the_anthropic_sdk_talks_to_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with opened() as (model, runner):
        address = model.address.removesuffix("/v1")
        claude = AnthropicModel(
            ModelSpec("m", PROVIDERS["anthropic"], "any", address), 60
        )
        answer = runner.run(claude.ask(QUESTION))
        runner.run(claude.close())
    # Asked this way it is not told to be the same each time, so any answer will do.
    assert answer.text
    assert answer.stop in ("end", "length")
    assert 1 <= (answer.usage.output or 0) <= 12


def test_a_question_too_long_for_it_says_so() -> None:
    long = dataclasses.replace(QUESTION, system="word " * 10_000)
    with (
        opened() as (model, runner),
        pytest.raises(ModelError, match="too long for this model"),
    ):
        runner.run(model.ask(long))


def test_context_and_threads_are_options() -> None:
    long = dataclasses.replace(QUESTION, system="word " * 300)
    small = dataclasses.replace(SPEC, options=(("context", 256), ("threads", 1)))
    with opened() as (model, runner):
        assert runner.run(model.ask(long)).usage.input
    with opened(small) as (model, runner), pytest.raises(ModelError, match="too long"):
        runner.run(model.ask(long))


def test_the_demo_fails_without_its_skill_and_passes_with_it(
    pytester: pytest.Pytester, workers: str, mark: bytes
) -> None:
    args = [f"--skill={WICK}", "-k", "freeze-day or owner", "--skill-max-output", "20"]
    args += ["--skill-fresh"]  # the project's own stored answers must not help
    result = pytester.runpytest_subprocess(
        *args, "-n", workers, "--skill-json", "r.json"
    )
    result.assert_outcomes(passed=2, deselected=8 if workers == "0" else 0)
    [summary] = json.loads((pytester.path / "r.json").read_text())["summary"]
    assert (summary["baseline_rate"], summary["skill_rate"], summary["lift"]) == (
        0,
        1,
        1,
    )
    assert summary["model_id"] == "SmolLM2-135M-Instruct"
    result.stdout.fnmatch_lines(
        [
            (
                "upskill: wick on local (SmolLM2-135M-Instruct) (default; choose with"
                " --model)"
            ),
            "local is SmolLM2-135M-Instruct, a small model for trying things out; *",
        ]
    )
    assert not result.stderr.lines
    assert servers(mark) == []


def test_ones_own_file_is_taken_by_name_or_by_environment(
    pytester: pytest.Pytester, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = pytester.path / "mine.gguf"
    own.symlink_to(weights)
    write_skill(pytester.path / "gate")
    args = [
        "--skill",
        "gate",
        "--skill-max-output",
        "4",
        "--skill-no-baseline",
        "--skill-fresh",
    ]
    named = pytester.runpytest_inprocess(*args, "--model", "local:mine.gguf")
    named.stdout.fnmatch_lines(["upskill: gate on local:mine.gguf", "*1 failed*"])
    monkeypatch.setenv("PYTEST_UPSKILL_MODEL", str(own))
    by_environment = pytester.runpytest_inprocess(*args)
    by_environment.stdout.fnmatch_lines(
        ["upskill: gate on local (mine) (default*", "*1 failed*"]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_the_server_ends_when_the_run_is_killed(
    pytester: pytest.Pytester, mark: bytes
) -> None:
    command = [sys.executable, "-m", "pytest", f"--skill={WICK}", "--skill-fresh"]
    with started(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as run:
        wait_until(lambda: len(servers(mark)) == 1)
        run.kill()
    wait_until(lambda: servers(mark) == [])


def test_a_skill_by_a_scripted_teacher_is_measured_on_it_as_a_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the skill at first, all of it when the teacher is told what fails."""
    monkeypatch.chdir(tmp_path)
    body = load_skill(WICK / "SKILL.md").body
    asked = [
        ("owner", "Who owns Wick?", "Nightjar"),
        ("freeze", "Which day of the week is the deploy freeze?", "Thursday"),
        ("channel", "What is the name of the help channel?", "#soot"),
        ("settings", "What is the name of the settings file?", "lantern.toml"),
        ("staging", "What is our staging environment called?", "porch"),
        ("logs", "Which command shows the logs?", "wick smoke"),
    ]
    cases = [
        {
            "id": name,
            "input": question,
            "expected": {"contains": [known]},
            "reference": f"It is {known}.",
            "wrong": "It is not known.",
        }
        for name, question, known in asked
    ]
    (tmp_path / "teacher.py").write_text(
        f"import json\nBODY, CASES = {body!r}, {json.dumps({'cases': cases})!r}\ndef"
        " teacher(question):\n    if not question.system.startswith('You write Agent"
        " Skills'):\n        return CASES\n    refines = 'Students were asked' in"
        " question.messages[-1][1]\n    body = BODY if refines else BODY[:60]\n   "
        " return json.dumps({'name': 'wick', 'description': 'Wick.', 'body':"
        " body})\n"
    )
    words = [
        "--model",
        "scripted:teacher.py:teacher",
        "--eval-model",
        "local",
        "--cases",
        "6",
    ]
    status = main(
        ["generate", "answer about Wick", *words, "--max-output", "16", "--json"]
    )
    data = json.loads(capsys.readouterr().out)
    assert status == 0  # six cases of six, as many as it takes to show that it helps
    assert data["chosen"] == 2
    assert [attempt["learning"][0]["skill_rate"] for attempt in data["attempts"]] == [
        0,
        1,
    ]
    assert load_skill(tmp_path / "skills/wick/SKILL.md").body == body
