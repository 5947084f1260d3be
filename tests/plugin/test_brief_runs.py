"""What a run shows without -v: each thing once, and the first of many."""

import json
from pathlib import Path

import pytest

from support.kit import BODY, case, write_script, write_skill
from support.runs import run_skills


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def write_skills(folder: Path, number: int, frontmatter: str = "") -> None:
    for n in range(number):
        cases = [
            case("How do I open the gate?", "gate up", id="open", tags=["edit-me"])
        ]
        write_skill(folder / f"skills/gate-{n:02}", cases, frontmatter=frontmatter)


def test_ten_cases_on_two_models_with_three_failures_take_65_lines(
    pytester: pytest.Pytester,
) -> None:
    question = (
        "Write the command that opens the gate number {}, and explain why it does so."
    )
    cases = [
        case(question.format(n), f"gate {n} up", id=f"opens-{n}") for n in range(10)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    for model, failing in (("a", (3, 7)), ("b", (7,))):
        rules = []
        for n in range(10):
            command = f"gate {'?' if n in failing else n} up"
            answer = (
                f"The command is this:\n\n```\n{command}\n```\n\nIt opens the gate."
            )
            rules.append({"question": f"number {n},", "system": BODY, "answer": answer})
        file = pytester.path / f"{model}.json"
        file.write_text(
            json.dumps([*rules, {"answer": "I do not know.\n\nAsk the keeper."}])
        )
    run = run_skills(pytester, "scripted:a.json", "--model", "scripted:b.json")
    assert run.outcomes == {"failed": 3, "passed": 17}
    assert len(run.screen.rstrip().splitlines()) <= 65
    for number, model in ((3, "a"), (7, "a"), (7, "b")):
        assert (
            f"\nRerun: pytest -vv '{Path('skills/gate/skill_meta.json').as_posix()}"
            in run.screen
        )
        assert f'"gate {number} up" is not in the answer' in run.screen
        assert f"number {number}," in run.screen
        assert f"::opens-{number}[scripted:{model}.json]'" in run.screen
    assert (
        run.screen.count("(without it: failed): The command is this: ``` gate ? up")
        == 3
    )


@pytest.mark.nightly
def test_a_hundred_skills_that_all_fail_take_110_lines(
    pytester: pytest.Pytester,
) -> None:
    write_skills(pytester.path, 100, "requires: x\n")
    model = write_script(pytester.path / "m.json", knows="No idea.")
    run = run_skills(pytester, model, "-W", "default")
    lines = run.screen.rstrip().splitlines()
    assert run.outcomes["failed"] == 100
    assert len(lines) <= 110
    assert not any(line.startswith("Rerun: ") for line in lines)
    assert sum(line.startswith("FAILED ") for line in lines) == 10
    assert "100 more failures in full: -vv" in lines
    assert "and 90 more" in lines
    assert sum("edit-me" in line for line in lines) == 1
    assert run.screen.count("SkillWarning") == 1
    assert "(99 more files like this: pytest-upskill lint)" in run.screen


def test_eighteen_failures_of_five_runs_take_70_lines(
    pytester: pytest.Pytester,
) -> None:
    cases = [
        case(f"Open gate {n}.", f"gate {n} up", "now", id=f"open-{n}")
        for n in range(18)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "m.json", knows="No idea.\n" * 9)
    run = run_skills(pytester, model, "--skill-runs", "5")
    assert run.outcomes == {"failed": 18}
    assert len(run.screen.splitlines()) <= 70


def test_v_shows_ten_failures_and_vv_shows_them_all(
    pytester: pytest.Pytester,
) -> None:
    model = write_script(pytester.path / "m.json", knows="No idea.")
    cases = [case(f"Open gate {n}.", "gate up", id=f"open-{n}") for n in range(12)]
    write_skill(pytester.path / "skills/gate", cases)
    brief, full = (run_skills(pytester, model, option) for option in ("-v", "-vv"))
    for run, shown in ((brief, 10), (full, 12)):
        lines = run.screen.splitlines()
        assert sum(line.startswith("Rerun: ") for line in lines) == shown
        assert sum(line.startswith("FAILED ") for line in lines) == shown
    assert "2 more failures in full: -vv" in brief.screen
    assert "and 2 more" in brief.screen
    assert "more failure" not in full.screen


def test_failures_of_other_tests_are_all_shown(pytester: pytest.Pytester) -> None:
    write_skills(pytester.path, 10)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(12))
        def test_number(number):
            assert number < 0
        """)
    model = write_script(pytester.path / "m.json", knows="No idea.")
    run = run_skills(pytester, model, "test_failures_of_other_tests_are_all_shown.py")
    assert run.outcomes == {"failed": 22}
    assert run.screen.count("assert number < 0") == 12
    assert "10 more failures in full: -vv" in run.screen
    assert "test_failures_of_other_tests_are_all_shown.py FFFF" in run.screen


def test_w_error_refuses_every_file_that_a_warning_is_about(
    pytester: pytest.Pytester,
) -> None:
    write_skills(pytester.path, 3, "requires: x\n")
    run = run_skills(pytester, write_script(pytester.path / "m.json"), "-W", "error")
    assert run.outcomes == {"errors": 3}


def test_a_budget_is_used_for_as_many_whole_cases_as_it_covers(
    pytester: pytest.Pytester,
) -> None:
    cases = [
        case(f"How do I open gate {n}?", "gate up", id=f"open-{n}") for n in range(10)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "m.json")
    spent = run_skills(pytester, model).report["summary"][0]
    each = spent["baseline_tokens"] + spent["skill_tokens"]
    most = round(2048 + 6 * each)  # the first answers reserve the output limit
    run = run_skills(pytester, model, "--skill-max-tokens", str(most))
    assert run.outcomes == {"passed": 10}


@pytest.mark.parametrize(("skills", "named"), [(20, 20), (21, 0)])
def test_more_than_twenty_skills_are_dots_without_names(
    skills: int, named: int, pytester: pytest.Pytester
) -> None:
    write_skills(pytester.path, skills)
    model = write_script(pytester.path / "model.json")
    run = run_skills(pytester, model)
    assert run.outcomes == {"passed": skills}
    assert run.screen.count("skill_meta.json .") == named
