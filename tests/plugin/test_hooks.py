"""The four hooks: the examples of docs/extend.md, and what a broken hook does."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.kit import BODY, case, write_script, write_skill

PAGE = (Path(__file__).parents[2] / "docs/extend.md").read_text()
workers = pytest.mark.parametrize("workers", ["0", "2"])


def example(text: str) -> str:
    found: str
    (found,) = [
        block for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.S | re.M) if text in block
    ]
    return found


def run(pytester: pytest.Pytester, *args: str, model: str = "") -> pytest.RunResult:
    model = model or write_script(pytester.path / "answers.json")
    args = ("--skill", "skills", "--model", model, "--skill-json", "r.json", *args)
    result = pytester.runpytest_inprocess(*args)
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    return result


def records(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / "r.json").read_text())["records"]


@workers
def test_the_example_of_a_check(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("def pytest_upskill_checks"))
    (written,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.S | re.M)
    write_skill(pytester.path / "skills/gate", json.loads(written))
    run(pytester, "-n", workers).assert_outcomes(passed=1)
    baseline, skill = records(pytester)
    assert skill["checks"][1]["reason"] == "3 words (limit 5)"
    assert [grade["passed"] for grade in baseline["checks"]] == [False, True]


@workers
def test_the_example_of_a_model(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("class Parrot"))
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "-n", workers, model="parrot:polly")
    result.assert_outcomes(passed=1)
    baseline, skill = records(pytester)
    assert baseline["output"].startswith("polly says: You are a helpful assistant. How do I")
    assert BODY in skill["output"]
    assert skill["input_tokens"] == 40


def test_a_model_of_a_hook_is_named_by_its_prefix_alone_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(example("class Parrot"))
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "--collect-only", model="parrot")
    result.stdout.fnmatch_lines(["upskill: a run would make up to 2 calls*", "*open-gate?parrot?*"])


def test_answers_of_a_hooked_model_are_stored(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(example("class Parrot"))
    write_skill(pytester.path / "skills/gate")
    for stored in (False, True):
        run(pytester, model="parrot:polly").assert_outcomes(passed=1)
        assert [record["stored"] for record in records(pytester)] == [stored] * 2


@workers
def test_the_example_of_a_provider(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    pytester.makeconftest(example("class AcmeProvider"))
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "-n", workers, model="acme:large")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *acme:large: ACME_KEY is not set"])
    monkeypatch.setenv("ACME_KEY", "key")
    run(pytester, "-n", workers, model="acme:large").assert_outcomes(passed=1)
    assert [record["output"] for record in records(pytester)] == ["Type gate up."] * 2


def test_a_hooked_model_can_judge(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        from pytest_upskill import Answer, Model

        class Strict(Model):
            async def ask(self, question):
                return Answer('{"rulings": [{"criterion": 1, "reason": "so", "met": true}]}')

        def pytest_upskill_models():
            return {"strict": lambda name: Strict()}
    """)
    write_skill(pytester.path / "skills/gate", [{"input": "q", "expected": {"judge": "is kind"}}])
    result = run(pytester, "--skill-judge", "strict")
    result.assert_outcomes(errors=1)  # what it says is no ruling, but it was asked
    result.stdout.fnmatch_lines(["*strict*"])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[print]", "returned [print]"),
        ("{'Acme Inc': print}", "'Acme Inc' can't be a prefix"),
        ("{1: print}", "1 can't be a prefix"),
        ("{'openai': print}", "'openai' is taken"),
        ("{'haiku': print}", "'haiku' is taken"),
        ("{'acme': 3}", "returned {'acme': 3}"),
    ],
)
def test_wrong_models_are_a_usage_error(
    pytester: pytest.Pytester, returned: str, message: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_models(): return {returned}")
    write_skill(pytester.path / "skills/gate")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = message.replace("print", "<built-in function print>")
    assert f"ERROR: pytest_upskill_models: {message}" in result.stderr.str()


@pytest.mark.parametrize("raised", ["ValueError('no\\nway')", "pytest.fail('no way')"])
def test_a_models_hook_that_raises_is_a_usage_error(pytester: pytest.Pytester, raised: str) -> None:
    pytester.makeconftest(f"import pytest\n\ndef pytest_upskill_models():\n    raise {raised}")
    write_skill(pytester.path / "skills/gate")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = r"ERROR: conftest.py:4: pytest_upskill_models raised (ValueError|Failed): no way"
    result.stderr.re_match_lines([told])


BROKEN = """
    from pytest_upskill import Answer, Model

    class Good(Model):
        async def ask(self, question):
            return Answer("Type gate up.")

    class Silent(Model):
        async def ask(self, question):
            pass

    class Raising(Model):
        async def ask(self, question):
            raise KeyError("oops")

    class Stuck(Good):
        async def close(self):
            raise OSError("can't close")

    def pytest_upskill_models():
        return {"good": lambda name: Good(), "none": lambda name: None,
                "silent": lambda name: Silent(), "raising": lambda name: Raising(),
                "stuck": lambda name: Stuck()}
"""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("none", "none: pytest_upskill_models: 'none' made None, not a Model."),
        ("silent", "silent: the adapter raised TypeError('ask returned None, not an Answer')"),
        ("raising", "raising: the adapter raised KeyError('oops')"),
    ],
)
def test_a_broken_model_errs_alone(pytester: pytest.Pytester, model: str, message: str) -> None:
    pytester.makeconftest(BROKEN)
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "--model", "good", model=model)
    result.assert_outcomes(passed=1, errors=1)
    assert message in result.stdout.str()
    assert [record["outcome"] for record in records(pytester)][2:] == ["passed"] * 2


def test_a_model_that_cannot_close_loses_no_results(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(BROKEN)
    write_skill(pytester.path / "skills/gate")
    run(pytester, model="stuck").assert_outcomes(passed=1)
    assert len(records(pytester)) == 2


SYSTEMS = """
    import json

    def system(question):
        with open("asked.jsonl", "a") as file:
            file.write(json.dumps(question.system) + "\\n")
        return "Type gate up."
"""


def systems(pytester: pytest.Pytester) -> list[str]:
    return sorted(map(json.loads, (pytester.path / "asked.jsonl").read_text().splitlines()))


@workers
def test_the_example_of_a_prompt(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("def pytest_upskill_prompt"))
    pytester.makepyfile(model=SYSTEMS)
    own = case("How?", "gate up", system="Be brief.", id="own")
    write_skill(pytester.path / "skills/gate", [case("How?", "gate up", id="plain"), own])
    run(pytester, "-n", workers, model="scripted:model.py:system").assert_outcomes(passed=2)
    skill, base = f"<skill>\n{BODY}\n</skill>\n\n", "You are a helpful assistant."
    wanted = ["Be brief.", base, f"{skill}Be brief.", f"{skill}{base}"]
    assert systems(pytester) == sorted(wanted)


@workers
def test_a_prompt_is_used_by_tests_in_python(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("def pytest_upskill_prompt"))
    pytester.makepyfile(
        model=SYSTEMS,
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            assert "gate up" in ask("How?", system="Be brief.")
        """,
    )
    write_skill(pytester.path / "skills/gate")
    args = ("test_gate.py", "--model", "scripted:model.py:system", "-n", workers)
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    assert systems(pytester) == sorted(["Be brief.", f"<skill>\n{BODY}\n</skill>\n\nBe brief."])


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
    seen = list(map(json.loads, (pytester.path / "seen.jsonl").read_text().splitlines()))
    assert seen == [["baseline", "a", False], ["skill", "a", True]]


def test_a_changed_prompt_is_asked_again(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    hook = example("class Parrot") + "\n\ndef pytest_upskill_prompt(skill, base):\n    return "
    stored = []
    for text in ("base + (skill or '')", "base + (skill or '')", "base + 2 * (skill or '')"):
        (pytester.path / "conftest.py").write_text(f"{hook}{text}\n")
        run(pytester, model="parrot:polly").assert_outcomes(passed=1)
        stored.append([record["stored"] for record in records(pytester)])
    assert stored == [[False, False], [True, True], [True, False]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 3", "pytest_upskill_prompt: returned 3"),
        ("return ' '", "pytest_upskill_prompt: returned ' '"),
        ("raise KeyError('x')", "conftest.py:1: pytest_upskill_prompt raised KeyError: 'x'"),
        (f"return {BODY!r}", "pytest_upskill_prompt: put the text of gate into the baseline"),
    ],
)
def test_a_broken_prompt_is_an_error_of_collection(
    pytester: pytest.Pytester, body: str, message: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_prompt(): {body}")
    write_skill(pytester.path / "skills/gate")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()


def test_a_prompt_that_breaks_while_a_test_asks_is_an_error(pytester: pytest.Pytester) -> None:
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


@workers
def test_the_example_of_finished_results(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("def pytest_upskill_finished"))
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "-n", workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["lifts.csv has 1 more"])
    rows = list(csv.reader((pytester.path / "lifts.csv").read_text().splitlines()))
    assert [row[:2] for row in rows] == [["gate", "scripted:answers.json"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('x')", "conftest.py:2: pytest_upskill_finished raised KeyError: 'x'"),
        ("return 3", "pytest_upskill_finished: returned 3"),
        ("return [3]", "pytest_upskill_finished: returned [3]"),
    ],
)
@workers
def test_finished_results_outlive_a_broken_hook(
    pytester: pytest.Pytester, body: str, message: str, workers: str
) -> None:
    pytester.makeconftest(
        f"""
        def pytest_upskill_finished(results):
            {body}

        class Other:
            def pytest_upskill_finished(self):
                return "still here"

        def pytest_configure(config):
            config.pluginmanager.register(Other())
        """
    )
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, "-n", workers)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"upskill: {message}" in result.stdout.str()
    assert "still here" in result.outlines
    assert len(records(pytester)) == 2


@pytest.mark.parametrize("args", [["--collect-only"], ["-k", "nothing"]])
def test_nothing_is_finished_where_nothing_is_asked(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    pytester.makeconftest("def pytest_upskill_finished(): raise ValueError")
    write_skill(pytester.path / "skills/gate")
    result = run(pytester, *args)
    assert "ValueError" not in result.stdout.str()


@pytest.mark.parametrize("hook", ["checks", "models", "prompt", "finished"])
def test_each_hook_is_typed_and_has_a_docstring_with_an_example(hook: str) -> None:
    from pytest_upskill.plugin import hookspecs

    spec = getattr(hookspecs, f"pytest_upskill_{hook}")
    assert "return" in spec.__annotations__
    assert f"def pytest_upskill_{hook}(" in spec.__doc__
