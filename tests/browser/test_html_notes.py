"""Notes on cases and opinions of grades: kept in the browser, exported, and read again."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli.judge_labels import load_labels
from pytest_upskill.reports.html.case_data import case_anchor
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.records import Grade
from support.browser import Page
from support.made import STARTED, made_run
from support.pages import ALL_PAYLOADS, PAYLOADS, data_of, write_page

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.nightly]

FIRST = case_anchor("gate", "case-0", "haiku")
SECOND = case_anchor("gate", "case-1", "haiku")
SKILL_CARD = f"tbody:has(#{FIRST}) .runs .card:last-child"
CRITERION = "It says how to open the gate."


def judged_run(**more: object) -> RunResults:
    made = made_run(cases=2, **more)  # type: ignore[arg-type]
    rubric = Grade("judge", True, f"'{CRITERION}': it does", asks=CRITERION)
    records = [replace(record, checks=(*record.checks, rubric)) for record in made.records]
    return replace(made, records=tuple(records), judge="sonnet")


def opened(page: Page, file: Path, *, clean: bool = False) -> None:
    """Open the page at its first case; ``clean``: as if nobody had been there."""
    page.open(file)
    if clean:
        page.run("localStorage.clear()")
        page.open(file)
    page.open(file, f"#{FIRST}")


def write(page: Page, text: str) -> None:
    page.js(f"document.querySelector('#note-{FIRST}').focus()")
    page.type(text)


def grade(page: Page, word: str, check: int) -> None:
    page.click(f"{SKILL_CARD} .checks li:nth-child({check + 1}) [data-grade={word}]")


def give(page: Page, text: str) -> str:
    """Choose a file with this text; what the page says then."""
    page.js(
        "(() => { const chosen = new DataTransfer();"
        f"chosen.items.add(new File([{json.dumps(text)}], 'notes.json'));"
        "const input = document.querySelector('#notes input[type=file]');"
        "document.querySelector('#notes > div > .told').textContent = '';"
        "input.files = chosen.files; input.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('#notes > div > .told').textContent")
    (said,) = page.texts("#notes > div > .told")
    return said


def exported(page: Page, file: Path) -> dict[str, Any]:
    key = data_of(file.read_text("utf-8"))["run"]["key"]
    saved = page.downloads / f"notes-{key}.json"
    saved.unlink(missing_ok=True)
    page.click("#notes .needs-notes")
    data: dict[str, Any] = json.loads(page.downloaded(saved.name).read_text("utf-8"))
    return data


def test_notes_stay_are_exported_and_measure_a_judge(page: Page, tmp_path: Path) -> None:
    file = write_page(judged_run(), tmp_path)
    opened(page, file, clean=True)
    assert page.texts("#notes .facts") == ["There are none yet."]
    write(page, "The judge is too kind.")
    assert page.texts(".note-box .told") == ["kept in this browser"]
    grade(page, "wrong", 1)
    grade(page, "wrong", 0)
    assert page.texts("#notes .facts") == ["1 note; 2 grades marked, 2 of them as wrong."]
    opened(page, file)  # again
    assert page.js(f"document.querySelector('#note-{FIRST}').value") == "The judge is too kind."
    assert page.texts(f"{SKILL_CARD} [aria-pressed=true]") == ["wrong", "wrong"]
    assert page.texts("#notes .noted li") == ["case-0 on haiku The judge is too kind."]
    data = exported(page, file)
    assert data["run"]["judge"] == "sonnet"
    assert data["run"]["skills"] == ["gate"]
    rubric, other, note = data["notes"]
    assert rubric == {
        "kind": "grade",
        "skill": "gate",
        "case": "case-0",
        "model": "haiku",
        "agent": False,
        "arm": "skill",
        "run": 1,
        "check": "judge",
        "number": 1,
        "criterion": CRITERION,
        "graded": True,
        "reason": f"'{CRITERION}': it does",
        "passed": False,
        "question": "How do I open case-0?",
        "answer": "Type gate up.",
        "cut": False,
        "note": "The judge is too kind.",
    }
    assert (other["check"], other["criterion"], other["passed"]) == ("contains", None, False)
    assert note["kind"] == "note"
    (saved,) = page.downloads.glob("notes-*.json")
    labels = load_labels(saved)
    (example,) = labels.examples
    assert (example.texts, example.passed) == ((CRITERION,), (False,))
    assert labels.unused == [
        "gate: case-0 on haiku (skill, run 1): the check contains is not a rubric, "
        "so no judge decides it"
    ]
    page.assert_quiet()


def test_a_second_press_takes_a_grade_back_and_only_rubrics_can_be_right(
    page: Page, tmp_path: Path
) -> None:
    opened(page, write_page(judged_run(), tmp_path), clean=True)
    assert page.texts(f"{SKILL_CARD} .checks li:nth-child(1) button") == ["wrong?"]
    assert page.texts(f"{SKILL_CARD} .checks li:nth-child(2) button") == ["right?", "wrong?"]
    grade(page, "right", 1)
    assert page.texts("#notes .facts") == ["0 notes; 1 grade marked, 0 of them as wrong."]
    grade(page, "wrong", 1)
    assert page.texts(f"{SKILL_CARD} [aria-pressed=true]") == ["wrong"]
    grade(page, "wrong", 1)
    assert page.texts("#notes .facts") == ["There are none yet."]
    assert page.js("localStorage.length") == 0


def test_two_reports_do_not_mix(page: Page, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = write_page(judged_run(), tmp_path / "a")
    other = write_page(judged_run(started=STARTED + timedelta(seconds=1)), tmp_path / "b")
    opened(page, one, clean=True)
    write(page, "Of the first run.")
    opened(page, other)
    assert page.texts("#notes .facts") == ["There are none yet."]
    assert "these are notes on another run, started 2026-01-02T03:04:05" in give(
        page, json.dumps({"schema": 1, "run": data_of(one.read_text())["run"], "notes": []})
    )


def test_notes_of_a_colleague_are_added_to_ones_own(page: Page, tmp_path: Path) -> None:
    file = write_page(judged_run(), tmp_path)
    opened(page, file, clean=True)
    write(page, "Mine.")
    grade(page, "wrong", 1)
    run = data_of(file.read_text("utf-8"))["run"]
    here = {"skill": "gate", "case": "case-0", "model": "haiku"}
    of_grade = {**here, "kind": "grade", "arm": "skill", "run": 1, "check": "judge", "number": 1}
    notes = [
        {**here, "kind": "note", "note": "Theirs."},
        {**here, "kind": "note", "note": "Mine."},
        {**here, "kind": "note", "note": "long " * 2000},
        {**of_grade, "passed": True},
        {**of_grade, "arm": "baseline", "passed": False},
        {**of_grade, "check": "contains", "passed": False},
        {**here, "case": "nowhere", "kind": "note", "note": "x"},
    ]
    assert give(page, json.dumps({"schema": 1, "run": run, "notes": notes})) == (
        "2 read; 1 here already; 1 differing from yours, which stay; 1 too long, not taken; "
        "2 on nothing in this page."
    )
    area = f"document.querySelector('#note-{FIRST}').value"
    assert page.js(area) == "Mine.\n\nTheirs."
    assert page.texts("#notes .facts") == ["1 note; 2 grades marked, 2 of them as wrong."]
    page.click("#notes .needs-notes:nth-of-type(3)")
    assert page.js(area) == "Mine.\n\nTheirs."
    page.click("#notes .needs-notes:nth-of-type(3)")
    assert page.js(area) == ""
    assert page.texts("#notes .facts") == ["There are none yet."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Not read: the file is not JSON."),
        ("[]", "Not read: the file has no notes that this page exported."),
        ('{"schema": 1, "notes": 5}', "Not read: the file has no notes that this page exported."),
        ('{"schema": 1, "notes": []}', "Not read: these are notes on another run."),
    ],
)
def test_what_is_no_export_is_refused(page: Page, report: Path, text: str, said: str) -> None:
    page.open(report)
    assert give(page, text) == said


def test_hostile_notes_do_no_harm(page: Page, tmp_path: Path) -> None:
    file = write_page(judged_run(), tmp_path)
    opened(page, file, clean=True)
    run = data_of(file.read_text("utf-8"))["run"]
    here = {"skill": "gate", "case": "case-0", "model": "haiku", "kind": "note"}
    no_text = {"toString": 1, "valueOf": 1}
    notes: list[object] = [
        *({**here, "note": text} for text in PAYLOADS),
        *({**here, "kind": "grade", "arm": text, "run": text, "number": text} for text in PAYLOADS),
        *({**here, "kind": "grade", key: no_text} for key in ("arm", "run", "number")),
        *({**here, key: no_text} for key in ("skill", "case", "model")),
        *(None, 5, [], "x", {"__proto__": {"hit": 1}}, {**here, "note": "y" * 50_000}),
    ]
    said = give(page, json.dumps({"schema": 1, "run": run, "notes": notes}))
    assert said == f"{len(PAYLOADS)} read; 1 too long, not taken; 26 on nothing in this page."
    assert page.js("window.hit ?? null") is None
    assert page.js("({}).hit ?? null") is None
    text = page.js(f"document.querySelector('#note-{FIRST}').value")
    assert PAYLOADS[0] in text
    assert "yyyy" not in text
    # Chromium has one storage for all files, so another one may have written anything.
    hostile = json.dumps({"notes": [[FIRST, ALL_PAYLOADS], [PAYLOADS[0], "x"], 7], "grades": [[1]]})
    for stored in (hostile, "{", "[]", "null", '{"notes": {"length": 9}}'):
        page.run(f"localStorage.setItem(localStorage.key(0), {json.dumps(stored)})")
        opened(page, file)
        assert page.js("window.hit ?? null") is None
        page.assert_quiet()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("QuotaExceededError", "Not kept: the browser's storage is full."),
        ("SecurityError", "Not kept: this browser keeps nothing for this page."),
    ],
)
def test_what_can_not_be_kept_is_said_and_can_be_exported(
    page: Page, tmp_path: Path, error: str, said: str
) -> None:
    file = write_page(judged_run(), tmp_path)
    opened(page, file, clean=True)
    page.run(f"Storage.prototype.setItem = () => {{ throw new DOMException('no', '{error}') }}")
    write(page, "Lost?")
    assert page.texts(".note-box .told") == [f"{said} Export your notes before you close the page."]
    assert page.texts("#notes > div > .told")[0].startswith(said)
    assert [one["note"] for one in exported(page, file)["notes"]] == ["Lost?"]


def test_notes_work_by_keyboard(page: Page, tmp_path: Path) -> None:
    opened(page, write_page(judged_run(), tmp_path), clean=True)
    page.js(f"document.querySelector('{SKILL_CARD} [data-grade=right]').focus()")
    page.press("Enter")
    assert page.texts(f"{SKILL_CARD} [aria-pressed=true]") == ["right"]
    page.js(f"document.querySelector('#note-{FIRST}').focus()")
    for key in "j/?k":  # keys of the page, but here they are letters
        page.press(key)
    assert page.js(f"document.querySelector('#note-{FIRST}').value") == "j/?k"
