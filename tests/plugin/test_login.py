"""--skill-login: a CLI of a vendor is asked on the user's login to it."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.agents.clis.claude import ClaudeCode
from pytest_upskill.agents.logins import CLAUDE
from pytest_upskill.cli import main
from support.fake_cli import fake_cli
from support.kit import case, write_skill
from support.logins import SETUP_TOKEN, at, write_claude_login
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap
from support.usage import usage_error

BEARER = f"Bearer {SETUP_TOKEN}"
LOOK = "(env; cat ~/.claude/.c* /proc/*/environ) 2>&- | grep -ac oat01"
NOT_FOUND = "0"
LIMIT = "anthropic-ratelimit-unified"
CLAUDE_ON_HAIKU = ("--skill", "skills", "--skill-agent", "claude", "--model", "haiku")


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who is logged in to Claude Code, and has no key."""
    path = fake_cli(pytester.path / "bin")
    monkeypatch.setenv("PATH", f"{path}:/usr/local/bin:/usr/bin:/bin")
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    write_cases(pytester, "a")
    return pytester.path


def write_cases(pytester: pytest.Pytester, names: str) -> None:
    cases = [case(f"Open gate {name}.", "gate up", id=name) for name in names]
    write_skill(pytester.path / "skills/gate", cases)


def answered(asked: Asked) -> Reply | Fault:
    """Looks for the token first, as a hostile skill would."""
    if asked.tools and not asked.results:
        return Reply(calls=(("bash", {"command": LOOK}),))
    return Reply('gate up {"verdicts": []}')


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(answered) as server:
        monkeypatch.setattr(ClaudeCode, "login", at(CLAUDE, server.url))
        yield server


def run_claude(pytester: pytest.Pytester, *args: str) -> SkillRun:
    return run_skills(
        pytester, "haiku", "--skill-agent", "claude", "--skill-login", *args
    )


def without_secrets(folder: Path, *secrets: str) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and "bin" not in file.parts:
            data = file.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in data], file


@needs_bwrap
def test_claude_is_asked_on_the_login_and_never_sees_it(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    run = run_claude(pytester, "--skill-html", "page.html")
    assert run.outcomes == {"passed": 1}
    assert {asked.headers["authorization"] for asked in server.asked} == {BEARER}
    assert {result for asked in server.asked for result in asked.results} == {NOT_FOUND}
    assert run.report["logins"] == ["claude/haiku"]
    assert (
        "upskill: on your login, not with a key: claude/haiku (CLAUDE_CODE_OAUTH_TOKEN)"
        in (run.screen)
    )
    # header, table, last lines
    assert run.screen.count("at list price, on a plan") == 3
    assert SETUP_TOKEN not in run.screen
    without_secrets(pytester.path, SETUP_TOKEN)


CONFTEST = """
from pytest_upskill.agents.clis.claude import ClaudeCode
from pytest_upskill.agents.logins import CLAUDE

ClaudeCode.login = type(CLAUDE)({url!r})
"""


@needs_bwrap
def test_a_killed_run_leaves_nothing_of_a_login_on_disk(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = pytester.mkdir("tmp")
    monkeypatch.setenv("TMPDIR", str(temporary))
    is_asked, is_killed = threading.Event(), threading.Event()

    def holds(asked: Asked) -> Reply | Fault:
        if asked.results:
            is_asked.set()
            is_killed.wait(60)
        return answered(asked)

    with LoopbackServer(holds) as server:
        pytester.makeconftest(CONFTEST.format(url=server.url))
        words = [sys.executable, "-m", "pytest", *CLAUDE_ON_HAIKU, "--skill-login"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        assert is_asked.wait(60)
        process.kill()
        process.wait()
        is_killed.set()
    assert list(temporary.iterdir())
    assert {asked.headers["authorization"] for asked in server.asked} == {BEARER}
    without_secrets(pytester.path, SETUP_TOKEN)


@needs_bwrap
def test_nobody_else_is_asked_on_the_login(
    pytester: pytest.Pytester, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = {"id": "j", "input": "Open it.", "expected": {"judge": ["It opens."]}}
    write_skill(pytester.path / "skills/gate", [judged])
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-chat-made-up-3e4f5a6b")
    others = ("--skill-agent", "chat", "--skill-agent", "loop", "--model", "ollama:m")
    args = (*others, "--skill-judge", "ollama:judge", "-k", "ollama or claude/haiku")
    run = run_claude(pytester, *args, "--skill-no-baseline")
    assert run.report["logins"] == ["claude/haiku"]
    on_login = [asked for asked in server.asked if SETUP_TOKEN in str(asked.headers)]
    assert on_login
    assert {asked.model for asked in on_login} == {"claude-haiku-5-5"}
    assert {asked.model for asked in server.asked} == {"claude-haiku-5-5", "m", "judge"}
    assert all(SETUP_TOKEN not in asked.content.decode() for asked in server.asked)


@needs_bwrap
@pytest.mark.usefixtures("server")
def test_no_ini_file_chooses_a_login_in_silence(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskill_login = true\naddopts = -q --no-header\n")
    run = run_skills(pytester, "haiku", "--skill-agent", "claude")
    before, asked, _ = run.screen.partition("\n. ")
    assert asked
    assert "by claude on your login" in " ".join(before.split())


@needs_bwrap
def test_a_study_says_that_it_asks_on_a_login(
    pytester: pytest.Pytester,
    server: LoopbackServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for skill in ("gate", "door"):
        write_skill(
            pytester.path / "skills" / skill, [case("Open it.", "gate up", id="a")]
        )
    words = [
        "matrix",
        "skills/gate",
        "skills/door",
        "--agent",
        "claude",
        "--model",
        "haiku",
    ]
    main([*words, "--login", "--runs", "1", "--yes", "--json", "out.json"])
    assert (
        "Asked on your login, not with a key: claude/haiku" in capsys.readouterr().out
    )
    assert json.loads(Path("out.json").read_text())["logins"] == ["claude/haiku"]
    assert {asked.headers["authorization"] for asked in server.asked} == {BEARER}
    without_secrets(pytester.path, SETUP_TOKEN)


@needs_bwrap
def test_a_usage_limit_ends_a_run_that_the_next_one_completes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    resets = (round(time.time()) // 60 + 3 * 1440) * 60
    limited = True

    def script(asked: Asked) -> Reply | Fault:
        if limited and "gate a" not in asked.question:
            headers = {f"{LIMIT}-status": "rejected", f"{LIMIT}-reset": str(resets)}
            return Fault("status", 429, headers=headers, message="over")
        return Reply("gate up")

    write_cases(pytester, "abc")
    one = pytester.makefile(".ini", pytest="[pytest]\nskill_agents_at_once = 1\n")
    args = ("-c", str(one), "--skill-no-baseline")
    with LoopbackServer(script) as server:
        monkeypatch.setattr(ClaudeCode, "login", at(CLAUDE, server.url))
        run = run_claude(pytester, *args)
        assert run.outcomes == {"passed": 1, "errors": 2}
        assert run.status == 1
        when = time.strftime("%H:%M on %A, %d %B", time.localtime(resets))
        errors = {record["error"] for record in run.records if record["error"]}
        [error] = errors
        assert (
            "claude/haiku: the usage limit of your plan is reached; it resets at"
            f" {when}" in error
        )
        assert len(server.asked) == 2  # the limit was met once
        assert "--skill-login" in run.report["rerun"]["options"]
        limited = False
        run = run_claude(pytester, *args)
        assert run.outcomes == {"passed": 3}
        assert len(server.asked) == 2 + 2


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            ["--skill-agent", "loop"],
            "--skill-login: no agent of this run can use one\n  These can",
        ),
        (
            ["--skill-agent", "gemini", "--model", "gemini:x"],
            "no agent of this run can use one",
        ),
        (
            ["--skill-agent", "claude", "--model", "ollama:x"],
            "no agent of this run can use one",
        ),
        (
            ["--skill-agent", "claude", "--skill-base-url", "http://x"],
            "with --skill-base-url",
        ),
        (
            ["--skill-agent", "claude", "--skill-sandbox", "none"],
            "with --skill-sandbox none",
        ),
        (
            ["--skill-agent", "claude", "--skill-cluster", "local:1"],
            "with --skill-cluster",
        ),
    ],
)
def test_what_a_login_is_not_for_is_a_usage_error(
    args: list[str], problem: str, pytester: pytest.Pytester
) -> None:
    models = [] if "--model" in args else ["--model", "haiku"]
    assert problem in usage_error(
        pytester, "--skill", "skills", "--skill-login", *models, *args
    )


def test_a_login_never_goes_to_another_server(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    error = usage_error(pytester, *CLAUDE_ON_HAIKU, "--skill-login")
    assert (
        "ANTHROPIC_BASE_URL names another server, which a login never goes to" in error
    )


def test_who_is_not_logged_in_learns_how(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_CODE_OAUTH_TOKEN")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(pytester.path / "config"))
    error = usage_error(pytester, *CLAUDE_ON_HAIKU, "--skill-login")
    assert "claude is not logged in\n  claude setup-token" in error
    error = usage_error(pytester, *CLAUDE_ON_HAIKU)
    assert "ANTHROPIC_API_KEY is not set" in error
    assert "--skill-login" in error


def test_a_login_is_not_used_unless_it_is_asked_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_claude_login(pytester.path / "config")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(file.parent))
    assert json.loads(file.read_text())
    assert "ANTHROPIC_API_KEY is not set" in usage_error(pytester, *CLAUDE_ON_HAIKU)
