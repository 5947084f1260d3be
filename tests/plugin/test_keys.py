"""A key that a server echoes or a model repeats is in nothing that leaves the
process.
"""

import base64
import gzip
import os
import re
import zlib
from pathlib import Path

import pytest

from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.protocols import ODD_ANSWERS

KEY = "sk-proj-" + "uS3dInThisRun4" * 3
OTHER = "hf_" + "oFAnotherProvider7" * 2
CODED = base64.b64encode(f"me:{KEY}".encode()).decode()
REPORTS = [
    *(
        "--skill-json",
        "out/a.json",
        "--skill-html",
        "out/a.html",
        "--skill-markdown",
        "out/a.md",
    ),
    *("--junitxml", "out/a.xml"),
    *("--skill-record", "out/a.jsonl", "--skill-fresh"),
]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    (pytester.path / "out").mkdir()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "out/summary.md"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", OTHER)
    return pytester.path


def leaks_of(project: Path, result: pytest.RunResult) -> list[tuple[str, str]]:
    """The files and the screen that hold a part of a key, unpacked."""
    found = {"screen": f"{result.stdout.str()}\n{result.stderr.str()}".encode()}
    for folder, _, names in os.walk(project):
        for name in names:
            file = Path(folder, name)
            data = file.read_bytes()
            if name.endswith(".gz"):
                data += gzip.decompress(data)
            if packed := re.search(rb'id="data">([^<]+)', data):
                data += zlib.decompress(base64.b64decode(packed[1]))
            if "skills" not in file.parts:
                found[str(file.relative_to(project))] = data
    words = (KEY[12:28], OTHER[8:24], CODED[12:28])
    assert len(found) > 10
    return [
        (name, word)
        for name, data in found.items()
        for word in words
        if word.encode() in data
    ]


def test_a_key_in_an_answer_or_a_question_is_masked_everywhere(
    pytester: pytest.Pytester, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"Your key is {KEY}, {OTHER}, Basic {CODED}."
    write_skill(pytester.path / "skills/gate", [case(f"q {KEY}", "gate up", id="a")])
    with LoopbackServer(lambda _: Reply(said)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        words = ["--skill", "skills", "--model", "openai:gpt", "-n", workers, *REPORTS]
        result = pytester.runpytest_inprocess(*words, "-vv")
        assert server.asked
        assert not any(KEY in asked.question for asked in server.asked)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Your key is [*][*][*], [*][*][*], Basic *"])
    assert leaks_of(pytester.path, result) == []


@pytest.mark.parametrize("kind", ["text/plain", "cut"])
def test_a_key_in_an_error_is_masked_everywhere(
    pytester: pytest.Pytester, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"Proxy: {'x' * 30} {KEY} {OTHER} {CODED}"
    monkeypatch.setitem(ODD_ANSWERS, "wrong_type", (body.encode(), "text/plain"))

    def fail(_: Asked) -> Fault:
        if kind == "text/plain":
            return Fault("wrong_type")
        return Fault("status", 400, message=f"{'x' * 170} {body}")

    write_skill(pytester.path / "skills/gate", [case("q", "gate up", id="a")])
    with LoopbackServer(fail) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        words = [
            "--skill",
            "skills",
            "--model",
            "openai:gpt",
            "--skill-timeout",
            "2",
            *REPORTS,
        ]
        result = pytester.runpytest_inprocess(*words)
    result.assert_outcomes(errors=1)
    assert leaks_of(pytester.path, result) == []


def test_a_key_in_an_answer_never_reaches_the_judge(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def answer(asked: Asked) -> Reply:
        if asked.model == "judge":
            judged.append(str(asked.body))
        return Reply(f"gate up {OTHER}")

    cases = [case("q", id="a", expected={"judge": "says gate up"})]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        words = [
            "--skill",
            "skills",
            "--model",
            "openai:gpt",
            "--skill-judge",
            "openai:judge",
        ]
        pytester.runpytest_inprocess(*words)
    assert "gate up ***" in judged[0]
    assert not any(OTHER in body for body in judged)
