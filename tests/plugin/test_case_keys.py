"""Keys of a case besides its question and checks: system, skip, xfail, runs, models,
tags.
"""

import json
from typing import Any

import pytest

from support.kit import case, write_script, write_skill
from support.known_model import KnownModel
from support.loopback import LoopbackServer, Reply
from support.runs import run_skills
from support.words import HELPS

TALK = [
    {"role": "user", "content": "There is a gate."},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "How do I open it?"},
]


def test_arms_with_messages_and_a_system_text_differ_by_the_skill_only(
    pytester: pytest.Pytester,
) -> None:
    files = {"files": {"a.txt": "one"}}
    cases = [case("q", "gate up", input=TALK, system="Be terse.", context=files)]
    folder = write_skill(pytester.path / "skills/gate", cases)
    body = (folder / "SKILL.md").read_text().split("---\n")[2].strip()
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        assert run_skills(pytester, server).outcomes == {"passed": 1}
    talks = [asked.body["messages"] for asked in server.asked]
    baseline, skill = sorted(talks, key=lambda messages: len(str(messages)))
    assert baseline[0] == {"role": "system", "content": "Be terse."}
    assert skill[0]["content"].startswith(f"Be terse.\n\n{body}\n\n")
    assert baseline[1:] == skill[1:]
    assert baseline[1:3] == TALK[:2]
    assert baseline[3]["content"] == "How do I open it?\n\na.txt:\n```\none\n```"


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    return write_script(pytester.path / "a.json")


def test_a_skipped_case_is_not_asked(pytester: pytest.Pytester, workers: str) -> None:
    names = (
        "asked",
        "with-reason",
        "without",
        "by-conftest",
        "by-condition",
        "not-run",
        "not-so",
    )
    cases = [case(name, "gate up", id=name) for name in names]
    cases[1]["skip"], cases[2]["skip"] = "no gate here", True
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest("""
        import pytest

        MARKS = {
            "by-conftest": pytest.mark.skip("for now"),
            "by-condition": pytest.mark.skipif(True, reason="so it is"),
            "not-run": pytest.mark.xfail(run=False),
            "not-so": pytest.mark.skipif(False, reason="it is not"),
        }

        def pytest_collection_modifyitems(items):
            for item in items:
                if mark := MARKS.get(item.name.split("[")[0]):
                    item.add_marker(mark)
        """)
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        run = run_skills(pytester, server, "-rs", "-n", workers)
    run.result.assert_outcomes(passed=2, skipped=4, xfailed=1)
    assert sorted({asked.question for asked in server.asked}) == ["asked", "not-so"]
    assert len(server.asked) == 4
    run.result.stdout.fnmatch_lines_random(
        ["SKIPPED*no gate here", "SKIPPED*no reason given"]
    )
    assert "cases not run" not in run.screen
    if workers == "0":
        assert ": 2 tests × 1 run, with and without the skill" in run.screen
    assert {record["case"] for record in run.records} == {"asked", "not-so"}


def test_a_failure_is_reported_at_the_line_of_its_case(
    pytester: pytest.Pytester, model: str
) -> None:
    data = {"cases": [case("a", "gate up"), case("b", "never")]}
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").write_text(json.dumps(data, indent=1))
    assert "skill_meta.json:11: " in run_skills(pytester, model, "--tb=line").screen


def test_a_run_of_skipped_cases_only_asks_nothing(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "x", skip="why not")])
    run = run_skills(pytester, model)
    assert (run.outcomes, run.status, run.records) == ({"skipped": 1}, 0, [])


def test_an_xfail_case_xfails_or_xpasses(pytester: pytest.Pytester, model: str) -> None:
    cases = [
        case("a", "never", id="fails", xfail="too hard"),
        case("b", "gate up", id="passes", xfail=True),
        case("c", "gate up", id="is-expected-to", xfail=False),
    ]
    write_skill(pytester.path / "skills/gate", cases)
    run = run_skills(pytester, model, "-rxX")
    assert run.outcomes == {"xfailed": 1, "xpassed": 1, "passed": 1}
    run.result.stdout.fnmatch_lines(["XFAIL *::fails?* - too hard"])
    of_skill = [record for record in run.records if record["arm"] == "skill"]
    outcomes = {record["case"]: record["outcome"] for record in of_skill}
    assert outcomes == {
        "fails": "failed",
        "passes": "passed",
        "is-expected-to": "passed",
    }
    shown = run_skills(pytester, model, "--runxfail")
    assert shown.outcomes == {"failed": 1, "passed": 2}


def test_no_answer_stays_an_error_where_a_failure_is_expected(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("a", "x", xfail="too hard")])
    (pytester.path / "a.json").write_text("[]")
    assert run_skills(pytester, model).outcomes == {"errors": 1}


def test_a_case_has_its_own_number_of_runs_and_threshold(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [
        case("3", "yes", id="most"),
        case("2", "yes", id="half-is-not-most"),
        case("2", "yes", id="half-is-enough", threshold=0.5),
        case("3", "yes", id="all-are-wanted", threshold=1),
        case("6", "yes", id="more-runs", runs=10, threshold=0.6),
        case("1", "yes", id="one-run", runs=1),
    ]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(
        fake="""
        def answer(question):
            return "yes" if question.run <= int(question.messages[-1][1]) else "no"
        """
    )
    run = run_skills(
        pytester, "scripted:fake.py:answer", "--skill-runs", "4", "-rA", "-n", workers
    )
    assert (run.outcomes["passed"], run.outcomes["failed"]) == (4, 2)
    run.result.stdout.fnmatch_lines_random(
        ["FAILED*half-is-not-most*", "FAILED*all-are-wanted*"]
    )
    if workers == "0":
        assert (
            "up to 54 calls: 6 tests × 1 to 10 runs, with and without the skill"
            in run.screen
        )
    assert (run.summary["runs"], run.summary["samples"]) == (10, 4)
    assert len(run.records) == 54
    assert run.summary["skill_rate"] == pytest.approx((0.75 + 0.5 + 0.6 + 1) / 4)


def test_a_case_is_for_the_models_that_fit_its_patterns(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    opus, mini = "anthropic:claude-opus-4-1", "openai:gpt-5.4-mini"
    wanted: dict[str, tuple[Any, list[str]]] = {
        "name": ("haiku", ["haiku"]),
        "star": ("claude-*", ["haiku", opus]),
        "case": ("Claude-OPUS-*", [opus]),
        "several": (["openai:*", "hai?u"], ["haiku", mini]),
        "id": ("gpt-5.4-mini", [mini]),
    }
    cases = [
        case(name, "yes", id=name, models=models)
        for name, (models, _) in wanted.items()
    ]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("yes")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        run = run_skills(
            pytester, "haiku", "--model", opus, "--model", mini, "-n", workers
        )
    asked = {(record["case"], record["model"]) for record in run.records}
    assert asked == {
        (name, model) for name, (_, models) in wanted.items() for model in models
    }


def test_a_skill_without_cases_for_the_model_is_a_warning(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "yes", models="claude-*")])
    run = run_skills(pytester, model, "-W", "default")
    assert run.status == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "SkillWarning: no case is for scripted:a" in run.screen


def test_tags_of_defaults_and_cases_choose_with_strict_markers(
    pytester: pytest.Pytester, model: str
) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    cases = [case("a", "gate up"), case("b", "gate up", tags=["slow"])]
    data = {"defaults": {"tags": ["build"]}, "cases": cases}
    (folder / "skill_meta.json").write_text(json.dumps(data))
    chosen = run_skills(pytester, model, "--strict-markers", "-m", "build and not slow")
    assert chosen.outcomes == {"passed": 1, "deselected": 1}


def test_ids_of_one_question_are_one_sample(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [
        case("How do I open the gate?", "gate up", id=f"c{number}")
        for number in range(10)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    run = run_skills(pytester, model)
    assert (run.summary["cases"], run.summary["samples"]) == (10, 1)
    assert run.summary["verdict"] is None


def test_variants_of_a_few_templates_are_no_evidence_of_a_lift(
    pytester: pytest.Pytester,
) -> None:
    """Five variants each of four templates, three of which the skill helps."""
    with KnownModel(pytester, 20, baseline=0.1, skill=[0.9] * 15 + [0.1] * 5) as known:
        alone = known.run().summary
        cases = [
            case(f"c{n}?", "yes", id=f"c{n}", group=f"t{n // 5}") for n in range(20)
        ]
        write_skill(known.folder, cases, body="Version <skill>: say yes.")
        run = known.run()
        assert len(known.server.asked) == 40  # a group is no part of a question
    assert (alone["verdict"], alone["samples"]) == (HELPS, 20)
    assert (run.summary["verdict"], run.summary["samples"]) == (None, 4)
    assert run.summary["lift"] == alone["lift"]
    assert "20 cases in 4 groups" in run.screen


ASKS = """
    import pytest

    @pytest.mark.skill("skills/gate")
    @pytest.mark.parametrize("n", range(6))
    def test_it(ask, n):
        assert "gate up" in ask("How do I open the gate?")
"""


def test_tests_in_python_that_ask_the_same_are_one_sample(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(test_gate=ASKS)
    summary = run_skills(pytester, model, "test_gate.py", skill="").summary
    assert (summary["cases"], summary["samples"]) == (6, 1)
