"""Lint rules for cases."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks.kinds import TAKEN
from pytest_upskill.lint import Finding, lint_skill
from pytest_upskill.lint.question_rules import near_duplicates
from pytest_upskill.skills.case import Case
from pytest_upskill.stats import cases_to_find
from support.folders import new_folder
from support.kit import case, write_skill
from support.strategies import CASES, EVALS, META, VALUES

ROOT = Path(__file__).parents[2]


def lint(folder: Path, **settings: Any) -> list[Finding]:
    """The findings of a skill, without "few-cases"."""
    found = lint_skill(folder / "SKILL.md", **{"judge": False, "lift": 0.2, **settings})
    return [finding for finding in found if finding.code != "few-cases"]


def lint_case(folder: Path, question: str, expected: Any, **more: Any) -> list[Finding]:
    skill = write_skill(
        folder / "gate", [{"input": question, "expected": expected, **more}]
    )
    return lint(skill)


def brief(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.code) for finding in found]


def test_an_example_that_nobody_edited_is_told(tmp_path: Path) -> None:
    cases = [
        {**case("one", "a"), "tags": ["edit-me"]},
        {**case("two", "b"), "tags": ["own"]},
    ]
    (finding,) = lint(write_skill(tmp_path / "gate", cases))
    assert (finding.level, finding.code) == ("warning", "example")
    assert 'remove the tag "edit-me"' in finding.hint


def test_good_cases_have_no_findings(tmp_path: Path) -> None:
    assert lint(write_skill(tmp_path / "gate")) == []


def test_each_problem_is_an_error_with_its_line(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    file = skill / "skill_meta.json"
    cases = [{"input": 1, "expected": {}}, *({"inptu": "q"} for _ in range(6))]
    file.write_text(json.dumps({"cases": cases}, indent=1))
    found = lint(skill)
    assert {finding.code for finding in found} == {"cases-invalid"}
    assert len(found) == 13
    assert found[0].file == str(file)
    assert (found[0].line, found[0].message[:14]) == (4, "cases[0].input")
    assert 'did you mean "input"?' in next(f.message for f in found if f.line == 8)


def test_invalid_checks_do_not_hide_other_findings(tmp_path: Path) -> None:
    cases = [case("How?", ""), case("Is it gate up?", "gate up")]
    found = lint(write_skill(tmp_path / "gate", cases))
    assert brief(found) == [("error", "cases-invalid"), ("warning", "leak")]
    assert "cases[0].expected.contains" in found[0].message


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "\ud800"])
def test_a_file_that_can_not_be_read_is_one_error(tmp_path: Path, text: str) -> None:
    skill = write_skill(tmp_path / "gate")
    (skill / "skill_meta.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert brief(lint(skill)) == [("error", "cases-invalid")]


@pytest.mark.parametrize(
    "text", ["[]", '{"tests": []}', '[{"query": "q", "should_trigger": true}]']
)
def test_file_without_cases_is_a_warning(tmp_path: Path, text: str) -> None:
    skill = write_skill(tmp_path / "gate")
    (skill / "skill_meta.json").write_text(text)
    found = [one for one in lint(skill) if one.code != "trigger-one-kind"]
    assert brief(found) == [("warning", "no-cases")]


def test_broken_cases_and_unknown_keys_are_all_found(tmp_path: Path) -> None:
    cases: list[Any] = [
        case("Gate?", "up"),
        {"input": ""},
        {**case("Door?", "up"), "zebra": 1},
        "text",
    ]
    found = lint(write_skill(tmp_path / "gate", cases))
    assert [(one.code, one.message) for one in found] == [
        ("cases-invalid", "cases[1].input: must not be empty"),
        ("cases-invalid", "cases[3]: must be an object"),
        ("cases-warning", "unknown keys are ignored: zebra"),
    ]


def test_problem_in_the_defaults_is_reported_once(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    text = {
        "defaults": {"expected": {"contains": 1}},
        "cases": [{"input": "a"}, {"input": "b"}],
    }
    (skill / "skill_meta.json").write_text(json.dumps(text))
    (finding,) = lint(skill)
    assert finding.message.startswith("defaults.expected.contains")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it Gate Up?", {"contains": ["open", "gate up"]}),
        ("Is it Gate Up?", {"any_of": [{"words": "gate up"}, {"contains": "nothing"}]}),
        ("Say yes or no.", {"equals": "no"}),
        ("Begin with Dear", {"starts_with": "Dear"}),
        ("End with Yours", [{"ends_with": "Yours"}]),
        ("Red or blue?", {"contains_any": ["blue", "pink"]}),
        ("Is it POST?", {"contains": "POST", "case_sensitive": True}),
    ],
)
def test_expected_text_in_the_question_is_a_leak(
    tmp_path: Path, question: str, expected: Any
) -> None:
    assert brief(lint_case(tmp_path, question, expected)) == [("warning", "leak")]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Do you know?", {"contains": "no"}),  # short texts match whole words only
        ("Is it post?", {"contains": "POST", "case_sensitive": True}),
        ("Is it gate up?", {"contains": "open", "not_contains": "gate up"}),
        ("Is it gate up?", {"contains": "open", "not": {"contains": "gate up"}}),
        (
            "Is it gate up?",
            [{"contains": "open"}, {"contains": "gate up", "required": False}],
        ),
    ],
)
def test_optional_or_unwanted_text_is_no_leak(
    tmp_path: Path, question: str, expected: Any
) -> None:
    assert lint_case(tmp_path, question, expected) == []


def test_leak_is_found_in_everything_the_model_reads(tmp_path: Path) -> None:
    expected = {"contains": "gate up"}
    files = {"files": {"a.txt": "it is gate up"}}
    turns = [
        {"role": "user", "content": "Which command?"},
        {"role": "assistant", "content": "gate up"},
        {"role": "user", "content": "Again?"},
    ]
    for number, found in enumerate(
        [
            lint_case(tmp_path / "1", "Which?", expected, context=files),
            lint_case(tmp_path / "2", "Which?", expected, system="gate up it is"),
            lint_skill_with(tmp_path / "3", {"input": turns, "expected": expected}),
        ]
    ):
        assert brief(found) == [("warning", "leak")], number


def lint_skill_with(folder: Path, *cases: Any) -> list[Finding]:
    return lint(write_skill(folder / "gate", cases))


def test_leak_has_the_line_of_the_text(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    text = (
        '[{"input": "Is it gate up?",\n"expected": {\n"contains": ["open",\n"gate'
        ' up"]}}]'
    )
    (skill / "skill_meta.json").write_text(text)
    assert [finding.line for finding in lint(skill)] == [4]


@pytest.mark.parametrize(
    ("expected", "passes"),
    [
        ({"not_contains": "gate down"}, True),
        ({"max_words": 500, "not_regex": "^Sorry"}, True),
        (
            {
                "max_output_tokens": 500,
                "refused": False,
                "stop": "end",
                "max_seconds": 9,
            },
            True,
        ),
        ({"any_of": [{"contains": "gate up"}, {"max_chars": 9000}]}, True),
        ([{"contains": "up", "required": False}, {"max_words": 900}], True),
        ({"contains": "gate up"}, False),
        ({"max_words": 5}, False),
        ({"min_words": 5}, False),
        ({"not_contains": "gate down", "judge": "It is polite."}, False),
        ({"not_contains": "gate down", "house_check": 1}, False),
        ({"json": True}, False),
    ],
)
def test_checks_that_any_answer_passes_are_found(
    tmp_path: Path, expected: Any, passes: bool
) -> None:
    found = lint_case(tmp_path, "Which command opens it?", expected)
    assert ("any-answer" in [finding.code for finding in found]) is passes


@pytest.mark.parametrize(
    ("expected", "reference", "codes"),
    [
        ({"contains": "gate up"}, "Type gate up.", []),
        ({"contains": "gate up"}, "Type gate down.", ["reference-fails"]),
        ({"contains": "gate up", "tools_used": "bash"}, "Type gate up.", []),
        ({"contains": "gate up", "judge": "It is polite."}, "No.", ["no-judge"]),
        ({"max_words": 5}, "Gate up.", ["empty-passes"]),
        ({"files": {"a.md": {"contains": "up"}}}, {"files": {"a.md": "gate up"}}, []),
        (
            {"files": {"a.md": {"contains": "up"}}},
            {"files": {"a.md": "?"}},
            ["reference-fails"],
        ),
        ({"unchanged": "log.txt"}, None, ["empty-passes"]),
        ({"command": "test -e a"}, {"files": {"b": ""}}, []),
    ],
)
def test_references_that_fail_and_empty_answers_that_pass_are_found(
    tmp_path: Path, expected: Any, reference: Any, codes: list[str]
) -> None:
    files = {"context": {"files": {"log.txt": "shut"}}}
    case = {"input": "Which command opens it?", "expected": expected, **files}
    found = lint_skill_with(
        tmp_path, {**case, "reference": reference} if reference else case
    )
    assert [finding.code for finding in found] == codes


def test_unknown_check_is_a_warning_with_a_suggestion(tmp_path: Path) -> None:
    (finding,) = lint_case(tmp_path, "Which?", {"any_of": [{"contians": "gate up"}]})
    assert (finding.level, finding.code) == ("warning", "check-unknown")
    assert 'did you mean "contains"?' in finding.message
    assert "conftest.py" in finding.hint


def test_unknown_check_is_reported_once_per_file(tmp_path: Path) -> None:
    cases = [{"input": q, "expected": {"cuda": q}} for q in ("a?", "b!")]
    assert len(lint_skill_with(tmp_path, *cases)) == 1
    validator = {"input": "Which?", "validator": "cuda", "validator_config": {"a": 1}}
    assert brief(lint_skill_with(tmp_path, validator)) == [("warning", "check-unknown")]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("checks.py:good", None),
        ("checks.py:made", None),
        ("checks.py:imported", None),
        ("checks.py:method", "no function 'method'"),
        ("stars.py:anything", None),
        ("no.py:good", "not found"),
        ("broken.py:good", "invalid Python"),
        ("../checks.py:good", "the skill's folder"),
        ("checks.py", "must have the form"),
    ],
)
def test_python_check_is_parsed_but_not_run(
    tmp_path: Path, written: str, problem: str | None
) -> None:
    skill = write_skill(
        tmp_path / "gate", [{"input": "Which?", "expected": {"python": written}}]
    )
    (skill / "checks.py").write_text(
        "raise SystemExit\nfrom a import b as imported\nmade = print\n"
        "class C:\n    def method(self): ...\nif 1:\n    def good(answer): ...\n"
    )
    (skill / "stars.py").write_text("from helpers import *\n")
    (skill / "broken.py").write_text("def good(:\n")
    found = lint(skill)
    assert brief(found) == ([("error", "cases-invalid")] if problem else [])
    assert (problem or "") in "".join(finding.message for finding in found)


def test_rubric_without_a_judge_is_a_warning(tmp_path: Path) -> None:
    cases = [
        {"input": q, "expected": {"judge": "It is polite."}}
        for q in ("Who?", "What now")
    ]
    skill = write_skill(tmp_path / "gate", cases)
    (finding,) = lint(skill)
    assert (finding.level, finding.code) == ("warning", "no-judge")
    assert "2 cases" in finding.message
    assert lint(skill, judge=True) == []


def test_evals_json_is_linted_without_skill_meta(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    (skill / "skill_meta.json").unlink()
    (skill / "evals").mkdir()
    text = '{"evals": [\n{"id": 1, "prompt": "Which?", "expected_output": "gate up"}]}'
    (skill / "evals/evals.json").write_text(text)
    (finding,) = lint(skill)
    assert (finding.file, finding.line) == (str(skill / "evals/evals.json"), 2)
    assert finding.code == "no-judge"


LONG = (
    "Write the file build.toml for a kernel that runs on the card called {} and nothing"
    " else."
)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("How do I open the gate?", "how do I  open the GATE?", True),
        (LONG.format("H100"), LONG.format("New Volta"), True),
        ("Convert metres to feet", "Convert feet to metres", False),
        ("What is 3 + 4?", "What is 3 - 4?", False),
        ("How do I open the gate?", "How do I close the gate?", False),
        ("Wie öffne ich das Tor?", "How do I open the gate?", False),
        ("Which command deploys a service?", "Which command stops a service?", False),
        ("What is our staging environment?", "What is our live environment?", False),
        ("?", "?", True),
    ],
)
def test_near_duplicate_questions_are_found(
    tmp_path: Path, one: str, other: str, alike: bool
) -> None:
    found = lint_skill_with(
        tmp_path, case(one, "text a", id="a"), case(other, "text b", id="b")
    )
    assert brief(found) == [("warning", "near-duplicate")] * alike
    assert all(
        finding.message.startswith("b: ") and " a (line" in finding.message
        for finding in found
    )


def test_variants_of_a_question_need_a_group(tmp_path: Path) -> None:
    questions = [LONG.format(card) for card in ("H100", "A100", "New Volta")]
    cases = [case(text, "text", id=f"c{n}") for n, text in enumerate(questions)]
    findings = lint_skill_with(tmp_path, *cases)
    assert brief(findings) == [("warning", "near-duplicate")] * 2
    assert [finding.message.partition(":")[0] for finding in findings] == ["c1", "c2"]
    assert '"group"' in findings[0].hint

    of_one_group = [{**each, "group": "cards"} for each in cases]
    assert lint_skill_with(tmp_path, *of_one_group) == []


def test_same_question_about_other_files_is_no_duplicate() -> None:
    cases = [Case(str(n), "Sum it up.", files=(("a.txt", str(n)),)) for n in range(3)]
    assert list(near_duplicates(cases)) == []


def test_each_of_many_duplicates_is_reported_once() -> None:
    cases = [Case(str(n), "Open the gate, please.") for n in range(50)]
    assert {(one.id, int(other.id)) for one, other in near_duplicates(cases)} == {
        ("0", n) for n in range(1, 50)
    }


def test_the_docs_say_how_many_cases_a_lift_needs() -> None:
    page = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    sentence = page.partition("`few-cases` wants ")[2].partition(" in 5 runs")[0]
    needed = [cases_to_find(lift / 100, 5) for lift in (10, 20, 30, 50)]
    assert re.findall(r"(\d+) (?:to|for)", sentence) == [
        str(number) for number in needed
    ]


def test_too_few_cases_for_the_lift_are_a_warning(tmp_path: Path) -> None:
    cases = [case(f"{n}?", "gate up", id=str(n)) for n in range(9)]
    cases[8]["group"] = cases[7]["group"] = "same"
    cases.append(case("Never asked", "gate up", skip="later"))
    skill = write_skill(tmp_path / "gate", cases)
    (finding,) = lint_skill(skill / "SKILL.md", judge=False, lift=0.4)
    assert (finding.level, finding.code) == ("warning", "few-cases")
    assert finding.message.startswith("8 groups")
    needed = [cases_to_find(0.4, runs) for runs in (5, 1)]
    assert re.findall(r"about (\d+) with", str(finding.hint)) == [
        str(cases) for cases in needed
    ]
    assert lint_skill(skill / "SKILL.md", judge=False, lift=0.8) == []
    (finding,) = lint_skill(skill / "SKILL.md", judge=False, lift=0.0001)
    assert "over 10,000 with 5 runs" in str(finding.hint)


CHECKS = st.dictionaries(
    st.sampled_from(TAKEN) | st.text(),
    VALUES | st.text(min_size=1) | st.integers(1, 9) | st.just({"contains": "a"}),
    max_size=4,
)
CHECKED = st.lists(
    st.fixed_dictionaries(
        {"input": st.text(min_size=1), "expected": CHECKS | st.lists(CHECKS)}
    ),
    min_size=1,
    max_size=3,
)


@given(data=VALUES | CASES | META | EVALS | CHECKED)
def test_lint_does_not_raise_on_any_json(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    skill = write_skill(new_folder(tmp_path_factory) / "gate")
    (skill / "a.txt").write_text("a")
    (skill / "skill_meta.json").write_text(json.dumps(data))
    for finding in lint(skill):
        assert finding.line >= 1
        assert finding.code


@given(data=st.text().map(str.encode) | st.binary())
def test_lint_does_not_raise_on_any_cases_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    skill = write_skill(new_folder(tmp_path_factory) / "gate")
    (skill / "skill_meta.json").write_bytes(data)
    assert all(finding.code for finding in lint(skill))


def test_broken_cases_alone_are_not_too_few(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate", [{"input": 1, "expected": {}}])
    found = lint_skill(skill / "SKILL.md", judge=False, lift=0.2)
    assert {finding.code for finding in found} == {"cases-invalid"}
