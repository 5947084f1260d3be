"""A skill that does not fit a model's context is said before the first call."""

import pytest

from support.kit import write_script, write_skill
from support.usage import usage_error

SMALL = "local:m.gguf?context=4096"


@pytest.fixture
def pytester_with_skills(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "m.gguf").write_bytes(b"GGUF")
    write_skill(pytester.path / "skills/long", body="Type gate up. " * 1000)
    return pytester


def test_a_skill_that_no_model_can_read_is_an_error(
    pytester_with_skills: pytest.Pytester,
) -> None:
    message = usage_error(pytester_with_skills, "--skill", "skills", "--model", SMALL)
    assert "long is too long: about 3,500 tokens of 4,096" in message
    assert "Use another model; local:FILE.gguf?context=N takes longer ones" in message


def test_with_others_that_fit_it_is_a_line(
    pytester_with_skills: pytest.Pytester,
) -> None:
    pytester = pytester_with_skills
    model = write_script(pytester.path / "a.json")
    words = ["--skill", "skills", "--model", SMALL, "--model", model]
    result = pytester.runpytest_inprocess(*words, "-k", "scripted")
    result.stdout.fnmatch_lines(f"upskill: {SMALL}: long is too long: *")
    result.assert_outcomes(failed=1, deselected=1)
    none = pytester.runpytest_inprocess(
        *words, "--skill-max-output", "10", "-k", "scripted"
    )
    none.stdout.no_fnmatch_line("*too long*")
