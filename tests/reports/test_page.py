"""The file of a page: its policy, its data, its size; hostile texts stay data."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

import pytest

from pytest_upskill.reports.page import payload, run_page
from pytest_upskill.reports.page.page import packed
from pytest_upskill.reports.page.payload import case_anchor
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_file import results_values
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
    page_words,
    readable_run,
)

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


def test_the_results_are_those_of_the_json_report() -> None:
    run = readable_run()
    results = data_of(run_page(run))["results"]
    of_json = results_values(run, transcripts=True)
    for part in ("summary", "verdicts", "by_case", "outcomes", "gate", "records"):
        assert results[part] == json.loads(json.dumps(of_json[part]))


def test_what_is_wrong_besides_tests_is_said() -> None:
    run = made_run(cases=3)
    data = data_of(run_page(replace(run, interrupted="Ctrl-C"), ["A note."]))
    assert data["outcome"] == "interrupted"
    assert data["problems"] == ["interrupted: Ctrl-C"]
    assert data["notes"] == ["A note."]


def test_a_link_to_a_case_is_its_names() -> None:
    assert case_anchor("gate", "case-0", "scripted:a.py:b") == (
        "case=gate/case-0/scripted:a.py:b"
    )
    for name in PAYLOADS:
        anchor = case_anchor(name, name, name)
        assert re.fullmatch(r"case=[\w/:%.~-]+", anchor)


def test_keys_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-api03-" + "a1B2" * 12
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    made = made_run(cases=1)
    records = [replace(record, output=f"The key is {key}") for record in made.records]
    assert key not in page_words(run_page(replace(made, records=tuple(records))))


# Texts that do not fit.


def test_texts_are_cut_until_they_fit_those_of_passed_answers_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = large_run(cases=20)
    whole = {record.output for record in run.records}
    assert {r["output"] for r in data_of(run_page(run))["results"]["records"]} == whole
    monkeypatch.setattr(payload, "_MAX_CHARACTERS", 200_000)
    lengths: dict[str, set[int]] = {"passed": set(), "failed": set()}
    records = data_of(run_page(run))["results"]["records"]
    for before, after in zip(run.records, records, strict=True):
        kept, mark, _ = after["output"].partition("\n[… ")
        assert mark
        # So that places in it are still right
        assert (before.output or "").startswith(kept)
        lengths[after["outcome"]].add(len(kept))
    assert lengths == {"passed": {200}, "failed": {1000}}


def test_a_page_is_written_even_if_nothing_more_can_be_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payload, "_MAX_CHARACTERS", -1)
    records = data_of(run_page(made_run()))["results"]["records"]
    assert {record["output"].partition("\n")[0] for record in records} == {""}


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
