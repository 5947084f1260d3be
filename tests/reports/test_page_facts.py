"""Facts about a whole run on its page."""

from dataclasses import replace

from pytest_upskill.reports.html.report_page import html_report
from pytest_upskill.reports.numbers import cache_words
from pytest_upskill.results.case_changes import Earlier
from support.made import made_run
from support.pages import data_of


def test_what_prompt_caches_saved() -> None:
    assert cache_words(0.94) == "prompt caching saved $0.94"
    assert cache_words(-0.02) == "prompt caching cost $0.02 more than it saved"
    assert cache_words(0.001) == ""
    assert cache_words(0.94) in html_report(made_run(cases=1, prompt_cache_saved=0.94), [])
    assert "prompt caching" not in html_report(made_run(cases=1), [])


def test_what_only_one_of_two_runs_asked() -> None:
    before = made_run(cases=1)
    partial = replace(before, tests=tuple(replace(test, of=2) for test in before.tests))
    earlier = Earlier("20260102T030405Z-abcdef", partial)
    page = html_report(made_run(cases=2, models=["haiku", "opus"]), earlier=earlier)
    assert "gate on haiku: 1 case asked in only one of the runs." in page
    assert "Only in this run: gate on opus." in page
    assert {test["change"] for test in data_of(page)["tests"]} == {None}  # no case is new
