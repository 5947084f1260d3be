"""Tests in Python: the mark ``skill`` and the fixture ``ask``."""

import json

import pytest

from support.kit import BODY, write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

TEST = """
    import pytest

    @pytest.mark.skill("skills/gate")
    def test_opens(ask):
        answer = ask("How do I open the gate?")
        assert "gate up" in answer
"""


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_skill(pytester.path / "skills/gate")
    return write_script(pytester.path / "answers.json")


def ask_only(
    pytester: pytest.Pytester, model: str | LoopbackServer, *args: str
) -> SkillRun:
    """Run the tests in Python alone."""
    return run_skills(pytester, model, *args, skill="")


def test_both_arms_are_run_and_count_into_the_lift(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    pytester.makepyfile(test_gate=TEST)
    run = ask_only(pytester, model, "-n", workers)
    assert run.outcomes["passed"] == 1
    assert (run.summary["skill"], run.summary["cases"], run.summary["lift"]) == (
        "gate",
        1,
        1.0,
    )
    baseline, skill = run.records
    assert (baseline["arm"], baseline["outcome"]) == ("baseline", "failed")
    (check,) = baseline["checks"]
    assert check["check"] == "assert"
    assert check["reason"].startswith("assert 'gate up' in 'No idea.'")
    assert (skill["outcome"], skill["output"]) == ("passed", "Type gate up.")
    assert skill["case"] == "test_gate::test_opens"


def test_the_skill_arm_fails_as_any_test_fails(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_gate=TEST.replace("gate up", "gate down"))
    result = pytester.runpytest_inprocess("--model", model)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_opens[[]scripted:answers.json] _*",
            '>*assert "gate down" in answer',
            "E*AssertionError: assert 'gate down' in 'Type gate up.'",
            "test_gate.py:6: AssertionError",
            "FAILED test_gate.py::test_opens[[]scripted:answers.json] - *",
        ]
    )
    assert "python_tests" not in result.stdout.str()


def test_no_answer_is_an_error_not_a_failure(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "none.json").write_text("[]")
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_opens(ask):
            try:
                ask("q")
            except Exception:
                pass
        """
    )
    run = ask_only(pytester, "scripted:none.json")
    assert run.outcomes == {"errors": 1}
    assert "no rule in none.json matches" in run.records[0]["error"]
    assert [record["outcome"] for record in run.records] == ["errored", "errored"]


def test_every_model_every_parameter_and_fixtures(
    pytester: pytest.Pytester, model: str
) -> None:
    (pytester.path / "other.json").write_text(
        json.dumps([{"answer": "gate up and down"}])
    )
    pytester.makepyfile(
        test_gate="""
        import pytest

        class TestGate:
            @pytest.mark.skill("skills/gate")
            @pytest.mark.parametrize("word", ["up", "down"])
            def test_word(self, word, ask, tmp_path):
                assert tmp_path.is_dir()
                assert word in ask("How?")
        """
    )
    run = ask_only(pytester, model, "--model", "scripted:other.json")
    assert run.outcomes == {"passed": 3, "failed": 1}
    cases = {record["case"] for record in run.records}
    assert cases == {
        "test_gate::TestGate::test_word[up]",
        "test_gate::TestGate::test_word[down]",
    }


def test_what_is_asked_differs_by_the_skill_only(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_turns(ask):
            first = ask("Hi", system="Be brief.")
            turns = [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": first},
                {"role": "user", "content": "And now?"},
            ]
            second = ask(turns, system="Be brief.")
            assert second.answer.usage.input == 10
            assert second.answer.stop == "end"
        """
    )
    with LoopbackServer(lambda asked: Reply(asked.question.upper())) as server:
        run = ask_only(pytester, server)
        assert run.outcomes == {"passed": 1}
        assert len(server.asked) == 4
        assert ask_only(pytester, server).outcomes == {"passed": 1}
        assert len(server.asked) == 4
    systems = [asked.system for asked in server.asked]
    assert systems[0] == systems[1] == "Be brief."
    assert (
        systems[2]
        == systems[3]
        == f"Be brief.\n\n{BODY}\n\nFollow the skill above when you answer."
    )
    bodies = [
        {**asked.body, "messages": asked.body["messages"][1:]} for asked in server.asked
    ]
    assert bodies[:2] == bodies[2:]
    assert [len(body["messages"]) for body in bodies[:2]] == [1, 3]
    assert run.records[0]["input_tokens"] == 20


def test_what_was_recorded_is_replayed(pytester: pytest.Pytester, workers: str) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(test_gate=TEST)

    def answer(asked: Asked) -> Reply:
        return Reply("gate up" if BODY in asked.system else "no")

    with LoopbackServer(answer) as server:
        assert ask_only(pytester, server, "--skill-record", "a.jsonl").outcomes == {
            "passed": 1
        }
    run = ask_only(pytester, server, "--skill-replay", "a.jsonl", "-n", workers)
    assert run.outcomes["passed"] == 1


def test_runs_are_counted_and_most_must_pass(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(
        answers="def reply(question):\n    return f'run {question.run}'"
    )
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_most(ask):
            assert ask("q") != "run 1"

        @pytest.mark.skill("skills/gate")
        def test_few(ask):
            assert ask("q") == "run 1"
        """
    )
    args = ["--model", "scripted:answers.py:reply", "--skill-runs", "3", "test_gate.py"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1, failed=1)


def test_together_with_the_cases_of_the_same_skill(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_gate=TEST)
    run = run_skills(pytester, model, "test_gate.py")
    assert run.outcomes == {"passed": 2}
    assert (run.summary["skill"], run.summary["cases"]) == ("gate", 2)


def test_without_a_model_they_are_skipped(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_gate=TEST)
    result = pytester.runpytest_inprocess("-rs", "--strict-markers")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED *no model: add --model NAME*"])
    pytester.makeini(f"[pytest]\nskill_models = {model}")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_wrong_or_missing_mark_is_an_error(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/door")
    mark = "import pytest\n@pytest.mark.skill({path!r})\ndef test_it(ask): pass"
    pytester.makepyfile(
        test_nowhere=mark.format(path="skills/nowhere"),
        test_several=mark.format(path="skills"),
        test_no_mark="def test_it(ask): pass",
    )
    run = ask_only(pytester, model, "--continue-on-collection-errors")
    assert run.outcomes == {"errors": 3}
    assert (
        "test_nowhere.py::test_it: skills/nowhere: no such file or folder" in run.screen
    )
    assert "test_several.py::test_it: mark skill skills: several skills" in run.screen
    assert "ask needs @pytest.mark.skill" in run.screen


def test_a_test_that_asks_a_model_without_a_key_is_skipped(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeini("[pytest]\nskill_models = haiku")
    pytester.makepyfile(test_gate=TEST, test_other="def test_other(): pass")
    pytester.runpytest_inprocess("test_other.py", "-n", workers).assert_outcomes(
        passed=1
    )
    result = pytester.runpytest_inprocess("-n", workers)
    result.assert_outcomes(passed=1, skipped=1)
    assert result.outlines[-1].startswith("! skills not tested: ANTHROPIC_API_KEY ")


def test_skips_pass_through_and_collect_only_asks_nothing(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_skips(ask):
            pytest.skip("not today")

        @pytest.mark.skip
        @pytest.mark.skill("skills/gate")
        def test_is_skipped(ask):
            raise SystemExit
        """
    )
    pytester.runpytest_inprocess("--model", model).assert_outcomes(skipped=2)
    result = pytester.runpytest_inprocess("--model", model, "--collect-only", "-q")
    assert "test_gate.py::test_skips[scripted:answers.json]" in result.outlines


def test_an_async_test_fails(pytester: pytest.Pytester, model: str) -> None:
    pytester.makepyfile(
        test_gate=TEST.replace("def test_opens", "async def test_opens")
    )
    result = pytester.runpytest_inprocess("--model", model)
    result.stdout.fnmatch_lines(["ask does not work in async tests"])


def test_a_failure_before_a_question_counts_as_one_of_the_runs(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(
        test_gate="""
        import pytest

        calls = []

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            calls.append(ask)
            assert len(calls) != 2
            ask("Open it?")
        """
    )
    assert ask_only(pytester, model, "--skill-runs", "3").outcomes == {"passed": 1}


def test_a_wrong_question_fails_where_it_is_asked(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(
        test_gate="""
        import pytest

        pytestmark = pytest.mark.skill("skills/gate")

        def test_number(ask): ask(3)
        def test_empty(ask): ask("")
        def test_role(ask): ask([{"role": "robot", "content": "x"}])
        """
    )
    run = ask_only(pytester, model)
    assert run.outcomes == {"failed": 3}
    assert (
        run.screen.count("TypeError: ask takes a string or a list of messages: ") >= 3
    )
    assert "[0].content: must not be empty" in run.screen
    assert "python_tests" not in run.screen
    assert {record["outcome"] for record in run.records} == {"errored"}


def test_a_test_that_asks_nothing_is_an_error(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(
        test_gate=TEST.replace('ask("How do I open the gate?")', '"gate up"')
    )
    run = ask_only(pytester, model)
    assert run.outcomes == {"errors": 1}
    assert "this test never called ask" in run.screen


def test_an_xfail_does_not_expect_a_missing_answer(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "none.json").write_text("[]")
    pytester.makepyfile(
        test_gate=TEST.replace("@pytest", "@pytest.mark.xfail\n    @pytest", 1)
    )
    result = pytester.runpytest_inprocess("--model", "scripted:none.json")
    result.assert_outcomes(errors=1)
    model = write_script(pytester.path / "answers.json", knows="no")
    pytester.runpytest_inprocess("--model", model).assert_outcomes(xfailed=1)


def test_an_empty_answer_fails_the_test_that_asked(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(
        answers="""
        from pytest_upskill.trials.answer import Answer

        def silent(question):
            return Answer("\u200b", stop="refusal")
        """,
        test_gate="""
        import pytest

        pytestmark = pytest.mark.skill("skills/gate")

        def test_negative(ask):
            assert "sudo" not in ask("How?")

        def test_catches_all(ask):
            try:
                ask("How?")
            except BaseException:
                pass

        def test_expects_it(ask):
            said = ask("How?", allow_empty=True)
            assert not said.strip("\u200b")
        """,
    )
    result = pytester.runpytest_inprocess("--model", "scripted:answers.py:silent")
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            '>*ask("How?")',
            "E*Failed: the answer is empty: * refused * (ask(…, allow_empty=True)*",
        ]
    )
