"""What a run says about earlier ones: looks at a skill, and cases that are gone."""

import pytest

from support.kit import case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

CASES = [case(f"Question {n}?", "gate", id=f"case-{n}") for n in range(10)]


def fails_if_odd(asked: Asked) -> Reply:
    number = int(asked.question.removeprefix("Question ").rstrip("?"))
    return Reply("gate up" if number % 2 == 0 else "no idea")


def verdict_of(run: SkillRun) -> dict[str, object]:
    [verdict] = run.report["verdicts"]
    return dict(verdict)


def test_looks_with_new_answers_are_counted_and_told(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(fails_if_odd) as server:
        first = run_skills(pytester, server)
        again = run_skills(pytester, server)
        fresh = run_skills(pytester, server, "--skill-fresh")
    assert [run.report["looks"] for run in (first, again, fresh)] == [
        {"gate": 1},
        {"gate": 1},
        {"gate": 2},
    ]
    assert verdict_of(fresh)["looks"] == 2
    assert "look at this skill" not in first.screen
    assert "2nd look at this skill: by chance alone" in fresh.screen


def test_failing_cases_that_are_deleted_take_the_verdict_with_them(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(fails_if_odd) as server:
        run_skills(pytester, server)
        run_skills(pytester, server, "--skill-fresh")
        write_skill(pytester.path / "skills/gate", CASES[::2] + CASES[1:2])
        fewer = run_skills(pytester, server)
    assert fewer.report["gone"] == {"gate": ["case-3", "case-5", "case-7", "case-9"]}
    assert verdict_of(fewer)["verdict"] is None
    assert "look at this skill" not in fewer.screen
    assert "4 cases that failed last time are gone" in " ".join(fewer.screen.split())


def test_selection_has_no_verdict(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(fails_if_odd) as server:
        run = run_skills(pytester, server, "-k", "case-0 or case-2")
    assert verdict_of(run)["sentence"] == "2 of 10 cases: no verdict for a part"
    assert "2 of 10 cases" in run.screen
