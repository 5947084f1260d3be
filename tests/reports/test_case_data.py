"""The data of the table of cases: states, links, and how answers are cut to fit."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.case_rows import rows_of
from pytest_upskill.results.regressions import could_flip
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.plan import Count
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.made import accepted_count, made_record, made_run
from support.pages import data_of, large_run, readable_run


def states(results: RunResults) -> dict[str, list[str]]:
    return {row.test.case: row.states for row in rows_of(results)}


def passing(*flags: str) -> RunResults:
    """Three runs of a case for each of the texts: baseline, then skill, 1 passed and 0 did not."""

    def passes(number: int, _model: str, arm: str, run: int) -> bool:
        baseline, skill = flags[number].split()
        return (baseline if arm == "baseline" else skill)[run - 1] == "1"

    return made_run(cases=len(flags), runs=3, passes=passes)


def test_each_arm_has_states_of_its_own() -> None:
    first, second = rows_of(passing("000 111", "110 101"))
    assert first.states_of("baseline") == ["failed"]
    assert first.states_of("skill") == []
    assert second.states_of("baseline") == second.states_of("skill") == ["flaky"]
    assert first.states_of("previous") == []
    missing = made_run(cases=1)
    records = [
        replace(record, outcome="errored") if record.arm == "baseline" else record
        for record in missing.records
    ]
    (row,) = rows_of(replace(missing, records=tuple(records)))
    assert row.states_of("baseline") == ["errored"]
    assert "errored" not in row.states_of("skill")


def test_outcomes_are_those_that_the_run_counts() -> None:
    results = made_run(
        cases=4,
        passes=lambda number, *_: number == 0,
        accepted={0: accepted_count(0), 1: accepted_count(0), 2: accepted_count(50, 50)},
    )
    lost = tuple(record for record in results.records if record.case != "case-3")
    results = replace(results, records=lost)
    outcomes = [row.outcome for row in rows_of(results)]
    assert outcomes == ["passed", "failed as expected", "failed", "not run"]
    assert outcomes.count("failed") == len(results.failed)
    assert [row.changes for row in rows_of(results)] == [["improved"], [], ["regressed"], ["new"]]


def test_changes_since_a_git_ref_are_told() -> None:
    def passes(number: int, _model: str, arm: str, _run: int) -> bool:
        return number == {"previous": 0, "skill": 1}.get(arm)

    results = made_run(cases=3, passes=passes, arms=("baseline", "previous", "skill"))
    assert [row.changes for row in rows_of(results)] == [["worse"], ["better"], []]


def test_states_match_their_definitions() -> None:
    results = passing("000 111", "111 111", "000 000", "110 111", "111 110", "111 000", "011 100")
    assert states(results) == {
        "case-0": [],
        "case-1": ["no signal"],
        "case-2": ["failed", "no signal"],
        "case-3": [],  # only the skill's own runs count
        "case-4": ["worse", "flaky"],
        "case-5": ["failed", "worse"],
        "case-6": ["failed", "worse", "flaky"],
    }
    verdict = results.verdicts[0]
    found = states(results)
    assert [c for c in found if "worse" in found[c]] == list(verdict.worse)
    none = {*verdict.always_pass, *verdict.always_fail}
    assert {c for c in found if "no signal" in found[c]} == none


def test_a_threshold_of_the_case_decides_what_failed() -> None:
    made = passing("000 100", "000 110")
    strict = [replace(test, threshold=1.0) for test in made.tests]
    loose = [replace(test, threshold=0.3) for test in made.tests]
    assert [row.states for row in rows_of(replace(made, tests=tuple(strict)))] == [
        ["failed"],  # all three would pass once in 27 times
        ["failed", "flaky"],
    ]
    assert [row.states for row in rows_of(replace(made, tests=tuple(loose)))] == [["flaky"], []]


@pytest.mark.parametrize(
    ("count", "threshold", "flaky"),
    [
        (Count(0, 5), None, False),
        (Count(5, 5), None, False),
        (Count(1, 2), None, True),
        (Count(3, 5), None, True),
        (Count(1, 5), None, True),
        (Count(9, 10), None, False),
        (Count(9, 10), 0.9, True),
        (Count(1, 10), None, False),
        (Count(600, 1000), None, False),
        (Count(505, 1000), None, True),
    ],
)
def test_a_case_is_flaky_if_it_could_end_on_the_other_side(
    count: Count, threshold: float | None, flaky: bool
) -> None:
    assert could_flip(count, threshold) == flaky


def test_errored_regressed_and_not_run_are_states() -> None:
    made = made_run(accepted={4: accepted_count(50, 50)})
    lost = made_record("gate", "case-1", "haiku", "baseline", 1, outcome="errored", error="late")
    records = [r for r in made.records if r.case not in ("case-1", "case-5")]
    found = states(replace(made, records=(*records, lost)))
    assert found["case-4"] == ["failed", "regressed", "no signal"]
    assert found["case-1"] == ["errored"]
    assert found["case-5"] == ["not run"]


def test_a_link_to_a_case_depends_on_names_only() -> None:
    first = data_of(html_report(made_run(models=("haiku", "hf:org/name"))))
    later = data_of(html_report(made_run(models=("hf:org/name", "haiku"), cases=3, runs=2)))
    ids = {test["id"] for test in first["tests"]}
    assert len(ids) == 12
    assert {test["id"] for test in later["tests"]} < ids
    assert first["tests"][0]["id"] == "case-gate-case-0-haiku-8efa165acf"


def test_packed_data_has_questions_and_answers() -> None:
    results = readable_run()
    data = data_of(html_report(results))
    assert [case["question"][0] for case in data["cases"]] == list(results.questions.values())
    trials = [trial for test in data["tests"] for trial in test["trials"]]
    assert [trial["answer"] and trial["answer"][0] for trial in trials] == [
        record.output for record in results.records
    ]
    (first, *_) = data["tests"]
    assert first["trials"][0]["checks"][2][0] == "miss"
    assert "the judge quotes" in first["trials"][1]["checks"][2][2]
    assert data["tests"][28]["accepted"] == "12 of 12 on 2026-01-01"


def test_invisible_characters_are_escaped_in_the_data() -> None:
    made = made_run(cases=1)
    answer = "one\r\n\ttwo \u202eeerht \x1b[31m\x07\x00"
    records = [replace(record, output=answer, error="\u202e") for record in made.records]
    skills = [replace(skill, against="v1\u202e") for skill in made.skills]
    questions = dict.fromkeys(made.questions, answer)
    results = replace(made, records=tuple(records), skills=tuple(skills), questions=questions)
    data = data_of(html_report(results))
    shown = ["one\n\ttwo \\u202eeerht \\x1b[31m\\x07\\x00"]
    assert [trial["answer"] for trial in data["tests"][0]["trials"]] == [shown, shown]
    assert data["cases"][0]["question"] == shown
    assert data["tests"][0]["trials"][0]["error"] == "\\u202e"
    assert data["against"] == {"gate": "v1\\u202e"}


@pytest.fixture(scope="module")
def large() -> tuple[RunResults, str]:
    results = large_run()
    return results, html_report(results)


def shown_lengths(results: RunResults, page: str) -> tuple[list[int], list[int]]:
    """How much is shown of each answer, of failed cases and of others; each cut has a note."""
    ordinary: list[int] = []
    telling: list[int] = []
    data = data_of(page)
    rows = zip(data["tests"], rows_of(results), strict=True)
    for test, row in rows:
        for trial, record in zip(test["trials"], row.records, strict=True):
            whole, (shown, *length) = record.output or "", trial["answer"]
            (telling if row.is_telling else ordinary).append(len(shown))
            if shown == whole:
                assert not length
                continue
            assert length == [len(whole)]
            left_out = re.search(r"\n\[… ([\d,]+) characters left out …\]\n", shown)
            assert left_out
            head, tail = shown[: left_out.start()], shown[left_out.end() :]
            assert len(head) + len(tail) + int(left_out[1].replace(",", "")) == len(whole)
            assert whole.startswith(head)
            assert whole.endswith(tail)
    return ordinary, telling


@pytest.mark.nightly
def test_files_and_transcripts_are_cut_like_answers() -> None:
    made = made_run(cases=20)
    words = " ".join(str(number * 7919 % 10_007) for number in range(20_000))
    files = (AnswerFile.of("a.txt", words.encode()),)
    transcript = tuple(Turn("result", words[n:][:20_000], "bash") for n in range(0, 60_000, 1000))
    records = [replace(one, files=files, transcript=transcript) for one in made.records]
    page = html_report(replace(made, records=tuple(records)))
    assert 500_000 < len(page.encode()) < 950_000
    (_, _, cut, *_), *_ = data_of(page)["tests"][0]["trials"][0]["files"]
    assert cut[1] == len(words)
    assert "answers are cut" not in page


@pytest.mark.nightly
def test_a_large_run_is_cut_to_less_than_a_megabyte(
    large: tuple[RunResults, str],
) -> None:
    results, page = large
    assert len(results.records) == 3600
    size = len(page.encode())
    assert 700_000 < size < 950_000
    ordinary, telling = shown_lengths(results, page)
    assert max(ordinary) < min(telling)
    (number,) = re.findall(r"small, ([\d,]+) of 3,600 answers are cut", page)
    trials = [trial for test in data_of(page)["tests"] for trial in test["trials"]]
    assert int(number.replace(",", "")) == sum(len(trial["answer"]) > 1 for trial in trials)


def test_a_run_that_fits_is_not_cut() -> None:
    page = html_report(large_run(cases=20))
    assert len(page.encode()) < 900_000
    assert "are cut" not in page
    assert all(len(t["answer"]) == 1 for test in data_of(page)["tests"] for t in test["trials"])


@pytest.mark.nightly
def test_huge_answers_and_questions_are_cut_to_fit() -> None:
    made = large_run(cases=2)
    words = " ".join(record.output or "" for record in made.records)
    records = [replace(record, output=words[n:] * 40) for n, record in enumerate(made.records)]
    noise = base64.b85encode(hashlib.shake_256(b"seed").digest(2_000_000)).decode()
    questions = {key: noise[n:] for n, key in enumerate(made.questions)}
    results = replace(made, records=tuple(records), questions=questions)
    page = html_report(results)
    assert len(page.encode()) < 1_000_000
    shown_lengths(results, page)
    (question, length) = data_of(page)["cases"][0]["question"]
    assert len(question) < length == 2_500_000


def test_many_long_transcripts_keep_their_ends() -> None:
    made = agent_run(cases=150)
    turns = tuple(Turn("result", f"step {n} " * 50, "bash", reply=n) for n in range(400))
    page = html_report(
        replace(made, records=tuple(replace(one, transcript=turns) for one in made.records))
    )
    assert len(page.encode()) < 950_000
    trial = data_of(page)["tests"][0]["trials"][0]
    assert (trial["steps"], trial["cut_after"], len(trial["transcript"])) == (400, 10, 40)
    assert [step[4] for step in trial["transcript"]] == [*range(10), *range(370, 400)]


IMAGES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff\xe0", "gif": b"GIF89a"}


@pytest.mark.parametrize("kind", IMAGES)
def test_small_images_are_shown(kind: str) -> None:
    assert list(images_of(IMAGES[kind] + b"\0" * 30)) == [f"data:image/{kind}"]


@pytest.mark.parametrize("data", [b"<svg onload=alert(1)>", b"<script>", b"", b"%PDF-1.4"])
def test_nothing_else_becomes_an_image(data: bytes) -> None:
    assert list(images_of(data)) == []


def test_images_have_a_limit_and_failed_cases_come_first() -> None:
    made = agent_run(cases=4, passes=lambda case, *_: case != 3)
    large = IMAGES["png"] + b"\0" * 150_000

    def pictured(record: Record) -> Record:
        data = base64.b64encode(large + record.case.encode()).decode()
        return replace(record, files=(AnswerFile("a.png", None, 9, record.case, "made", data),))

    results = replace(made, records=tuple(map(pictured, made.records)))
    assert list(data_of(html_report(results))["images"]) == ["case-3"]


@pytest.mark.parametrize("data", ["iVBORw0KGgo<script>", 'iVBORw0KGgo" onerror=x', "/9j/ x"])
def test_an_image_that_is_not_base64_is_not_shown(data: str) -> None:
    made = agent_run(cases=1)
    files = (AnswerFile("a.png", None, 9, "1", "made", data),)
    results = replace(made, records=tuple(replace(one, files=files) for one in made.records))
    page = data_of(html_report(results))
    assert page["images"] == {}
    assert page["tests"][0]["trials"][0]["files"][0][4] is None


def images_of(data: bytes) -> list[str]:
    made = agent_run(cases=1)
    files = (AnswerFile("a.png", None, len(data), "1", "made", base64.b64encode(data).decode()),)
    results = replace(made, records=tuple(replace(one, files=files) for one in made.records))
    images = data_of(html_report(results))["images"]
    return [address.partition(";")[0] for address in images.values()]
