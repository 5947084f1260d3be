"""pytest_upskill_prompt: the system text of an arm."""

import json

import pytest

from support.hook_runs import example, records, run
from support.kit import BODY, case, write_script, write_skill

SYSTEMS = """
    import json

    def system(question):
        with open("asked.jsonl", "a") as file:
            file.write(json.dumps(question.system) + "\\n")
        return "Type gate up."
"""


def systems(pytester: pytest.Pytester) -> list[str]:
    return sorted(
        map(json.loads, (pytester.path / "asked.jsonl").read_text().splitlines())
    )


def test_the_example_of_a_prompt(pytester: pytest.Pytester, workers: str) -> None:
    """It is used for cases and by tests in Python."""
    pytester.makeconftest(example("def pytest_upskill_prompt"))
    pytester.makepyfile(
        model=SYSTEMS,
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            assert "gate up" in ask("How?", system="Be kind.")
        """,
    )
    own = case("How?", "gate up", system="Be brief.", id="own")
    write_skill(
        pytester.path / "skills/gate", [case("How?", "gate up", id="plain"), own]
    )
    args = ("skills", "test_gate.py", "-n", workers)
    run(pytester, *args, model="scripted:model.py:system").assert_outcomes(passed=3)
    skill, base = f"<skill>\n{BODY}\n</skill>\n\n", "You are a helpful assistant."
    texts = [base, "Be brief.", "Be kind."]
    assert systems(pytester) == sorted([*texts, *(f"{skill}{text}" for text in texts)])


def test_the_prompt_hook_sees_arm_and_case_but_no_skill_in_the_baseline(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("""
        import json

        def pytest_upskill_prompt(config, arm, skill, base, case):
            with open("seen.jsonl", "a") as file:
                seen = [arm, case.id, "gate" in repr([skill, base, case])]
                file.write(json.dumps(seen) + "\\n")
    """)
    write_skill(pytester.path / "skills/gate", [case("How?", "up", id="a")])
    run(pytester).assert_outcomes(passed=1)
    seen = list(
        map(json.loads, (pytester.path / "seen.jsonl").read_text().splitlines())
    )
    assert seen == [["baseline", "a", False], ["skill", "a", True]]


def test_a_changed_prompt_is_asked_again(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    hook = (
        example("class Parrot")
        + "\n\ndef pytest_upskill_prompt(skill, base):\n    return "
    )
    stored = []
    for text in (
        "base + (skill or '')",
        "base + (skill or '')",
        "base + 2 * (skill or '')",
    ):
        (pytester.path / "conftest.py").write_text(f"{hook}{text}\n")
        run(pytester, model="parrot:polly").assert_outcomes(passed=1)
        stored.append([record["stored"] for record in records(pytester)])
    assert stored == [[False, False], [True, True], [True, False]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return ' '", "pytest_upskill_prompt: returned ' '"),
        (
            "raise KeyError('x')",
            "conftest.py:1: pytest_upskill_prompt raised KeyError: 'x'",
        ),
        (
            f"return {BODY!r}",
            "pytest_upskill_prompt: put the text of gate into the baseline",
        ),
    ],
)
def test_a_broken_prompt_is_an_error(
    pytester: pytest.Pytester, body: str, message: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_prompt(): {body}")
    write_skill(pytester.path / "skills/gate")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert message in result.stdout.str()


def test_a_prompt_that_breaks_while_a_test_asks_is_an_error(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("def pytest_upskill_prompt(): return 3")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            ask("How?")
    """)
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "answers.json")
    result = pytester.runpytest_inprocess("--model", model)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pytest_upskill_prompt: returned 3"])
