"""--skill-judge: rubrics of cases are judged by a model."""

import json
from collections.abc import Iterator
from typing import Final

import pytest

from support.judges import judge_says
from support.kit import BODY, case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.usage import usage_error

POLITE: Final = "It is polite."
NAMES_GATE: Final = "It names the gate."
CASES: Final = [
    {"id": "polite", "input": "How?", "expected": {"judge": [NAMES_GATE, POLITE]}},
    case("Where?", "gate", id="plain"),
]


def is_judge(asked: Asked) -> bool:
    return asked.system.startswith("You grade")


def answer_or_judge(asked: Asked) -> Reply:
    """A model that knows the gate with the skill only,
    and a judge that looks for words.
    """
    if not is_judge(asked):
        return Reply(
            "Type gate up, please." if BODY in asked.system else "No idea, thanks."
        )
    answer = asked.question.split("<answer ")[1].split("</answer ")[0]
    words = {NAMES_GATE: "gate", POLITE: "thanks"}
    criteria = asked.question.split("The criteria:\n")[1].split("\n\n")[0].split("\n")
    verdicts = [
        {
            "criterion": number,
            "quote": "please",
            "reason": "as I read it",
            "verdict": "pass" if words[text.split(". ", 1)[1]] in answer else "fail",
        }
        for number, text in enumerate(criteria, start=1)
    ]
    return Reply(
        judge_says(asked.question, verdicts), input_tokens=100, output_tokens=20
    )


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer_or_judge) as server:
        yield server


def run(
    pytester: pytest.Pytester, server: LoopbackServer, *args: str, judge: str = "judge"
) -> SkillRun:
    judged = ["--skill-judge", judge] if judge else []
    return run_skills(pytester, server, *judged, *args)


def test_a_rubric_is_judged_text_by_text(
    pytester: pytest.Pytester, server: LoopbackServer, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    judged = run(pytester, server, "-n", workers)
    assert judged.outcomes == {"passed": 1, "failed": 1}
    polite = judged.record(case="polite", arm="skill")
    checks = polite["checks"]
    assert [(c["check"], c["passed"]) for c in checks] == [
        ("judge", True),
        ("judge", False),
    ]
    assert (
        checks[1]["reason"]
        == "'It is polite.': as I read it (the judge quotes \"please\")"
    )
    baseline = judged.record(case="polite", arm="baseline")
    assert [c["passed"] for c in baseline["checks"]] == [False, True]
    assert (polite["judge"]["calls"], polite["judge"]["usage"]["input"]) == (1, 100)
    assert polite["input_tokens"] == 10  # the judge's are counted apart
    assert judged.record(case="plain", arm="skill")["judge"] is None
    assert [one.model for one in server.asked if is_judge(one)] == ["judge", "judge"]
    assert "judged by judge: 2 answers, 2 calls, 240 tokens" in judged.screen


def test_judging_is_stored_and_recorded_like_any_answer(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    run(pytester, server)
    asked = len(server.asked)
    run(pytester, server, "--skill-record", "a.jsonl")
    assert len(server.asked) == asked
    lines = [
        json.loads(line)
        for line in (pytester.path / "a.jsonl").read_text().splitlines()
    ]
    assert [(line["case"], line["arm"], line["step"]) for line in lines] == [
        ("plain", "baseline", 0),
        ("plain", "skill", 0),
        ("polite", "baseline", 0),
        ("polite", "baseline", 1),
        ("polite", "skill", 0),
        ("polite", "skill", 1),
    ]
    replayed = run(pytester, server, "--skill-replay", "a.jsonl")
    assert replayed.outcomes == {"passed": 1, "failed": 1}
    assert len(server.asked) == asked


def test_each_skill_that_needs_a_judge_is_an_error_without_one(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    for name in ("gate", "door", "wall"):
        write_skill(pytester.path / "skills" / name, CASES[:1])
    none = run(pytester, server, judge="")
    assert none.outcomes == {"errors": 3}
    assert server.asked == []
    write_skill(pytester.path / "skills/wall", CASES)  # one case can run
    others = run(pytester, server, judge="")
    assert others.outcomes == {"passed": 1, "failed": 1, "errors": 2}
    assert (
        "skills/gate/skill_meta.json:1: cases[0]: this needs a judge" in others.screen
    )


def test_cases_are_listed_without_a_judge(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    listed = run(pytester, server, "--collect-only", judge="")
    assert listed.status == 0
    assert "1 case would need --skill-judge MODEL" in listed.screen
    assert "<CaseItem polite[m]>" in listed.screen
    assert server.asked == []


def test_a_judge_that_is_also_under_test_is_reported(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    both = run(pytester, server, "--collect-only", judge="m")
    assert "upskill: rubrics judged by m (also under test" in both.screen
    other = run(pytester, server, "--collect-only")
    assert "upskill: rubrics judged by judge" in other.result.outlines


def test_a_judge_without_an_answer_is_an_error_not_a_failure(
    pytester: pytest.Pytester,
) -> None:
    def script(asked: Asked) -> Reply | Fault:
        return Fault("status", 401) if is_judge(asked) else Reply("gate")

    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(script) as server:
        failed = run(pytester, server)
    assert failed.outcomes == {"passed": 1, "errors": 1}
    error = failed.record(case="polite", arm="skill")
    assert error["error"].startswith("the judge gave no ruling: judge: 401 from ")
    assert (error["outcome"], error["checks"]) == ("errored", [])
    # What was paid for is kept
    assert (error["output"], error["input_tokens"]) == ("gate", 10)


def test_a_judge_that_could_not_be_read_is_asked_again(
    pytester: pytest.Pytester,
) -> None:
    can_judge: list[bool] = []

    def script(asked: Asked) -> Reply:
        if is_judge(asked) and not can_judge:
            return Reply("Looks fine to me.")
        return answer_or_judge(asked)

    write_skill(pytester.path / "skills/gate", CASES[:1])
    with LoopbackServer(script) as server:
        unread = run(pytester, server)
        assert unread.outcomes == {"errors": 1}
        polite = unread.record(arm="skill")
        assert "'Looks fine to me.'" in polite["error"]
        assert (polite["judge"]["calls"], polite["judge"]["usage"]["input"]) == (2, 20)
        asked = len(server.asked)
        can_judge.append(True)
        assert run(pytester, server).outcomes == {"failed": 1}
        assert len(server.asked) == asked + 2  # the answers themselves were kept


def test_votes_are_calls_and_count_against_the_budget(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    expected = {"judge": NAMES_GATE, "judge_votes": 3}
    write_skill(
        pytester.path / "skills/gate", [{"input": "How?", "expected": expected}]
    )
    assert run(pytester, server).outcomes == {"passed": 1}
    assert sum(map(is_judge, server.asked)) == 6
    asked = len(server.asked)
    small = run(pytester, server, "--skill-fresh", "--skill-max-tokens", "2600")
    assert small.outcomes == {"errors": 1}
    assert "this call could exceed the budget" in small.record(arm="skill")["error"]
    # No answer is bought that no judge could be asked about
    assert len(server.asked) == asked


def test_a_judge_may_be_anywhere_among_the_checks(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    expected = {
        "any_of": [{"contains": "nowhere"}, {"judge": NAMES_GATE}],
        "not": {"judge": POLITE},
        "all_of": [{"judge": POLITE, "required": False, "weight": 2}],
    }
    write_skill(
        pytester.path / "skills/gate", [{"input": "How?", "expected": expected}]
    )
    judged = run(pytester, server)
    assert judged.outcomes == {"passed": 1}
    skill = judged.record(arm="skill")
    assert [c["passed"] for c in skill["checks"]] == [True, True, False]
    assert skill["score"] == 0.5
    assert sum(map(is_judge, server.asked)) == 2


@pytest.mark.parametrize(
    ("judge", "problem"), [("nobody:x", "nobody"), ("openai:gpt-5", "OPENAI_API_KEY")]
)
def test_a_wrong_judge_is_reported_by_its_own_option(
    pytester: pytest.Pytester, judge: str, problem: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    model = write_script(pytester.path / "a.json")
    error = usage_error(
        pytester, "--skill", "skills", "--model", model, "--skill-judge", judge
    )
    assert error.startswith(f"--skill-judge {judge}: ")
    assert problem in error


def test_evals_of_skill_creator_are_judged(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    evals = {
        "skill_name": "gate",
        "evals": [{"id": 1, "prompt": "How?", "expectations": [NAMES_GATE]}],
    }
    (folder / "evals/evals.json").write_text(json.dumps(evals))
    assert run(pytester, server).outcomes == {"passed": 1}
