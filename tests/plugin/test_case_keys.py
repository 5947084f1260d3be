"""Keys of a case besides its question and checks: system, skip, xfail, runs, models, tags."""

import json
from typing import Any

import pytest

from support.kit import case, write_script, write_skill
from support.loopback import LoopbackServer, Reply

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
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    talks = [asked.body["messages"] for asked in server.asked]
    baseline, skill = sorted(talks, key=lambda messages: len(str(messages)))
    assert baseline[0] == {"role": "system", "content": "Be terse."}
    assert skill[0]["content"].startswith(f"Be terse.\n\n{body}\n\n")
    assert baseline[1:] == skill[1:]
    assert baseline[1:3] == TALK[:2]
    assert baseline[3]["content"] == "How do I open it?\n\na.txt:\n```\none\n```"


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    model = write_script(pytester.path / "a.json")
    return ["--skill", "skills", "--model", model, "--skill-json", "r.json"]


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((pytester.path / "r.json").read_text())
    return data


def test_a_skipped_case_is_not_asked(
    pytester: pytest.Pytester, args: list[str], workers: str
) -> None:
    names = ("asked", "with-reason", "without", "by-conftest", "by-condition", "not-run", "not-so")
    cases = [case(name, "gate up", id=name) for name in names]
    cases[1]["skip"], cases[2]["skip"] = "no gate here", True
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest(
        """
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
        """
    )
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        url = f"{server.url}/v1"
        result = pytester.runpytest_inprocess(
            *args[:2], "--model", "m", "--skill-base-url", url, "-rs", *args[4:], "-n", workers
        )
    result.assert_outcomes(passed=2, skipped=4, xfailed=1)
    assert sorted({asked.question for asked in server.asked}) == ["asked", "not-so"]
    assert len(server.asked) == 4
    result.stdout.fnmatch_lines_random(["SKIPPED*no gate here", "SKIPPED*no reason given"])
    result.stdout.no_fnmatch_line("*cases not run*")
    if not workers:
        result.stdout.fnmatch_lines(["upskill: up to 4 calls, *: 2 tests × 2 arms × 1 run"])
    assert {record["case"] for record in report(pytester)["records"]} == {"asked", "not-so"}


def test_a_failure_is_reported_at_the_line_of_its_case(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    data = {"cases": [case("a", "gate up"), case("b", "never")]}
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "skill_meta.json").write_text(json.dumps(data, indent=1))
    result = pytester.runpytest_inprocess(*args, "--tb=line")
    result.stdout.fnmatch_lines(['*skill_meta.json:11: "never" is not in the answer'])


def test_a_run_of_skipped_cases_only_asks_nothing(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "x", skip="why not")])
    result = pytester.runpytest_inprocess(*args)
    result.assert_outcomes(skipped=1)
    assert result.ret == 0
    assert report(pytester)["records"] == []


def test_an_xfail_case_xfails_or_xpasses(
    pytester: pytest.Pytester, args: list[str], workers: str
) -> None:
    cases = [
        case("a", "never", id="fails", xfail="too hard"),
        case("b", "gate up", id="passes", xfail=True),
        case("c", "gate up", id="is-expected-to", xfail=False),
    ]
    write_skill(pytester.path / "skills/gate", cases)
    result = pytester.runpytest_inprocess(*args, "-rxX", "-n", workers)
    result.assert_outcomes(xfailed=1, xpassed=1, passed=1)
    result.stdout.fnmatch_lines(["XFAIL *::fails?* - too hard"])
    outcomes = {r["case"]: r["outcome"] for r in report(pytester)["records"] if r["arm"] == "skill"}
    assert outcomes == {"fails": "failed", "passes": "passed", "is-expected-to": "passed"}
    pytester.runpytest_inprocess(*args, "--runxfail").assert_outcomes(failed=1, passed=2)


def test_no_answer_stays_an_error_where_a_failure_is_expected(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", [case("a", "x", xfail="too hard")])
    (pytester.path / "a.json").write_text("[]")
    pytester.runpytest_inprocess(*args).assert_outcomes(errors=1)


def test_a_case_has_its_own_number_of_runs_and_threshold(
    pytester: pytest.Pytester, args: list[str], workers: str
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
    model = ["--model", "scripted:fake.py:answer", "--skill-runs", "4"]
    result = pytester.runpytest_inprocess(*args[:2], *model, *args[4:], "-rA", "-n", workers)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines_random(["FAILED*half-is-not-most*", "FAILED*all-are-wanted*"])
    result.stdout.fnmatch_lines(["gate · * · 6 cases (4 questions) × 1 to 10 runs"])
    if not workers:
        result.stdout.fnmatch_lines(["upskill: up to 54 calls: 6 tests × 2 arms × 1 to 10 runs"])
    data = report(pytester)
    assert data["summary"][0]["runs"] == 10
    assert len(data["records"]) == 54
    assert data["summary"][0]["skill_rate"] == pytest.approx((0.75 + 0.5 + 0.6 + 1) / 4)


@pytest.mark.parametrize(
    ("models", "wanted"),
    [
        ("haiku", ["haiku"]),
        ("claude-*", ["haiku", "anthropic:claude-opus-4-1"]),
        ("Claude-OPUS-*", ["anthropic:claude-opus-4-1"]),
        (["openai:*", "hai?u"], ["haiku", "openai:gpt-5.4-mini"]),
        ("gpt-5.4-mini", ["openai:gpt-5.4-mini"]),
    ],
)
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_case_is_for_the_models_that_fit_its_patterns(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    models: Any,
    wanted: list[str],
    workers: list[str],
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    write_skill(pytester.path / "skills/gate", [case("q", "yes", id="q", models=models)])
    names = ("haiku", "anthropic:claude-opus-4-1", "openai:gpt-5.4-mini")
    options = [part for name in names for part in ("--model", name)]
    with LoopbackServer(lambda _: Reply("yes")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        result = pytester.runpytest_inprocess("--skill", "skills", *options, "-rA", *workers)
    result.assert_outcomes(passed=len(wanted))
    for name in wanted:
        result.stdout.fnmatch_lines([f"PASSED *::q?{name}?"])


def test_a_skill_without_cases_for_the_model_is_a_warning(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "yes", models="claude-*")])
    result = pytester.runpytest_inprocess(*args, "-W", "default")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*SkillWarning: no case is for scripted:a*"])


def test_tags_of_defaults_and_cases_choose_with_strict_markers(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    cases = [case("a", "gate up"), case("b", "gate up", tags=["slow"])]
    data = {"defaults": {"tags": ["build"]}, "cases": cases}
    (folder / "skill_meta.json").write_text(json.dumps(data))
    chosen = pytester.runpytest_inprocess(*args, "--strict-markers", "-m", "build and not slow")
    chosen.assert_outcomes(passed=1, deselected=1)


def test_ids_of_one_question_are_one_sample_and_the_header_says_so(
    pytester: pytest.Pytester,
) -> None:
    model = write_script(pytester.path / "answers.json")
    cases = [case("How do I open the gate?", "gate up", id=f"c{number}") for number in range(10)]
    write_skill(pytester.path / "skills/gate", cases)
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.stdout.fnmatch_lines(
        [
            "upskill: gate: 10 cases ask 1 question: cases that ask the same count as one",
            "gate * 10 cases (1 question) * 1 run",
            f"{model}: no effect shown: +100 points (-95 to +100)*",
        ]
    )


ASKS = """
    import pytest

    @pytest.mark.skill("skills/gate")
    @pytest.mark.parametrize("n", range(6))
    def test_it(ask, n):
        assert "gate up" in ask("How do I open the gate?")
"""


def test_tests_in_python_that_ask_the_same_are_one_sample(pytester: pytest.Pytester) -> None:
    model = write_script(pytester.path / "answers.json")
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile(test_gate=ASKS)
    result = pytester.runpytest_inprocess("test_gate.py", "--model", model)
    result.stdout.fnmatch_lines(["gate * 6 cases (1 question) * 1 run"])
