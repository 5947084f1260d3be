"""The HTML report stays small however much was answered, and its plots hold any numbers."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.html.case_data import rows_of
from pytest_upskill.reports.html.plots import Point, efficient, points_of
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.transcript import Turn
from support.made import made_run
from support.pages import data_of, large_run, readable_run

# Sizes.


@pytest.fixture(scope="module")
def large() -> tuple[RunResults, str]:
    results = large_run()
    return results, html_report(results)


def shown_lengths(results: RunResults, page: str) -> tuple[list[int], list[int]]:
    """How much is shown of each answer, of cases that failed and of others; every cut is told."""
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


def test_files_and_transcripts_are_cut_like_answers() -> None:
    made = made_run(cases=20)
    words = " ".join(str(number * 7919 % 10_007) for number in range(20_000))
    files = (AnswerFile.of("a.txt", words.encode()),)
    transcript = tuple(Turn("result", words[n:][:20_000], "bash") for n in range(0, 60_000, 1000))
    records = [replace(one, files=files, transcript=transcript) for one in made.records]
    page = html_report(replace(made, records=tuple(records)))
    assert 500_000 < len(page.encode()) < 950_000
    (_, _, cut), *_ = data_of(page)["tests"][0]["trials"][0]["files"]
    assert cut[1] == len(words)
    assert "answers are cut" not in page


def test_a_large_run_stays_below_a_megabyte_and_says_what_is_cut(
    large: tuple[RunResults, str],
) -> None:
    results, page = large
    assert len(results.records) == 3600
    size = len(page.encode())
    assert 700_000 < size < 950_000
    ordinary, telling = shown_lengths(results, page)
    assert max(ordinary) < min(telling)
    (told,) = re.findall(r"small, ([\d,]+) of 3,600 answers are cut", page)
    trials = [trial for test in data_of(page)["tests"] for trial in test["trials"]]
    assert int(told.replace(",", "")) == sum(len(trial["answer"]) > 1 for trial in trials)


def test_a_run_that_fits_is_not_cut() -> None:
    page = html_report(large_run(cases=20))
    assert len(page.encode()) < 900_000
    assert "are cut" not in page
    assert all(len(t["answer"]) == 1 for test in data_of(page)["tests"] for t in test["trials"])


def test_answers_of_megabytes_and_questions_too_are_cut_to_fit() -> None:
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


# Plots.


def test_the_efficient_frontier_has_what_nothing_is_cheaper_and_better_than() -> None:
    def point(x: float, rate: float) -> Point:
        return Point("m", "skill", x, rate)

    found = [point(3, 0.9), point(1, 0.2), point(2, 0.1), point(3, 0.5), point(4, 0.9)]
    assert efficient(found) == [point(1, 0.2), point(3, 0.9)]


def test_cost_is_drawn_where_prices_are_known_else_tokens() -> None:
    known = points_of(readable_run().verdicts)
    assert known
    assert known[1].is_cost
    assert known[1].is_log  # from 0.06 to 33 USD
    free = made_run(models=("a", "b"))
    records = [replace(record, cost=None) for record in free.records]
    known = points_of(replace(free, records=tuple(records)).verdicts)
    assert known
    assert (known[1].is_cost, known[1].is_log) == (False, False)
    records = [replace(record, input_tokens=None) for record in records]
    results = replace(free, records=tuple(records))
    assert points_of(results.verdicts) is None
    assert "Cost is not drawn" in html_report(results)


@given(st.lists(st.floats(1e-4, 1e6), min_size=1, max_size=8), st.booleans())
@settings(deadline=None, max_examples=50)
def test_any_amounts_have_a_scale_with_some_round_numbers(costs: list[float], free: bool) -> None:
    """Also where answers without the skill cost nothing."""
    models = [f"model-{n}" for n in range(len(costs))]
    prices = dict(zip(models, costs, strict=True))
    made = made_run(models=models, cases=1)
    records = [
        replace(record, cost=0.0 if free and record.arm == "baseline" else prices[record.model])
        for record in made.records
    ]
    page = html_report(replace(made, records=tuple(records)))
    (plane,) = re.findall(r'<svg class="plot plane".*?</desc>(.*?)</svg>', page)
    ticks = re.findall(r'<text class="tick" x="([\d.]+)%" [^>]*text-anchor="middle"', plane)
    assert 1 <= len(ticks) <= 6
    places = re.findall(r'x[12]?="(-?[\d.]+)%"', plane)
    assert all(0 <= float(place) <= 100 for place in places)


def test_a_model_that_never_answered_does_not_hide_the_others() -> None:
    made = made_run(models=("a", "b"))
    records = [
        replace(r, outcome="errored", cost=None, output=None) if r.model == "b" else r
        for r in made.records
    ]
    page = html_report(replace(made, records=tuple(records)))
    assert page.count('class="dot skill"') == 2  # of the model a, in either plot
