"""upskill.config.yaml: how it sets the defaults of a run."""

import re

import pytest

from pytest_upskill.skills.upskill_config import CONFIG_NAME
from support.kit import write_script, write_skill


def test_code_as_a_model_is_refused_and_not_run(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    code = (
        "import pathlib\npathlib.Path('executed').touch()\ndef f(question): return"
        " 'gate up'\n"
    )
    (pytester.path / "evil.py").write_text(code)
    (pytester.path / CONFIG_NAME).write_text(
        "eval_model: [haiku, 'scripted:evil.py:f']"
    )
    result = pytester.runpytest_inprocess("--skill", "skills")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "eval_model: scripted:evil.py:f: this file can't name code"
        in result.stderr.str()
    )
    assert not (pytester.path / "executed").exists()
    (pytester.path / CONFIG_NAME).unlink()
    args = ["--skill", "skills", "--model", "scripted:evil.py:f"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    assert (pytester.path / "executed").exists()


def test_eval_model_of_the_file_next_to_the_ini_file_is_the_default(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    pytester.makeini("[pytest]\nskill_paths = skills")
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    (pytester.path / CONFIG_NAME).write_text(f"eval_model: {model}")
    monkeypatch.chdir(pytester.path / "skills")
    result = pytester.runpytest_inprocess("-n", workers)
    result.assert_outcomes(passed=1)
    header = r"upskill: gate on scripted:a\.json .*\(from .*upskill\.config\.yaml\)"
    assert re.search(header, " ".join(result.outlines))


def test_command_line_and_ini_file_take_precedence(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    (pytester.path / CONFIG_NAME).write_text("eval_model: [")  # not even read
    args = ["--skill", "skills", "--collect-only", "-o", "skill_history=false"]
    result = pytester.runpytest_inprocess(*args, "--model", model)
    assert f"upskill: gate on {model}" in result.outlines
    pytester.makeini(f"[pytest]\nskill_models = {model}")
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines([f"upskill: gate on {model} (*)"])


def test_file_is_not_read_unless_a_skill_is_tested(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / CONFIG_NAME).write_text("eval_model: [")
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("upskill:*")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eval_model: hiku", "upskill.config.yaml: eval_model: hiku: unknown model*"),
        (
            "eval_model: haiku",
            "upskill.config.yaml: eval_model: haiku: ANTHROPIC_API_KEY is not*",
        ),
        ("eval_model: [", "upskill.config.yaml:1:*: invalid YAML*"),
    ],
)
def test_mistake_in_the_file_is_a_usage_error(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / CONFIG_NAME).write_text(text)
    result = pytester.runpytest_inprocess("--skill", "skills")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
