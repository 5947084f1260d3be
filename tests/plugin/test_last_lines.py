"""The last lines of a run: what to conclude, what was spent, and a command that works."""

import json
import os
import re
import shlex
import sys

import pytest

from pytest_upskill.reports.html.case_data import anchor
from support.kit import BODY, case, ending, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.terminal import run_on_terminal


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    """A skill of ten cases, two of which fail, in a folder that needs quotes."""
    cases = [case(f"Question {n}?", "gate up" if n > 1 else "never", id=f"c{n}") for n in range(10)]
    write_skill(pytester.path / "my skills/gate", cases)
    return write_script(pytester.path / "a.json")


def next_words(result: pytest.RunResult) -> list[str]:
    [line] = [line for line in ending(result) if line.startswith("next: ")]
    name, *words = shlex.split(line.removeprefix("next: "))
    assert name == "pytest"
    return words


def test_failed_tests_run_again_by_the_next_command(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    args = ["--skill", "my skills", "--model", model, f"-n{workers}", "--skill-fresh", "-q"]
    args += ["--skill-html", "r.html", "--skill-min-lift=0.1", "--skill-json", "r.json"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == 1
    first, page, spent, _ = ending(result)
    assert first == f"✘ gate helps {model} +80 (+38 to +94); 2 of 10 tests failed"
    assert page == f"page: r.html#case-{anchor('gate', 'c0', model)}"
    assert re.fullmatch(r"spent \d+ tokens, 20 calls", spent)
    words = next_words(result)
    assert words == ["--lf", "-v", "--skill", "my skills", "--model", model, f"-n{workers}"]
    again = pytester.runpytest_inprocess(*words)
    again.assert_outcomes(failed=2)


def test_the_same_options_with_page_in_a_failure(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill", "my skills", "--model", model, "--skill-no-baseline", "--skill-runs", "2"]
    result = pytester.runpytest_inprocess(*args, "--skill-html", "r.html", "-k", "c1")
    text = result.stdout.str().partition("To run it again: ")[2]
    command, rest = re.sub(r" \\\n", "", text).split("\n", 1)
    words = shlex.split(command)
    assert words[:2] == ["pytest", "-vv"]
    assert words[3:] == ["--skill-runs", "2", "--skill-no-baseline"]
    link = rest.partition("In the page: r.html#")[2].split("\n")[0]
    assert link == f"case-{anchor('gate', 'c1', model)}"
    again = pytester.runpytest_inprocess(*words[1:])
    again.assert_outcomes(failed=1)


def test_a_failed_test_in_python_tells_how_to_run_it(pytester: pytest.Pytester, model: str) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.skill("my skills/gate")
        def test_it(ask):
            assert "never" in ask("How?")
        """
    )
    name = "test_a_failed_test_in_python_tells_how_to_run_it.py"
    result = pytester.runpytest_inprocess("--model", model, name)
    assert "To run it again: pytest" in result.stdout.str()
    assert ending(result)[0].startswith("✘ gate no effect shown on")


def test_errors_tell_to_fix_them_and_ask_the_rest(pytester: pytest.Pytester, model: str) -> None:
    (pytester.path / "a.json").write_text(json.dumps([{"system": BODY, "answer": "gate up"}]))
    args = ["--skill", "my skills", "--model", model]
    result = pytester.runpytest_inprocess(*args, "--skill-fresh")
    assert result.ret == 1
    first, *_, fix, _ = ending(result)
    assert first == f"✘ gate incomplete on {model} (10 answers missing)"
    assert fix == "fix the errors, then the same command starts"
    assert next_words(result) == args
    alone = pytester.runpytest_inprocess(*args, "-k", "c1")
    assert "To run it again: pytest" in alone.stdout.str()


def test_an_interrupted_run_says_what_is_kept_and_what_is_not_reached(
    pytester: pytest.Pytester, model: str, workers: str
) -> None:
    write_skill(pytester.path / "my skills/wall")
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(report):
            if report.when == "call":
                pytest.exit("enough")
        """
    )
    args = ["--skill", "my skills", "--model", model, f"-n{workers}"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    lines = ending(result)
    assert re.fullmatch(r"✘ interrupted: enough; \d+ of 11 tests did not run", lines[0])
    assert lines[1] == "✘ not reached: wall"
    assert "the same command starts over: answers of scripted models are not kept" in lines
    assert next_words(result) == args


def test_a_budget_that_is_too_small_is_raised_not_tried_again(
    pytester: pytest.Pytester, model: str
) -> None:
    args = ["--skill", "my skills", "--model", model, "--skill-max-tokens", "1"]
    *_, last = ending(pytester.runpytest_inprocess(*args))
    assert last == "next: raise --skill-max-tokens; then the same command starts over"


def test_stopping_at_the_first_failure_leads_to_that_failure(
    pytester: pytest.Pytester, model: str
) -> None:
    result = pytester.runpytest_inprocess("--skill", "my skills", "--model", model, "-x")
    assert ending(result)[0].startswith("✘ interrupted: stopping after 1 failures; 9 of 10 tests")
    assert next_words(result)[:2] == ["--lf", "-v"]


def test_errors_of_collection_ask_nothing(pytester: pytest.Pytester, model: str) -> None:
    pytester.makepyfile(test_bad="import nowhere_to_be_found")
    result = pytester.runpytest_inprocess("--skill", "my skills", "--model", model, "test_bad.py")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    first, fix, _ = ending(result)
    assert first == "✘ nothing was asked: 1 error during collection"
    assert fix == "fix the errors, then the same command starts"


def test_other_tests_that_fail_leave_no_tick_alone(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    pytester.makepyfile(test_bad="def test_bad(): assert False")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "test_bad.py")
    assert result.ret == 1
    assert ending(result)[0] == "✘ failed: see above"


def test_a_run_without_tests_of_skills_says_nothing(pytester: pytest.Pytester, model: str) -> None:
    pytester.makepyfile(test_good="def test_good(): pass")
    pytester.makeini(f"[pytest]\nskill_paths = my skills\nskill_models = {model}")
    result = pytester.runpytest_inprocess("test_good.py")
    assert result.ret == 0
    assert ending(result) == []


def test_what_was_spent_of_the_budget_and_what_the_cache_had(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [case(n, "yes", id=n) for n in ("one", "two")])
    pytester.makeini("[pytest]\nskill_prices = m 1000 1000")
    with LoopbackServer(lambda _: Reply("yes")) as server:
        url = server.url.replace("://", "://me:opensesame7@")
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{url}/v1"]
        args += ["--skill-max-cost", "100", "--skill-max-output", "9"]
        first = pytester.runpytest_inprocess(*args, "-k", "one")
        second = pytester.runpytest_inprocess(*args)
        third = pytester.runpytest_inprocess(*args, "-q")
    found = [line for run in (first, second) for line in ending(run) if "spent" in line]
    assert re.fullmatch(r"spent \$[\d.]+ of \$100\.00, 2 calls", found[0])
    assert re.fullmatch(r"spent \$[\d.]+ of \$100\.00, 4 calls \(2 from cache\)", found[1])
    assert "spent nothing: 4 answers from cache" in ending(third)
    assert "opensesame7" not in first.stdout.str()


def test_results_that_help_are_worth_accepting_once(pytester: pytest.Pytester) -> None:
    cases = [case(f"Question {n}?", "gate up", id=f"c{n}") for n in range(10)]
    write_skill(pytester.path / "skills/gate", cases)
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]
    first = pytester.runpytest_inprocess(*args)
    assert ending(first)[0].startswith("✔ gate helps scripted:a.json +100")
    words = next_words(first)
    assert words == [*args, "--skill-accept"]
    pytester.runpytest_inprocess(*words)
    page = [*args, "--skill-html", "skills.html"]
    assert next_words(pytester.runpytest_inprocess(*args)) == page
    assert next_words(pytester.runpytest_inprocess(*args, "--skill-accept")) == page


@pytest.mark.skipif(sys.platform == "win32", reason="has no pty")
def test_failures_and_last_lines_have_colours_on_a_terminal_only(
    pytester: pytest.Pytester, model: str
) -> None:
    args = ["--skill", "my skills", "--model", model, "-k", "c0"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    environ = {**os.environ, "TERM": "xterm"}
    environ = {name: text for name, text in environ.items() if "COLOR" not in name}
    shown = run_on_terminal(command, pytester.path, environ, 40)
    assert "\x1b[31m\x1b[1mFAIL\x1b[0m contains" in shown
    assert "\x1b[1mWith the skill: \x1b[0m\x1b[31m\x1b[1mfailed\x1b[0m" in shown
    assert "\x1b[31m\x1b[1m✘\x1b[0m gate " in shown
    plain = run_on_terminal([*command, "--color=no"], pytester.path, environ, 40)
    assert "\x1b[31m" not in plain
    assert "FAIL contains" in plain


def test_colours_do_not_reach_files(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill", "my skills", "--model", model, "-k", "c0", "--color=yes"]
    result = pytester.runpytest_inprocess(*args, "--junitxml", "j.xml")
    assert "\x1b[31m\x1b[1mFAIL\x1b[0m contains" in result.stdout.str()
    text = (pytester.path / "j.xml").read_text()
    assert "FAIL contains" in text
    assert "#x1B" not in text
