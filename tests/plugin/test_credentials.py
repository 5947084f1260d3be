"""A credential in a URL, in header variables or in the ini reaches
nothing that a run leaves.
"""

import base64
import os
import shutil
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.pages import page_words
from support.usage import usage_error

PASSWORD = "hunter-22-secret"
CODED = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
HEADER = "open-sesame-header"
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
    *("--skill-record", "out/a.jsonl"),
]
MADE = {"a.json", "a.html", "a.md", "a.xml", "a.jsonl", "summary.md"}


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_skill(pytester.path / "skills/gate", [case("q", "gate up", id="a")])
    (pytester.path / "out").mkdir()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "out/summary.md"))
    for name in ("HTTP_PROXY", "http_proxy", "GENERIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return pytester.path


def with_password(server: LoopbackServer) -> str:
    return server.url.replace("//", f"//me:{PASSWORD}@") + "/v1"


def left_by(project: Path, result: pytest.RunResult) -> dict[str, bytes]:
    """All that a run wrote, and its screen."""
    files = {
        str(Path(folder, name).relative_to(project)): Path(folder, name).read_bytes()
        for folder, _, names in os.walk(project)
        for name in names
        if name != "tox.ini"
    }
    pages = {
        f"{name}, unpacked": page_words(data.decode()).encode()
        for name, data in files.items()
        if name.endswith(".html")
    }
    screen = f"{result.stdout.str()}\n{result.stderr.str()}"
    return {**files, **pages, "screen": screen.encode()}


def assert_nothing_in(left: dict[str, bytes]) -> None:
    words = [word.encode() for word in (PASSWORD, CODED, HEADER)]
    assert [name for name, data in left.items() for word in words if word in data] == []


@pytest.mark.parametrize(
    ("way", "workers"),
    [
        ("option", "0"),
        *(
            pytest.param(*night, marks=pytest.mark.nightly)
            for night in (("joined", "2"), ("override", "0"), ("ini", "0"))
        ),
    ],
)
def test_the_command_that_accepts_holds_no_password(
    pytester: pytest.Pytester, way: str, workers: str
) -> None:
    answer = ["no"]
    with LoopbackServer(lambda _: Reply(answer[0])) as server:
        url = with_password(server)
        words = {
            "option": ["--skill-base-url", url],
            "joined": [f"--skill-base-url={url}"],
            "override": ["-o", f"skill_base_url={url}"],
            "ini": [],
        }[way]
        if way == "ini":
            pytester.makeini(f"[pytest]\nskill_base_url = {url}\n")
        common = [
            "--skill",
            "skills",
            "--model",
            "qwen",
            *words,
            "-n",
            workers,
            "--skill-fresh",
        ]
        pytester.runpytest_inprocess(*common, "--skill-accept")
        answer[0] = "gate up"
        write_skill(
            pytester.path / "skills/gate",
            [case("q", "gate up", id="a")],
            body="Better.",
        )
        result = pytester.runpytest_inprocess(*common, *REPORTS)
        assert server.asked[-1].headers["authorization"] == f"Basic {CODED}"
    left = left_by(pytester.path, result)
    assert {name.removeprefix("out/") for name in left} >= MADE
    assert any(name.startswith(".upskill/runs/") for name in left)
    assert b"--skill-accept" in left["screen"]
    assert_nothing_in(left)


def test_the_command_that_records_holds_no_password(pytester: pytest.Pytester) -> None:
    (pytester.path / "empty.jsonl").write_text("")
    words = ["--skill-base-url", f"http://me:{PASSWORD}@127.0.0.1:1/v1"]
    words += ["--skill", "skills", "--model", "qwen", "--skill-replay", "empty.jsonl"]
    result = pytester.runpytest_inprocess(*words, *REPORTS[:-2])
    left = left_by(pytester.path, result)
    for name in ("screen", "out/a.json", "out/a.xml"):
        assert b"Record it: pytest --skill-base-url 'http://***@127" in left[
            name
        ].replace(b"&#x27;", b"'"), name
    assert_nothing_in(left)


@pytest.mark.parametrize(
    ("provider", "status"), [("generic.qwen", 401), ("openai:qwen", 400)]
)
def test_what_a_server_quotes_of_the_request_is_masked(
    pytester: pytest.Pytester,
    provider: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quote(asked: Asked) -> Fault:
        sent = dict(asked.headers)
        said = (
            f"{sent.get('authorization')} {sent.get('x-gate')} me:{PASSWORD} {PASSWORD}"
        )
        return Fault("status", status, message=said)

    monkeypatch.setenv("OPENAI_API_KEY", "none-needed")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Gate: {HEADER}")
    with LoopbackServer(quote) as server:
        url = with_password(server)
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("GENERIC_BASE_URL", url)
        words = ["--skill", "skills", "--model", provider, "-n", "0"]
        result = pytester.runpytest_inprocess(*words, *REPORTS)
        sent = server.asked[0].headers
    assert sent["authorization"] == f"Basic {CODED}"
    assert sent.get("x-gate") == (HEADER if provider.startswith("openai") else None)
    result.assert_outcomes(errors=1)
    assert_nothing_in(left_by(pytester.path, result))


def test_another_password_finds_the_stored_answers(pytester: pytest.Pytester) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        for user in ("me:first-password@", "me:second-password@"):
            url = f"{server.url.replace('//', f'//{user}')}/v1"
            words = ["--skill", "skills", "--model", "qwen", "--skill-base-url", url]
            pytester.runpytest_inprocess(*words).assert_outcomes(passed=1)
        assert len(server.asked) == 2  # with and without the skill


def test_eval_prints_the_command_without_the_password(
    pytester: pytest.Pytester, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(pytester.path / "out")
    url = f"http://me:{PASSWORD}@127.0.0.1:1/v1"
    main(
        ["eval", "skills/gate", "-m", "qwen", "--base-url", url, "--", "--collect-only"]
    )
    out = "".join(capfd.readouterr())
    assert (
        "pytest --skill=skills/gate --model qwen --skill-base-url"
        " 'http://***@127.0.0.1:1" in out
    )
    assert PASSWORD not in out


def test_a_url_in_place_of_a_model_is_refused_without_its_password(
    pytester: pytest.Pytester,
) -> None:
    url = f"http://me:{PASSWORD}@127.0.0.1:1/v1"
    error = usage_error(pytester, "--skill", "skills", "--model", url)
    assert "127.0.0.1" in error
    assert PASSWORD not in error
