"""The page of a run, as text: what is in it, and what can't get into it."""

import re
from dataclasses import replace
from html import unescape

import pytest

from pytest_upskill.reports.html import html_report
from pytest_upskill.reports.numbers import cache_words
from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.summary_text import skill_table
from pytest_upskill.results.case_changes import Earlier
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import signal_lines, sweet_spot
from pytest_upskill.settings import Gates
from pytest_upskill.trials.records import Grade
from support.made import accepted_count, made_run
from support.pages import PAYLOADS, Elements, data_of, hostile_run, readable_run

RUNS = {
    "one model": made_run(),
    "many": made_run(skills=[f"skill-{n}" for n in range(22)], models=("a", "b"), runs=2),
    "no baseline": made_run(arms=("skill",)),
    "previous": made_run(arms=("baseline", "previous", "skill")),
    "nothing": made_run(cases=0),
    "not run": replace(made_run(), records=()),
    "hostile": hostile_run(),
    "readable": readable_run(),
}


@pytest.mark.parametrize("results", RUNS.values(), ids=RUNS)
def test_the_page_has_only_its_own_script_and_style(results: RunResults) -> None:
    page = html_report(results, notes=PAYLOADS)
    found = Elements(page).found
    tags = [tag for tag, _ in found]
    assert (tags.count("script"), tags.count("style"), tags.count("link")) == (2, 1, 1)
    known = "html head meta title link style body header p h1 time code nav a main section h2 ul li"
    known += " span div b small figure figcaption svg desc circle line text path i table thead tr"
    known += " th tbody td noscript footer script wbr"
    assert set(tags) <= set(known.split())
    for tag, attributes in found:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src")
        ]
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/svg+xml,")), tag


def test_the_head_has_date_size_commit_and_versions() -> None:
    page = html_report(readable_run(), notes=["A note."])
    for words in (
        "<title>release-notes · skill report</title>",
        "2 January 2026, 03:04 UTC",
        "48 tests on 4 models",
        "3 min 14 s",
        "<code>c0ffeec0f</code>",
        "pytest-upskill 1.2.3",
        "<li>A note.</li>",
    ):
        assert words in page


def test_the_verdicts_and_the_sweet_spot_are_in_the_page_without_a_script() -> None:
    results = readable_run()
    page = unescape(html_report(results))
    for verdict in results.verdicts:
        assert verdict.sentence in page
    assert str(sweet_spot(results.verdicts)) in page
    assert all(line in page for line in signal_lines(results.verdicts[0]))


@pytest.mark.parametrize(
    ("results", "title", "words"),
    [
        (made_run(passes=lambda *_: True), "Passed", "6 of 6 tests passed; no gates were set."),
        (
            made_run(passes=lambda *_: True, gates=Gates(min_pass_rate=0.5)),
            "Passed",
            "6 of 6 tests passed; all gates passed.",
        ),
        (
            made_run(accepted={n: accepted_count(int(n != 4)) for n in range(6)}),
            "Passed",
            "5 of 6 tests passed, 1 failed as expected; all gates passed.",
        ),
        (made_run(gates=Gates(min_lift=0.9)), "Failed", ""),
        (replace(made_run(), records=()), "Failed", ""),
        (
            made_run(passes=lambda *_: True, interrupted="Ctrl-C", lost=("x", "y")),
            "Interrupted",
            "",
        ),
        (made_run(interrupted="-x"), "Failed", ""),
        (made_run(accepted={4: accepted_count(50, 50)}), "Failed", ""),
    ],
)
def test_the_outcome_comes_first_with_all_problems(
    results: RunResults, title: str, words: str
) -> None:
    page = html_report(results)
    (outcome,) = re.findall(r'<section class="outcome \w+">(.*?)</section>', page)
    assert f"<h2>{title}</h2>" in outcome
    plain = unescape(re.sub(r"</?a\b[^>]*>", "", outcome))
    assert words in plain
    assert re.findall("<li>(.*?)</li>", plain) == results.problems


def test_links_to_skills_lead_to_their_sections() -> None:
    page = html_report(RUNS["many"])
    links = re.findall(r'<th scope="row"[^>]*><div class="name"><a href="#([^"]+)">', page)
    assert len(set(links)) == 22
    assert all(page.count(f'id="{link}"') == 1 for link in links)


def test_checks_per_answer_are_the_same_as_in_the_terminal() -> None:
    made = made_run(cases=5, passes=lambda number, *_: number < 2)
    records = [
        replace(record, checks=(*record.checks, Grade("max_words", True, "short")))
        for record in made.records
    ]
    results = replace(made, records=tuple(records))
    lines = skill_table(results.verdicts, TerminalLook(160))
    assert " 1.4/2 → 1.4/2 " in lines[-1]
    shown = re.findall(r'data-name="checks">([^<]*/[^<]*)<', html_report(results))
    assert shown == ["1.4/2 → 1.4/2"]


def test_a_tiny_cost_is_escaped() -> None:
    made = made_run(cases=1)
    records = tuple(replace(record, cost=1e-7) for record in made.records)
    page = html_report(replace(made, records=records))
    assert 'data-name="$/1000">&lt;$0.001 → &lt;$0.001</td>' in page


def test_without_checks_they_have_no_column() -> None:
    made = made_run(cases=1)
    records = [replace(record, checks=(), score=None) for record in made.records]
    assert 'data-name="checks"' not in html_report(replace(made, records=tuple(records)))


@pytest.mark.parametrize(
    ("arms", "against", "keys"),
    [
        (("baseline", "skill"), None, ["without the skill", "with it"]),
        (("skill",), None, ["with the skill"]),
        (
            ("baseline", "previous", "skill"),
            "v1",
            ["without the skill", "with it at v1", "with it"],
        ),
        (("previous", "skill"), "v1", ["with the skill at v1", "with the skill"]),
    ],
)
def test_the_legend_has_only_drawn_arms(
    arms: tuple[str, ...], against: str | None, keys: list[str]
) -> None:
    made = made_run(arms=arms)
    skills = tuple(replace(skill, against=against) for skill in made.skills)
    page = html_report(replace(made, skills=skills))
    legend, _ = re.findall(r'<p class="legend">(.*?)</p>', page)
    assert re.findall(r"</i>(.*?)</span>", legend) == [*keys, "95 % interval"]
    assert ("<title>Pass rate without" in page) == ("baseline" in arms)


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
