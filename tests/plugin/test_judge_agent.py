"""--skill-judge claude/haiku: rubrics are judged by an agent, with a key or on a
login.
"""

import pytest

from pytest_upskill.agents.clis.claude import ClaudeCode
from pytest_upskill.agents.logins import CLAUDE
from support.fake_cli import fake_cli
from support.judges import judge_says
from support.kit import write_script, write_skill
from support.logins import SETUP_TOKEN, at
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap
from support.usage import usage_error

RUBRIC = [{"id": "a", "input": "How?", "expected": {"judge": ["It names the gate."]}}]
BY_CLAUDE = ("--skill-judge", "claude/haiku")


@pytest.fixture(autouse=True)
def model(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> str:
    path = fake_cli(pytester.path / "bin")
    monkeypatch.setenv("PATH", f"{path}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    write_skill(pytester.path / "skills/gate", RUBRIC)
    return write_script(pytester.path / "answers.json")


def judged(asked: Asked) -> Reply:
    answer = asked.question.split("<answer ")[1].split("</answer ")[0]
    verdict = "pass" if "gate up" in answer else "fail"
    ruling = {"criterion": 1, "quote": "", "reason": "as I read it", "verdict": verdict}
    return Reply(judge_says(asked.question, [ruling]))


def outcomes(run: SkillRun) -> dict[str, str]:
    return {record["arm"]: record["outcome"] for record in run.records}


@needs_bwrap
def test_an_agent_judges_with_a_key_and_is_asked_once(
    pytester: pytest.Pytester, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer(judged) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-judge-made-up-3e4f5a6b")
        for _ in range(2):
            run = run_skills(pytester, model, *BY_CLAUDE)
            assert outcomes(run) == {"baseline": "failed", "skill": "passed"}
            assert {record["judge"]["calls"] for record in run.records} == {1}
            assert (run.report["judge"], run.report["logins"]) == ("claude/haiku", [])
        assert len(server.asked) == 2
        assert "You grade an answer by a list of criteria" in server.asked[0].question


@needs_bwrap
def test_an_agent_judges_on_a_login(
    pytester: pytest.Pytester, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    with LoopbackServer(judged) as server:
        monkeypatch.setattr(ClaudeCode, "login", at(CLAUDE, server.url))
        run = run_skills(pytester, model, *BY_CLAUDE, "--skill-login")
    assert outcomes(run) == {"baseline": "failed", "skill": "passed"}
    assert run.report["logins"] == ["claude/haiku"]
    assert {asked.headers["authorization"] for asked in server.asked} == {
        f"Bearer {SETUP_TOKEN}"
    }
    assert "only for agents" not in run.screen


@needs_bwrap
def test_a_useless_reply_of_an_agent_is_not_kept(
    pytester: pytest.Pytester, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    says: Reply | None = Reply("Looks good to me!")
    with LoopbackServer(lambda asked: says or judged(asked)) as server:
        monkeypatch.setattr(ClaudeCode, "login", at(CLAUDE, server.url))
        args = (*BY_CLAUDE, "--skill-login", "--skill-no-baseline")
        assert outcomes(run_skills(pytester, model, *args)) == {"skill": "errored"}
        assert len(server.asked) == 2  # it got a second chance
        says = None
        assert outcomes(run_skills(pytester, model, *args)) == {"skill": "passed"}


def test_a_name_at_a_server_is_no_agent(pytester: pytest.Pytester) -> None:
    with LoopbackServer(judged) as server:
        run = run_skills(
            pytester, server, "--skill-judge", "gemini/flash", "--collect-only"
        )
    assert run.status == 0
    assert "upskill: rubrics judged by gemini/flash" in run.screen


@pytest.mark.parametrize(
    ("judge", "problem"),
    [
        ("codex/haiku", "codex speaks OpenAI Responses, and haiku does not"),
        ("claude/nothing", "unknown model"),
        ("clod/haiku", "unknown model"),
    ],
)
def test_a_judge_that_can_t_be_asked_is_a_usage_error(
    judge: str, problem: str, pytester: pytest.Pytester, model: str
) -> None:
    assert problem in usage_error(
        pytester, "--skill", "skills", "--model", model, "--skill-judge", judge
    )
