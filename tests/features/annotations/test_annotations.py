"""What GitHub shows beside the lines of a file of cases."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.features.annotations.lines import MAX_ERRORS, annotations
from pytest_upskill.settings import Gates
from support.made import accepted_count, made_run

FILE = "skills/gate/skill_meta.json"


def never(*_: object) -> bool:
    return False


def test_a_failed_case_is_one_line_with_its_reasons_and_all_its_models() -> None:
    run = made_run(cases=2, models=("haiku", "sonnet"), passes=never)
    reason = '"gate up" is not in the answer'
    assert annotations(run) == [
        f"::error file={FILE},line={number + 1},title=skill failed::"
        f"gate on haiku: case-{number}: {reason}%0A"
        f"gate on sonnet: case-{number}: {reason}"
        for number in (0, 1)
    ]
    assert annotations(made_run(passes=lambda *_: True)) == []


def test_regressions_come_first_and_what_github_hides_is_counted() -> None:
    accepted = {number: accepted_count(5, 5) for number in (15, 18)}
    run = made_run(
        cases=22, runs=5, passes=never, accepted=accepted, gates=Gates(min_lift=0.5)
    )
    *errors, notice = annotations(run)
    assert len(errors) == MAX_ERRORS
    titles = [re.findall("title=([a-z ]+)", line)[0] for line in errors]
    assert titles == ["skill regression"] * 2 + ["skill failed"] * 8
    assert notice.startswith("::notice title=skills::13 more errors: ")


def test_an_error_of_many_cases_takes_one_line() -> None:
    run = made_run(cases=30, passes=never)
    records = [
        replace(record, outcome="errored", error="no budget left")
        for record in run.records[2:]
    ]
    failed, error = annotations(replace(run, records=(*run.records[:2], *records)))
    assert "title=skill failed" in failed
    assert error == (
        "::error title=skills::58 answers are missing in 29 tests: no budget left."
    )


def test_what_could_not_be_asked_is_told_at_its_place() -> None:
    run = replace(
        made_run(cases=0), broken={"a,b.json::x": "0% of it", "b.json::y": ""}
    )
    shown = annotations(run, lambda file: f"sub/{file}", {"b.json::y": ("c.json", 7)})
    assert shown == [
        "::error file=sub/a%2Cb.json,line=1,title=skill failed::0%25 of it",
        "::error file=sub/c.json,line=7,title=skill failed::",
    ]


@given(st.text())
def test_no_text_makes_a_line_or_a_command_of_its_own(text: str) -> None:
    run = made_run(skills=(text,), models=(text,), cases=2, passes=never)
    run = replace(run, broken={f"{text}::x": text})
    for line in annotations(run, lambda file: file + text):
        assert re.fullmatch(
            r"::error (file=[^:,]*,line=\d+,)?title=[a-z ]+::.*", line
        ), line
        assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f\u2028\u2029\x85]", line)
