"""Options that people try: the message names the right one."""

import pytest

from support.kit import write_script, write_skill
from support.usage import usage_error


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "--skill-base-ulr=http://x/v1",
            '--skill-base-ulr: no such option (did you mean "--skill-base-url"?)',
        ),
        (
            "--skill-rusn 3",
            '--skill-rusn: no such option (did you mean "--skill-runs"?)',
        ),
    ],
)
def test_the_right_option_is_named(
    pytester: pytest.Pytester, args: str, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    assert message in usage_error(pytester, "--skill", "skills", *args.split())


@pytest.mark.parametrize("model", ["haiku", "openai:gpt-5"])
def test_a_mark_that_is_a_model_is_none(pytester: pytest.Pytester, model: str) -> None:
    write_skill(pytester.path / "skills/gate")
    result = pytester.runpytest_inprocess("--skill", "skills", "-m", model)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        f"*-m {model}: -m selects by marks. For a model: --model {model}"
    )


def test_options_and_marks_of_others_are_theirs(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        'def pytest_addoption(parser):\n    parser.addoption("--runs")\n'
    )
    pytester.makeini("[pytest]\nmarkers =\n    haiku: three lines\n")
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    args = ("--skill", "skills", "--model", model, "--runs", "3")
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    result = pytester.runpytest_inprocess(*args, "-m", "haiku")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_other_unknown_options_are_pytests_matter(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    for args in (["--skill", "skills", "--nothing"], ["--timeout=5"]):
        assert f"unrecognized arguments: {args[-1]}" in usage_error(pytester, *args)
