"""-v, -q and the terminal: the summary, and the numbers on the line of a test."""

import os
import re
import sys
from pathlib import Path

import pytest

from pytest_upskill.reports.terminal.layout import ASCII_MARKS, Marks
from pytest_upskill.reports.terminal.live import item_numbers
from pytest_upskill.trials.records import Record
from support.kit import BODY, case, commit_all, ending, write_script, write_skill
from support.terminal import run_on_terminal, seen

FAKE = """
    def answer(question):
        if "gate up" not in (question.system or ""):
            return "gate up" if question.run == 1 else "No idea."
        return "Push it." if "fail" in question.messages[-1][1] else "Type gate up."
"""
MODEL = "scripted:fake.py:answer"


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    cases = [case(f"{name}?", "gate up", id=name) for name in ("fails", "opens", "xfails")]
    cases[2]["xfail"] = "too hard"
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(fake=FAKE)
    return ["--skill", "skills", "--model", MODEL, "--skill-runs", "3"]


def test_v_puts_the_numbers_on_the_line_of_each_test(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    result = pytester.runpytest_inprocess(*args, "-v")
    result.stdout.fnmatch_lines(
        [
            f"*::fails?{MODEL}? FAILED 0/3 · baseline 1/3 · * → * tokens*[[] 33%]",
            f"*::opens?{MODEL}? PASSED 3/3 · baseline 1/3 · * → * tokens*[[] 66%]",
            f"*::xfails?{MODEL}? XFAIL 0/3 · baseline 1/3 · * → * tokens*[[]100%]",
        ]
    )
    result.stdout.fnmatch_lines([f"FAILED skills/gate/skill_meta.json::fails?{MODEL}? - *"])
    assert result.parseoutcomes() == {"failed": 1, "passed": 1, "xfailed": 1}
    plain = pytester.runpytest_inprocess(*args)
    assert "baseline 1/3" not in plain.stdout.str()


def test_the_numbers_come_before_the_name_under_xdist(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    result = pytester.runpytest_inprocess(*args, "-v", "-n2", "--skill-no-baseline")
    result.stdout.fnmatch_lines_random(
        [
            "[[]gw?] [[]*%] FAILED 0/3 · * tokens *::fails*",
            "[[]gw?] [[]*%] PASSED 3/3 · * tokens *::opens*",
        ]
    )
    assert "· baseline" not in result.stdout.str()


def test_a_test_in_python_has_its_numbers_too(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_it(ask):
            assert "gate up" in ask("How do I open the gate?")

        def test_other():
            pass
        """
    )
    result = pytester.runpytest_inprocess("--model", model, "-v")
    result.stdout.fnmatch_lines(["*::test_it?*? PASSED 1/1 · baseline 0/1 · * tokens*"])
    result.stdout.fnmatch_lines(["*::test_other PASSED  *"])


def test_the_numbers_at_a_git_ref_are_shown(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    commit_all(pytester.path)
    args = ["--skill", "skills", "--model", model, "--skill-against", "main", "-v"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(["* PASSED 1/1 · baseline 0/1 · at main 1/1 · * tokens*"])


def test_an_error_and_a_skip_have_no_numbers(pytester: pytest.Pytester) -> None:
    skipped = case("b", "gate", id="later", skip="not yet")
    write_skill(pytester.path / "skills/gate", [case("a", "gate", id="errs"), skipped])
    (pytester.path / "a.json").write_text('[{"system": "gate up", "answer": "gate"}]')
    args = ["--skill", "skills", "--model", "scripted:a.json", "-v"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(["*::errs* ERROR  *", "*::later* SKIPPED (not yet)*"])


def record(arm: str, passed: bool, tokens: int | None = 100) -> Record:
    outcome = "passed" if passed else "failed"
    return Record("s", "c", "m", arm, 1, outcome, input_tokens=tokens, output_tokens=11)  # type: ignore[arg-type]


def test_tokens_are_means_and_left_out_where_they_are_not_known() -> None:
    skill = [record("skill", True, 1100), record("skill", False, 1900)]
    baseline = [record("baseline", False), record("baseline", False)]
    assert item_numbers(baseline + skill, Marks()) == "1/2 · baseline 0/2 · 111 → 1,511 tokens"
    assert item_numbers(skill, ASCII_MARKS) == "1/2 - 1,511 tokens"
    unknown = [record("skill", True, None), record("skill", True)]
    assert item_numbers(unknown, Marks()) == "2/2"
    assert item_numbers([*skill, record("previous", True)], ASCII_MARKS, "a" * 30) == (
        f"1/2 - at {'a' * 19}~ 1/1 - 1,511 tokens"
    )
    assert item_numbers([], Marks()) == ""


def shown_on_terminal(folder: Path, columns: int, *args: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    environ = {**os.environ, "TERM": "xterm"}
    return seen(run_on_terminal(command, folder, environ, 60, columns), 60, columns)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_percentage_is_at_the_end_of_a_terminal_line(
    pytester: pytest.Pytester, args: list[str], columns: int
) -> None:
    shown = shown_on_terminal(pytester.path, columns, *args, "-v")
    numbered = [line for line in shown if "baseline 1/3" in line]
    assert len(numbered) == 3
    # The reason of an expected failure is written by pytest where there is room.
    assert all(re.search(r"tokens( \(too .*\))? +\[[ \d]+%\]$", line) for line in numbered)
    assert {len(line) for line in numbered} == {columns - 1}
    names = [line for line in shown if line.startswith("skills/gate/skill_meta.json::")]
    assert [("baseline" in name) for name in names] == [columns == 120] * 3


def test_both_answers_are_side_by_side_on_a_wide_terminal(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json", knows="Push it.")
    args = ["--skill", "skills", "--model", model, f"-n{workers}"]
    broad = shown_on_terminal(pytester.path, 120, *args)
    assert any(re.search("With the skill: failed +│ Without it", line) for line in broad)
    narrow = shown_on_terminal(pytester.path, 100, *args)
    assert "With the skill: failed" in narrow


def test_q_shows_only_the_last_lines(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    result = pytester.runpytest_inprocess(*args, "-q", "-k", "opens", f"-n{workers}")
    passed = next(n for n, line in enumerate(result.outlines) if line.startswith("1 passed"))
    assert result.outlines[passed - 1].startswith(".")
    line, spent, after = ending(result)
    assert re.fullmatch(rf"· gate no effect shown on {MODEL} \+67 \(.*\); only 1 of 3 cases", line)
    assert re.fullmatch(r"spent \d+ tokens, 6 calls", spent)
    assert after.startswith("next: pytest --skill skills ")
    failed = pytester.runpytest_inprocess(*args, "-q", f"-n{workers}")
    text = failed.stdout.str()
    assert "= skills =" not in text
    assert "\nmodel " not in text
    assert ending(failed)[0].endswith("; 1 of 3 tests failed")


@pytest.mark.parametrize("quiet", ["-qq", "--no-summary"])
def test_a_failed_gate_is_reported_without_a_summary_too(
    pytester: pytest.Pytester, args: list[str], quiet: str
) -> None:
    result = pytester.runpytest_inprocess(*args, quiet, "-k", "opens", "--skill-min-lift", "0.9")
    assert result.ret == 1
    told = f"✘ gate: gate on {MODEL}: lift is +67 points"
    assert any(line.startswith(told) for line in result.outlines)
    assert not any("→" in line or "= skills =" in line for line in result.outlines)


@pytest.mark.parametrize(("quiet", "shown"), [("-q", True), ("-qq", False)])
def test_qq_does_not_show_how_many_calls_there_are(
    pytester: pytest.Pytester, args: list[str], quiet: str, shown: bool
) -> None:
    result = pytester.runpytest_inprocess(*args, quiet)
    assert any(line.startswith("upskill: up to ") for line in result.outlines) is shown


def test_q_reports_problems(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "a.json").write_text('[{"system": "gate up", "answer": "gate"}]')
    args = ["--skill", "skills", "--model", "scripted:a.json", "-q"]
    result = pytester.runpytest_inprocess(*args)
    assert ending(result)[0] == "✘ gate incomplete on scripted:a.json (1 answer missing)"


def test_a_failure_looks_the_same_in_a_worker(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for workers in ("-n0", "-n2"):
        monkeypatch.setenv("COLUMNS", "130")
        result = pytester.runpytest_inprocess(*args, workers, "-k", "fails and not xfails")
        start = next(n for n, line in enumerate(result.outlines) if line.startswith("Question:"))
        stop = next(n for n, line in enumerate(result.outlines) if "= skills =" in line)
        texts.append([line for line in result.outlines[start:stop] if "gw0" not in line])
    assert texts[0] == texts[1]
    row = next(line for line in texts[0] if line.startswith("Run 1, with the skill: failed"))
    assert row.endswith(" │ Run 1, without it: passed")
    assert any(line.endswith("│   | »gate up«") for line in texts[0])


def test_a_terminal_without_the_characters_gets_ascii(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    for more in (["-v"], ["-q"], ["-vv", "-n2"]):
        text = pytester.runpytest_subprocess(*args, *more).stdout.str()
        assert text.isascii()
        assert "\\u" not in text
        assert ("->" in text) is (more != ["-q"])  # there is no table
        assert ">>gate up<<" in text
        assert "\nFAIL gate no effect shown on " in text


def test_many_skills_are_a_matrix_and_v_has_the_tables(pytester: pytest.Pytester) -> None:
    for number in range(7):
        write_skill(pytester.path / f"skills/gate{number}", body=f"{BODY} {number}")
    models = [write_script(pytester.path / f"{name}.json") for name in ("a", "b")]
    args = ["--skill", "skills", *(arg for model in models for arg in ("--model", model))]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(
        [
            "skill * scripted:a.json * scripted:b.json",
            "gate0 * 0→100 +100 * 0→100 +100",
            "gate6 * 0→100 +100 * 0→100 +100",
            "No effect shown 14.",
            "-v shows the table of each skill.",
        ]
    )
    assert "model  " not in result.stdout.str()
    verbose = pytester.runpytest_inprocess(*args, "-v")
    verbose.stdout.fnmatch_lines(
        ["skill * scripted:b.json", "gate6 · *", "gate0 on scripted:a.json: *", "No effect shown *"]
    )


EVIL = "\x1b]8;;http://a\x07gate\x1b]8;;\x07 \x1b[2J\u202egate\x9b"


@pytest.mark.parametrize("more", [[], ["-q"], ["-vv"], ["-v", "-rA", "-n2"]])
def test_untrusted_text_is_escaped_on_the_terminal(
    pytester: pytest.Pytester, more: list[str]
) -> None:
    wrong = [case(EVIL, f"no {EVIL}", id=name) for name in ("a", "b", "c", "d")]
    wrong[1]["xfail"] = wrong[2]["skip"] = EVIL
    wrong[3]["expected"] = {"contains": "gate", "regex": "g.te", "max_words": 1}
    write_skill(pytester.path / "skills/gate", wrong)
    model = write_script(pytester.path / "a.json", knows=EVIL, does_not=EVIL)
    args = ["--skill", "skills", "--model", model, "--color=no", "-rxs", *more]
    result = pytester.runpytest_inprocess(*args)
    assert result.parseoutcomes() == {"failed": 2, "xfailed": 1, "skipped": 1}
    text = result.stdout.str()
    assert "\\x1b]8;;http://a\\x07" in text
    assert not set(text) & set("\x1b\x07\u202e\x9b")
