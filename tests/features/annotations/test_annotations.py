"""What GitHub shows beside the lines of a file of cases."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.annotations.lines import MOST, annotations
from pytest_upskill.settings import Gates
from support.made import accepted_count, made_run

FILE = "skills/gate/skill_meta.json"


def never(*_: object) -> bool:
    return False


def title(line: str) -> str:
    return line.partition("title=")[2].partition("::")[0]


def test_a_run_that_passes_has_none() -> None:
    assert annotations(made_run(passes=lambda *_: True)) == []


def test_each_failed_case_is_one_line_with_its_reasons_and_all_its_models() -> None:
    run = made_run(cases=2, models=("haiku", "sonnet"), passes=never)
    reason = 'contains: "gate up" is not in the answer'
    assert annotations(run) == [
        f"::error file={FILE},line={number + 1},title=skill failed::"
        + "%0A".join(
            f"gate on {model}: case-{number}: 0 of 1 passed; {reason}"
            for model in ("haiku", "sonnet")
        )
        for number in (0, 1)
    ]


def test_the_worst_come_first_and_the_rest_is_counted() -> None:
    def passes(number: int, _model: str, _arm: str, run: int) -> bool:
        return number > 20 or run <= number % 3

    accepted = {number: accepted_count(5, 5) for number in (15, 18)}
    run = made_run(
        cases=22, runs=5, passes=passes, accepted=accepted, gates=Gates(min_lift=0.5)
    )
    shown = annotations(run)
    errors = [line for line in shown if line.startswith("::error ")]
    assert len(errors) == MOST
    titles = [title(line) for line in errors]
    assert titles == ["skill regression"] * 2 + ["skill failed"] * 7 + ["skill gate"]
    counts = [int(re.findall(r"(\d) of 5 passed", line)[0]) for line in errors[2:9]]
    assert counts == sorted(counts)
    (rest,) = [line for line in shown if not line.startswith("::error ")]
    assert (
        rest
        == "::notice title=skills::12 cases more failed: see the summary of the job"
    )


def test_a_case_that_only_fails_with_the_skill_says_so() -> None:
    run = made_run(
        cases=1, runs=3, passes=lambda _case, _model, arm, _run: arm == "baseline"
    )
    assert (
        ": 0 of 3 passed, 3 of 3 without the skill; contains: " in annotations(run)[0]
    )


def test_an_error_of_many_cases_takes_one_line() -> None:
    run = made_run(cases=30, passes=never)
    records = [
        replace(one, outcome="errored", error="no budget left")
        for one in run.records[2:]
    ]
    shown = annotations(replace(run, records=(*run.records[:2], *records)))
    assert [title(line) for line in shown] == ["skill failed", "skill unanswered"]
    name = "gate on haiku: case-1 (and 28 more tests)"
    assert (
        shown[1]
        == f"::error file={FILE},line=2,title=skill unanswered::{name}: no budget left"
    )


def test_a_skill_that_got_worse_as_a_whole_is_told_at_the_top_of_its_file() -> None:
    def passes(_number: int, _model: str, _arm: str, run: int) -> bool:
        return run <= 3

    accepted = {number: accepted_count(5, 5) for number in range(12)}
    run = made_run(cases=12, runs=5, passes=passes, accepted=accepted)
    first = annotations(run)[0]
    assert first.startswith(f"::error file={FILE},line=1,title=skill regression::")
    assert run.comparisons[0].reasons[-1] in first
    assert not any(title(line) == "skill gate" for line in annotations(run))


def test_what_could_not_be_asked_is_told_at_its_place() -> None:
    run = replace(
        made_run(cases=0), broken={"a.json::x": "a.json:7: no", "b.json::y": "b.json"}
    )
    shown = annotations(run, lambda file: f"sub/{file}", {"a.json::x": ("a.json", 7)})
    assert shown == [
        "::error file=sub/a.json,line=7,title=skill broken::a.json:7: no",
        "::error file=sub/b.json,line=1,title=skill broken::b.json",
    ]


def test_signs_that_separate_are_escaped() -> None:
    run = replace(made_run(cases=0), broken={"a,b/c.json::x": "0% of it"})
    [line] = annotations(run, lambda file: file)
    assert line == "::error file=a%2Cb/c.json,line=1,title=skill broken::0%25 of it"


@given(st.text())
def test_no_text_makes_a_line_or_a_command_of_its_own(text: str) -> None:
    run = made_run(skills=(text,), models=(text,), cases=2, passes=never)
    run = replace(run, broken={f"{text}::x": text})
    for line in annotations(run, lambda file: file + text):
        assert re.fullmatch(
            r"::error file=[^:,]*,line=\d+,title=skill \w+::.*", line
        ), line
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f\u2028\u2029\x85]", line)
