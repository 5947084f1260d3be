"""The last lines of a run: whether it is worth going on, and a command that works."""

import json
import re
import shlex

import pytest

from pytest_upskill.reports.page.payload import case_anchor
from support.kit import BODY, case, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.runs import SkillRun, run_skills

FOLDER = "my skills"  # needs quotes


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    """A skill of three cases, one of which fails."""
    cases = [
        case(f"Question {n}?", "gate up" if n else "never", id=f"c{n}")
        for n in range(3)
    ]
    write_skill(pytester.path / FOLDER / "gate", cases)
    return write_script(pytester.path / "a.json")


def next_words(run: SkillRun) -> list[str]:
    """Without pytest, and without the report that each of these runs writes."""
    [line] = [line for line in run.ending if line.startswith("next: ")]
    name, *words = shlex.split(line.removeprefix("next: "))
    assert name == "pytest"
    if "--skill-json" in words:
        start = words.index("--skill-json")
        del words[start : start + 2]
    return words


def test_failed_tests_run_again_by_the_next_command(
    pytester: pytest.Pytester, model: str
) -> None:
    more = [
        "-n0",
        "--skill-fresh",
        "--skill-html",
        "r.html",
        "--skill-min-lift=0.1",
    ]
    ini = ["-o", "skill_history=false"]
    run = run_skills(pytester, model, *more, *ini, skill=FOLDER)
    assert run.status == 1
    page = f"r.html#{case_anchor('gate', 'c0', model)}"
    assert f"page: {page}" in run.ending
    words = next_words(run)
    assert words == ["--lf", "-v", "--skill", FOLDER, "--model", model, "-n0", *ini]
    pytester.runpytest_inprocess(*words).assert_outcomes(failed=1)


def test_a_failed_test_in_python_tells_how_to_run_it_again(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    rules = [{"question": "Where", "answer": "Here"}]
    (pytester.path / "a.json").write_text(json.dumps(rules))
    pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_it(ask):
            assert "never" in ask("Where?")
        """)
    run = run_skills(pytester, "scripted:a.json", ".")
    assert run.outcomes == {"failed": 1, "errors": 1}
    assert run.screen.count("Rerun: pytest") == 1


def test_errors_are_to_be_fixed_before_the_same_command(
    pytester: pytest.Pytester, model: str
) -> None:
    (pytester.path / "a.json").write_text(
        json.dumps([{"system": BODY, "answer": "gate up"}])
    )
    run = run_skills(pytester, model, "--skill-fresh", skill=FOLDER)
    assert run.status == 1
    assert run.ending[-2].startswith("fix the errors")
    assert next_words(run) == ["--skill", FOLDER, "--model", model]


@pytest.mark.usefixtures("model")
def test_calls_that_took_too_long_get_more_time_in_the_next_command(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        slow="""
        from pytest_upskill import ModelError

        def reply(question):
            raise ModelError("no answer within 30 s", timed_out=True)
        """
    )
    slow, limit = "scripted:slow.py:reply", ["--skill-timeout", "30"]
    run = run_skills(pytester, slow, *limit, skill=FOLDER)
    assert next_words(run) == [
        "--skill",
        FOLDER,
        "--model",
        slow,
        "--skill-timeout",
        "60",
    ]
    assert run.ending[-2].startswith("with more time")


def test_an_interrupted_run_says_what_is_not_kept(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / FOLDER / "wall")
    pytester.makeconftest("""
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(report):
            if report.when == "call":
                pytest.exit("enough")
        """)
    run = run_skills(pytester, model, skill=FOLDER)
    assert run.status == pytest.ExitCode.INTERRUPTED
    assert run.report["interrupted"] == "enough"
    assert not any("are kept" in line for line in run.ending)
    assert next_words(run) == ["--skill", FOLDER, "--model", model]


def test_a_budget_that_is_too_small_is_raised_not_tried_again(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "--skill-max-tokens", "1", skill=FOLDER)
    assert run.ending[-1].startswith("next: raise --skill-max-tokens")


def test_stopping_at_the_first_failure_leads_to_that_failure(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "-x", skill=FOLDER)
    assert len(run.report["lost"]) == 2
    assert any(line.startswith("✘ interrupted: ") for line in run.ending)
    assert next_words(run)[:2] == ["--lf", "-v"]


def test_errors_of_collection_ask_nothing(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_bad="import nowhere_to_be_found")
    result = pytester.runpytest_inprocess(
        "--skill", FOLDER, "--model", model, "test_bad.py"
    )
    run = SkillRun(result, {})
    assert run.status == pytest.ExitCode.INTERRUPTED
    assert len(run.ending) == 3
    assert run.ending[0].startswith("✘ nothing was asked: ")
    assert run.ending[1].startswith("fix the errors")


def test_a_run_without_tests_of_skills_says_nothing(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makepyfile(test_good="def test_good(): pass")
    pytester.makeini(f"[pytest]\nskill_paths = {FOLDER}\nskill_models = {model}")
    run = SkillRun(pytester.runpytest_inprocess("test_good.py"), {})
    assert run.status == 0
    assert run.ending == []


def test_what_was_spent_of_the_budget_and_what_the_cache_had(
    pytester: pytest.Pytester,
) -> None:
    write_skill(
        pytester.path / "skills/gate", [case(n, "yes", id=n) for n in ("one", "two")]
    )
    pytester.makeini("[pytest]\nskill_prices = m 1000 1000")
    with LoopbackServer(lambda _: Reply("yes")) as server:
        budget = ["--skill-max-cost", "100", "--skill-max-output", "9"]
        first = run_skills(pytester, server, *budget, "-k", "one")
        second = run_skills(pytester, server, *budget)
    amounts = [
        re.findall(
            r"^spent \$([\d.]+) of \$100\.00, (\d) calls(?: \((\d) from cache\))?$",
            line,
        )
        for run in (first, second)
        for line in run.ending
        if line.startswith("spent")
    ]
    assert amounts == [[("0.03", "2", "")], [("0.03", "4", "2")]]  # 15 tokens a call


def test_colours_reach_the_screen_and_no_file(
    pytester: pytest.Pytester, model: str
) -> None:
    more = ["-k", "c0", "-v", "--color=yes", "--junitxml", "j.xml"]
    run = run_skills(pytester, model, *more, skill=FOLDER)
    assert "\x1b[31m\x1b[1mFAIL\x1b[0m contains" in run.screen
    assert "\x1b[31m\x1b[1m✘\x1b[0m 1 of 1 test failed" in run.screen
    text = (pytester.path / "j.xml").read_text()
    assert "FAIL contains" in text
    assert "#x1B" not in text


def test_what_fails_again_is_not_suggested(
    pytester: pytest.Pytester, model: str
) -> None:
    run_skills(pytester, model, skill=FOLDER)
    again = run_skills(pytester, model, "--lf", "-v", skill=FOLDER)
    assert next_words(again)[:2] == ["--lf", "-vv"]
    last = run_skills(pytester, model, "--lf", "-vv", skill=FOLDER)
    assert not any(line.startswith("next: ") for line in last.ending)

    # Every test passes, and a gate does not.
    gate = run_skills(
        pytester, model, "-k", "c1", "--skill-max-token-growth", "0.1", skill=FOLDER
    )
    assert gate.status == 1
    assert not any(line.startswith("next: ") for line in gate.ending)

    (pytester.path / "empty.jsonl").touch()
    replay = run_skills(pytester, model, "--skill-replay", "empty.jsonl", skill=FOLDER)
    words = next_words(replay)
    assert words[-2:] == ["--skill-record", "empty.jsonl"]
    assert "--skill-replay" not in words
