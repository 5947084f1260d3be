"""pytest_upskill_models: models of a conftest.py."""

import pytest

from pytest_upskill.engine.store import StoredAnswers
from support.hook_runs import example, records, run
from support.kit import BODY, write_skill
from support.usage import usage_error


def test_the_example_of_a_model(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(example("class Parrot"))
    result = run(pytester, "-n", workers, model="parrot:polly")
    result.assert_outcomes(passed=1)
    baseline, skill = records(pytester)
    assert baseline["output"].startswith(
        "polly says: You are a helpful assistant. How do I"
    )
    assert BODY in skill["output"]
    assert skill["input_tokens"] == 40


def test_a_model_of_a_hook_is_named_by_its_prefix_alone_too(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(example("class Parrot"))
    result = run(pytester, "--collect-only", model="parrot")
    result.stdout.fnmatch_lines(
        ["upskill: a run would make up to 2 calls*", "*open-gate?parrot?*"]
    )


def test_answers_of_a_model_of_a_hook_are_stored(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(example("class Parrot"))
    for stored in (False, True):
        run(pytester, model="parrot:polly").assert_outcomes(passed=1)
        assert [record["stored"] for record in records(pytester)] == [stored] * 2


def test_the_example_of_a_provider(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    pytester.makeconftest(example("class AcmeProvider"))
    result = run(pytester, "-n", workers, model="acme:large")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *acme:large: ACME_KEY is not set"])
    monkeypatch.setenv("ACME_KEY", "key")
    run(pytester, "-n", workers, model="acme:large").assert_outcomes(passed=1)
    assert [record["output"] for record in records(pytester)] == ["Type gate up."] * 2


JUDGE = """
    import json
    from pytest_upskill import Answer, Model

    class Kind(Model):
        async def ask(self, question):
            ruling = {"criterion": 1, "quote": "up", "reason": "it is",
                      "verdict": "pass"}
            mark = question.messages[-1][1].split('"mark": "')[1].split('"')[0]
            return Answer(json.dumps({"mark": mark, "verdicts": [ruling]}))

    def pytest_upskill_models():
        return {"kind": lambda name: Kind()}
"""


def test_a_model_of_a_hook_can_judge(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(JUDGE)
    case = {"input": "How?", "expected": {"judge": "It is polite."}}
    run(pytester, "--skill-judge", "kind", "-n", workers, case=case).assert_outcomes(
        passed=1
    )
    assert [record["judge"]["calls"] for record in records(pytester)] == [1, 1]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[print]", "returned [print]"),
        ("{'openai': print}", "'openai' is taken"),
        ("{'haiku': print}", "'haiku' is taken"),
    ],
)
def test_wrong_models_are_a_usage_error(
    pytester: pytest.Pytester, returned: str, message: str
) -> None:
    pytester.makeconftest(f"def pytest_upskill_models(): return {returned}")
    write_skill(pytester.path / "skills/gate")
    error = usage_error(pytester, "--skill", "skills", "--model", "haiku")
    message = message.replace("print", "<built-in function print>")
    assert error.startswith(f"pytest_upskill_models: {message}")


@pytest.mark.parametrize("raised", ["ValueError('no\\nway')", "pytest.fail('no way')"])
def test_a_models_hook_that_raises_is_a_usage_error(
    pytester: pytest.Pytester, raised: str
) -> None:
    pytester.makeconftest(
        f"import pytest\n\ndef pytest_upskill_models():\n    raise {raised}"
    )
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = (
        r"ERROR: conftest.py:4: pytest_upskill_models raised (ValueError|Failed):"
        r" no way"
    )
    result.stderr.re_match_lines([message])


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

    class Leaving(Model):
        async def ask(self, question):
            raise SystemExit(3)

    class Stuck(Good):
        async def close(self):
            raise OSError("can't close")

    def pytest_upskill_models():
        return {"good": lambda name: Good(), "none": lambda name: None,
                "silent": lambda name: Silent(), "raising": lambda name: Raising(),
                "leaving": lambda name: Leaving(), "stuck": lambda name: Stuck()}
"""


def test_a_broken_model_errs_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(BROKEN)
    messages = {
        "none": "the adapter raised AttributeError(",
        "silent": "the adapter raised TypeError('ask returned None, not an Answer')",
        "raising": "the adapter raised KeyError('oops')",
        "leaving": "the adapter raised SystemExit(3)",
    }
    models = [word for model in ("stuck", *messages) for word in ("--model", model)]
    result = run(pytester, *models, model="good")
    result.assert_outcomes(passed=2, errors=4)
    errors = {record["model"]: record["error"] for record in records(pytester)}
    for model, message in messages.items():
        assert message in errors[model]
    answered = [
        record["model"] for record in records(pytester) if record["outcome"] == "passed"
    ]
    assert answered == ["good"] * 2 + ["stuck"] * 2  # which can't close


@pytest.mark.parametrize("method", ["get", "put"])
def test_a_bug_in_the_engine_is_an_error_and_no_endless_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def broken(*_: object) -> None:
        raise OverflowError("too large")

    monkeypatch.setattr(StoredAnswers, method, broken)
    pytester.makeconftest(BROKEN)
    result = run(pytester, model="good")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (
        "unexpected error: OverflowError('too large'). Please report it"
        in result.stdout.str()
    )
