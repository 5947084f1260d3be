"""The file of a page: its policy, its data, its size; hostile texts stay data."""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

import pytest

from pytest_upskill.reports.page import page as page_module
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.page.page import packed
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.made import made_run
from support.pages import (
    ALL_PAYLOADS,
    PAYLOADS,
    Elements,
    data_of,
    hostile_run,
    large_run,
    readable_run,
)
from support.words import HELPS, INCOMPLETE, TOO_FEW

FOLDER = files("pytest_upskill.reports.page")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()


def test_the_policy_allows_only_the_scripts_and_the_style_of_the_page() -> None:
    page = run_page(made_run())
    (policy,) = [
        meta["content"] or ""
        for meta in Elements(page).all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives.pop("script-src").split() == hashes(
        re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", page, re.DOTALL)
    )
    assert directives.pop("style-src").split() == hashes(
        re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    )
    assert directives == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "dompurify",
    }


def hashes(inlined: Sequence[str]) -> list[str]:
    digests = [hashlib.sha256(text.encode()).digest() for text in inlined]
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]


@pytest.mark.parametrize(
    "run", [made_run(), hostile_run()], ids=["ordinary", "hostile"]
)
def test_a_page_has_the_same_elements_whatever_a_model_says(run: RunResults) -> None:
    page = run_page(run, PAYLOADS)
    found = Elements(page)
    assert [
        tag for tag, _ in found.found if tag in ("script", "div", "img", "a", "iframe")
    ] == [
        "div",
        *["script"] * 6,  # the data, four libraries and the viewer
    ]
    without_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "onerror" not in without_scripts
    assert "example.org" not in without_scripts


def test_the_data_comes_back_as_it_was() -> None:
    values = {
        "answer": f"</script> \ud800 \x00 😀 {ALL_PAYLOADS}",
        "number": 1.5,
        "none": None,
    }
    data = packed(values)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", data)
    assert data_of(f'<script type="text/plain" id="data">{data}</script>') == values


def test_nothing_in_our_scripts_ends_an_element() -> None:
    scripts = [
        file for folder in ("viewer", "vendor") for file in (FOLDER / folder).iterdir()
    ]
    texts = [
        file.read_text("utf-8")
        for file in scripts
        if file.name.endswith((".js", ".css"))
    ]
    assert len(texts) > 15
    for text in texts:
        assert not re.search(r"</(script|style)", text, re.IGNORECASE)
        assert "<!--" not in text or not re.search(
            r"<script[\s/>]", text, re.IGNORECASE
        )


def test_every_library_has_its_version_and_its_licence() -> None:
    vendor = {
        file.name: file.read_text("utf-8") for file in (FOLDER / "vendor").iterdir()
    }
    rows = re.findall(
        r"^\| `(\S+)` \| (\w+).*?\| ([\d.]+) \|", vendor["README.md"], re.MULTILINE
    )
    assert {file for file, _, _ in rows} == {
        name for name in vendor if name.endswith(".js")
    }
    for file, package, version in rows:
        assert f"LICENSE-{package}.txt" in vendor
        named = re.search(r"(?:marked v|DOMPurify )([\d.]+\d)", vendor[file][:400])
        assert named is None or named[1] == version
    assert "LICENSE-preact.txt" in vendor


def test_a_page_has_the_file_of_the_run_with_transcripts() -> None:
    run = agent_run()
    turns = (Turn("call", '{"command": "ls"}', "bash"), Turn("result", "a.txt", "bash"))
    run = replace(run, records=tuple(replace(r, transcript=turns) for r in run.records))
    results = data_of(run_page(run))["results"]
    assert results["schema"] == 1
    assert [turn["text"] for turn in results["records"][0]["transcript"]] == [
        t.text for t in turns
    ]


def test_numbers_and_counts_are_those_of_other_reports() -> None:
    run = readable_run()
    data = data_of(run_page(run))
    assert data["outcome"] == "failed"
    outcomes = [test["outcome"] for test in data["tests"]]
    counts = data["results"]["outcome_counts"]
    assert (
        outcomes.count("failed") + outcomes.count("regressed") == counts["failed"] == 9
    )
    assert (outcomes.count("regressed"), counts["error"], counts["passed"]) == (
        1,
        1,
        38,
    )
    assert [row["word"] for row in data["rows"]] == [
        *(HELPS, TOO_FEW, TOO_FEW, INCOMPLETE),
    ]
    assert data["rows"][0]["texts"]["lift"][:2] == ["+75", "+53 to +97"]
    # They are counted
    assert not [line for line in data["problems"] if "failed" in line]


def test_what_did_not_run_stands_first() -> None:
    run = made_run(cases=3)
    data = data_of(run_page(replace(run, tests=run.tests[:1]), ["A note."]))
    assert data["incomplete"] == ["gate on haiku: ran only 1 of 3 cases."]
    assert data["notes"] == ["A note."]


def test_a_link_to_a_case_stays_valid() -> None:
    first, later = (
        {test["id"] for test in data_of(run_page(run))["tests"]}
        for run in (made_run(), made_run(models=("opus", "haiku"), cases=7, runs=2))
    )
    assert first < later
    assert case_anchor("gate", "case-0", "haiku").removeprefix("case=") in first
    assert re.fullmatch(r"case=[a-z0-9-]+", case_anchor(*PAYLOADS[:3]))


# Texts that do not fit.


def test_a_large_page_is_small_enough_and_cuts_passed_cases_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = large_run(cases=60)
    whole = data_of(run_page(run))
    assert whole["left_out"] == 0
    monkeypatch.setattr(page_module, "_MOST", 500_000)
    page = run_page(run)
    data = data_of(page)
    assert len(page) < 1_000_000
    assert data["left_out"]
    outcomes = {
        (test["case"], test["model"]): about["outcome"]
        for test, about in zip(data["results"]["tests"], data["tests"], strict=True)
    }
    kept: dict[bool, list[int]] = {True: [], False: []}
    records = zip(whole["results"]["records"], data["results"]["records"], strict=True)
    for before, after in records:
        output = after["output"].partition("\n[…")[0]
        assert before["output"].startswith(output)  # so places in it are still right
        kept[outcomes[after["case"], after["model"]] == "passed"].append(len(output))
    assert max(kept[True]) < max(kept[False])


def test_a_page_is_written_even_if_nothing_more_can_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_module, "_MOST", 10)
    data = data_of(run_page(made_run()))
    assert {
        record["output"].partition("\n")[0] for record in data["results"]["records"]
    } == {""}


def test_images_are_shown_once_and_only_real_ones() -> None:
    run = agent_run()
    made = [
        AnswerFile("a.png", None, 9, "one", data=PNG),
        AnswerFile("b.png", None, 9, "one", data=PNG),
        AnswerFile("c.png", None, 9, "two", data="PHN2Zz4="),
        AnswerFile("d.png", None, 9, "three", data=f"{PNG}' onerror='x"),
    ]
    run = replace(
        run, records=tuple(replace(r, files=tuple(made)) for r in run.records)
    )
    assert data_of(run_page(run))["images"] == {"one": f"data:image/png;base64,{PNG}"}
