"""The HTML report, as text: what is in it, and what can't get into it."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.reports.html import html_report, shell
from pytest_upskill.reports.html.case_data import rows_of
from pytest_upskill.reports.html.markup import packed, resource
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.trials.trial import Arm
from support.made import accepted_count, made_record, made_run
from support.pages import PAYLOADS, data_of, hostile_run, readable_run

VOID = {"meta", "link", "br", "img", "input"}


class Elements(HTMLParser):
    """Every element with its attributes and its text; fails where one is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


def states(results: RunResults) -> dict[str, list[str]]:
    return {row.test.case: row.states for row in rows_of(results)}


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
def test_nothing_runs_or_loads_but_the_script_and_style_of_the_page(results: RunResults) -> None:
    page = html_report(results, notes=PAYLOADS)
    found = Elements(page).found
    tags = [tag for tag, _ in found]
    assert (tags.count("script"), tags.count("style"), tags.count("link")) == (2, 1, 1)
    known = "html head meta title link style body header p h1 time code nav a main section h2 ul li"
    known += " span div b small figure figcaption svg desc circle line text path i table thead tr"
    known += " th tbody td noscript footer script"
    assert set(tags) <= set(known.split())
    for tag, attributes in found:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src")
        ]
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/svg+xml,")), tag


@pytest.mark.parametrize("script", [True, False])
def test_the_policy_names_the_hashes_of_what_is_inlined_and_nothing_else(script: bool) -> None:
    page = html_report(made_run()) if script else shell("A title", "<p>Plain</p>")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    inlined = {
        "style-src": re.search(r"<style>(.*?)</style>", page, re.S),
        "script-src": re.search(r'<script type="module">(.*?)</script>', page, re.S),
    }
    for name, text in inlined.items():
        if text is None:
            assert rules[name] == "'none'"
        else:
            digest = hashlib.sha256(text[1].encode()).digest()
            assert rules[name] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_the_scripts_make_text_only_and_name_no_address() -> None:
    for name in ("diff.js", "case.js", "table.js"):
        text = resource(name)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
        assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|import\(|WebSocket", text)
    for name in ("page.css", "overview.css"):
        assert "url(" not in resource(name)
        assert "@import" not in resource(name)


def test_the_head_says_when_what_and_with_what() -> None:
    page = html_report(readable_run(), notes=["24 of 48 answers from cache."])
    for told in (
        "<title>release-notes · skill report</title>",
        "2 January 2026, 03:04 UTC",
        "48 tests on 4 models",
        "3 min 14 s",
        "<code>c0ffeec0f</code>",
        "pytest-upskill 1.2.3",
        "<li>24 of 48 answers from cache.</li>",
    ):
        assert told in page


def test_the_verdicts_and_the_sweet_spot_are_in_the_page_without_a_script() -> None:
    results = readable_run()
    page = unescape(html_report(results))
    for verdict in results.verdicts:
        assert verdict.sentence in page
    assert "Sweet spot:" in page
    assert "worse with the skill: two-issues" in page


@pytest.mark.parametrize(
    ("results", "title", "told"),
    [
        (made_run(passes=lambda *_: True), "Passed", "6 of 6 tests passed; no gates were set."),
        (
            made_run(passes=lambda *_: True, gates=Gates(min_pass_rate=0.5)),
            "Passed",
            "6 of 6 tests passed; all gates passed.",
        ),
        (made_run(gates=Gates(min_lift=0.9)), "Failed", "(minimum +90)"),
        (made_run(), "Failed", "1 test failed"),
        (replace(made_run(), records=()), "Failed", "6 tests did not run"),
        (
            made_run(accepted={n: accepted_count(int(n != 4)) for n in range(6)}),
            "Passed",
            "5 of 6 tests passed, the others were expected to fail; all gates passed.",
        ),
        (made_run(accepted={4: accepted_count(1)}), "Failed", "regression: case-4"),
    ],
)
def test_the_outcome_stands_at_the_top(results: RunResults, title: str, told: str) -> None:
    page = html_report(results)
    (outcome,) = re.findall(r'<section class="outcome \w+">(.*?)</section>', page)
    assert f"<h2>{title}</h2>" in outcome
    assert told in outcome


def passing(*flags: str) -> RunResults:
    """Three runs of a case for each of the texts: baseline, then skill, 1 passed and 0 did not."""

    def passes(number: int, _model: str, arm: Arm, run: int) -> bool:
        baseline, skill = flags[number].split()
        return (baseline if arm == "baseline" else skill)[run - 1] == "1"

    return made_run(cases=len(flags), runs=3, passes=passes)


def test_states_are_what_their_words_say() -> None:
    results = passing("000 111", "111 111", "000 000", "110 111", "111 110", "111 000", "011 100")
    assert states(results) == {
        "case-0": [],
        "case-1": ["no signal"],
        "case-2": ["failed", "no signal"],
        "case-3": ["flaky"],
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
        ["failed", "flaky"],
        ["failed", "flaky"],
    ]
    assert [row.states for row in rows_of(replace(made, tests=tuple(loose)))] == [["flaky"]] * 2


def test_errored_regressed_and_not_run_are_told() -> None:
    made = made_run(accepted={4: accepted_count(1)})
    lost = made_record("gate", "case-1", "haiku", "baseline", 1, outcome="errored", error="late")
    records = [r for r in made.records if r.case not in ("case-1", "case-5")]
    found = states(replace(made, records=(*records, lost)))
    assert found["case-4"] == ["failed", "regressed", "no signal"]
    assert found["case-1"] == ["errored"]
    assert found["case-5"] == ["not run"]


def test_a_link_to_a_case_hangs_on_names_alone() -> None:
    first = data_of(html_report(made_run(models=("haiku", "hf:org/name"))))
    later = data_of(html_report(made_run(models=("hf:org/name", "haiku"), cases=3, runs=2)))
    ids = {test["id"] for test in first["tests"]}
    assert len(ids) == 12
    assert {test["id"] for test in later["tests"]} < ids
    assert first["tests"][0]["id"] == "case-gate-case-0-haiku-8efa165acf"


def test_links_to_skills_lead_to_their_sections() -> None:
    page = html_report(RUNS["many"])
    links = re.findall(r'<th scope="row"[^>]*><a href="#([^"]+)">', page)
    assert len(set(links)) == 22
    assert all(page.count(f'id="{link}"') == 1 for link in links)


def test_what_is_packed_is_what_was_asked_and_answered() -> None:
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


@given(st.text(), st.text())
@settings(deadline=None)
def test_any_text_is_packed_whole(answer: str, name: str) -> None:
    text = answer + "\ud800"
    page = shell(name, "", "", packed({"answer": text}))
    page.encode()
    assert data_of(page) == {"answer": text}
    assert Elements(page).texts.get("p") is None
