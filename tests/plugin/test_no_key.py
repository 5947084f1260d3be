"""Models that only the ini file names, on a machine without their key."""

import pytest

from support.kit import write_skill
from support.usage import usage_error

LAST_LINE = "! skills not tested: {} is not set ({}). Set {}*"


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    write_ini(pytester)
    pytester.makepyfile(
        """
        import pytest

        def test_project():
            pass

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            assert "up" in ask("Which command opens the gate?").text
        """
    )


def write_ini(
    pytester: pytest.Pytester,
    *lines: str,
    models: str = "haiku",
    skills: str = "skills",
) -> None:
    settings = [f"skill_paths = {skills}", f"skill_models = {models}", *lines]
    pytester.makeini("\n".join(["[pytest]", *settings]))


@pytest.mark.parametrize("options", [[], ["-q"], ["-q", "-n1"]])
def test_skill_tests_are_skipped_and_the_last_line_says_so(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes(passed=1, skipped=2)
    key = "ANTHROPIC_API_KEY"
    expected = LAST_LINE.format(key, "model haiku", key)
    pytest.LineMatcher(result.outlines[-1:]).fnmatch_lines([expected])


def test_failure_of_another_test_sets_the_exit_status(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_other="def test_other(): assert 0")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, failed=1, skipped=2)


def test_tests_in_python_are_skipped_without_other_skills(
    pytester: pytest.Pytester,
) -> None:
    write_ini(pytester, skills="")
    result = pytester.runpytest_inprocess("-q")
    result.assert_outcomes(passed=1, skipped=1)
    assert result.outlines[-1].startswith("! skills not tested: ")


def test_nothing_is_said_if_no_skill_test_is_selected(
    pytester: pytest.Pytester,
) -> None:
    result = pytester.runpytest_inprocess("-k", "test_project")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*skills not tested*")


def test_gates_of_the_ini_file_are_not_broken(pytester: pytest.Pytester) -> None:
    write_ini(pytester, "skill_min_lift = 20", "skill_min_pass_rate = 0.5")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.OK


def test_judge_without_a_key_counts_like_a_model(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    write_ini(pytester, "skill_judge = openai:gpt-5.2")
    result = pytester.runpytest_inprocess()
    key, judge = "OPENAI_API_KEY", "judge openai:gpt-5.2"
    expected = LAST_LINE.format(key, judge, key)
    pytest.LineMatcher(result.outlines[-1:]).fnmatch_lines([expected])


def test_agent_without_its_login_counts_like_a_key(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(pytester.path / "config"))
    monkeypatch.delenv("CLAUDE_CODE_OAUTH_TOKEN", raising=False)
    write_ini(pytester, "skill_agents = claude", "skill_login = true")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, skipped=2)
    assert "claude is not logged in" in result.outlines[-1]


@pytest.mark.parametrize(
    "args",
    [
        ["--model", "haiku"],
        ["--skill", "skills"],
        ["skills/gate/skill_meta.json"],
        ["--skill-min-lift", "20"],
        ["--skill-accept"],
    ],
)
def test_asking_for_skills_on_the_command_line_needs_the_key(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    assert "ANTHROPIC_API_KEY is not set" in usage_error(pytester, *args)


def test_ci_needs_the_key(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    error = usage_error(pytester)
    assert "tox.ini: skill_models: haiku: ANTHROPIC_API_KEY is not set" in error


def test_unknown_model_in_the_ini_file_is_an_error(pytester: pytest.Pytester) -> None:
    write_ini(pytester, models="hiaku")
    assert 'did you mean "haiku"?' in usage_error(pytester)
