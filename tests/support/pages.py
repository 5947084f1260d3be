"""Runs for HTML pages: a typical one, a hostile one and a large one."""

import base64
import json
import random
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

from pytest_upskill._util.git import Commit
from pytest_upskill.reports.page import run_page
from pytest_upskill.results.run import Rerun, RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.plan import PlannedCase
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.transcript import Activity, Turn, TurnKind
from support.made import Passes, accepted_count, made_record, made_run

SKILL = "release-notes"
# Cost of 1,000 answers, and the share of cases passed without and with the skill
MODELS = {
    "haiku": (1.1, 0.2, 0.85),
    "sonnet": (4.2, 0.5, 0.95),
    "opus": (21.0, 0.7, 0.95),
    "local": (0.06, 0.05, 0.3),
}
CASES = (
    "breaking-change",
    "security-fix",
    "deprecation",
    "empty-range",
    "co-authors",
    "scope-in-brackets",
    "revert",
    "two-issues",
    "no-jargon",
    "migration-steps",
    "long-list",
    "tone",
)
WITHOUT = """Here are the release notes for version 2.4:

- Changed the `--color` flag so that it takes `auto`, `always` or `never`
- Fixed a crash on empty input
- Various improvements

Let me know if you would like another format!"""
WITH = """## 2.4.0

### Breaking
- `--color` takes `auto`, `always` or `never`; a bare `--color` is an error now (#812)

### Fixed
- No crash on empty input any more (#815, #816)

Migration: write `--color=always` where you had `--color`."""


def write_page(results: RunResults, folder: Path, notes: Sequence[str] = ()) -> Path:
    file = folder / "report.html"
    file.write_bytes(run_page(results, notes).encode())
    return file


def data_of(page: str) -> dict[str, Any]:
    """The data that a page holds for its script."""
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)
    assert found
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return data


def page_words(page: str) -> str:
    """All texts that a page has for its script, as JSON."""
    return json.dumps(data_of(page), ensure_ascii=False)


def dice(*seed: object) -> float:
    """A number between 0 and 1 that depends on the seed alone."""
    return random.Random(repr(seed)).random()


def knows(case: int, model: str, arm: str, run: int) -> bool:
    _, without, with_skill = MODELS[model]
    if case == 3:
        return True  # passes even without the skill
    if case == 7 and model == "sonnet":
        return arm == "baseline"
    share = without if arm == "baseline" else with_skill
    return 0.75 * dice(case) + 0.25 * dice(case, model, arm, run) < share


def readable_record(record: Record, number: int) -> Record:
    passed, is_skill = record.outcome == "passed", record.arm != "baseline"
    about = f"{CASES[number]}, run {record.run}: "
    checks = (
        Grade(
            "contains",
            passed,
            f'"### Breaking" is {"" if passed else "not "}in the answer',
        ),
        Grade("max_words", passed=True, reason="71 words, at most 120"),
        Grade(
            "judge",
            passed,
            "'says what to do after the update': "
            + ("it does" if passed else "no step is named")
            + (
                ' (the judge quotes "Migration: write `--color=always`")'
                if passed
                else ""
            ),
            required=False,
        ),
    )
    more = 1.6 if is_skill else 1.0
    cost = (
        MODELS[record.label][0] * more / 1000 * (0.9 + 0.2 * dice(number, record.run))
    )
    return replace(
        record,
        output=about + (WITH if passed else WITHOUT),
        checks=checks,
        score=1.0 if passed else 0.4,
        input_tokens=round((640 if is_skill else 210) + 90 * dice(number)),
        output_tokens=round(80 + 60 * dice(number, record.arm, record.run)),
        cached_tokens=512 if is_skill else 0,
        seconds=round(0.8 + 2 * dice(number, record.label, record.run), 2),
        stored=record.arm == "baseline",
        cost=cost,
    )


def readable_run(
    passes: Passes = knows, arms: tuple[str, ...] = ("baseline", "skill")
) -> RunResults:
    """Four models, twelve cases, three runs; one answer is missing, one case
    regressed.
    """
    made = made_run(
        skills=(SKILL,),
        models=tuple(MODELS),
        cases=len(CASES),
        runs=3,
        passes=passes,
        arms=arms,
        accepted={3: accepted_count(3, 3), 7: accepted_count(12, 12)},
    )
    records = []
    for record in made.records:
        number = int(record.case.removeprefix("case-"))
        new = replace(readable_record(record, number), case=CASES[number])
        if (number, record.label, record.arm, record.run) == (
            10,
            "local",
            "baseline",
            2,
        ):
            reason = "no answer within 120 s. Raise --skill-timeout"
            new = made_record(
                SKILL,
                new.case,
                "local",
                "baseline",
                2,
                outcome="errored",
                error=reason,
                output=None,
                checks=(),
                cost=None,
            )
        records.append(new)
    tests = [_named(test) for test in made.tests]
    question = (
        "Write the release notes for 2.4.0 from these commits:\n\nfeat(cli)!: --color"
        " takes a value\nfix: no crash on empty input\nchore: bump actions"
    )
    return replace(
        made,
        records=tuple(records),
        tests=tuple(tests),
        questions={(SKILL, case): f"{question}\n\nMind: {case}." for case in CASES},
        seconds=194.0,
        versions={"pytest-upskill": "1.2.3", "pytest": "9.0.1", "python": "3.13.1"},
    )


def _named(test: PlannedCase) -> PlannedCase:
    number = int(test.case.removeprefix("case-"))
    tags = (
        ("format",)
        if number % 3 == 0
        else ("content", "wording")
        if number % 3 == 1
        else ()
    )
    return replace(
        test,
        nodeid=test.nodeid.replace(test.case, CASES[number]),
        case=CASES[number],
        file=f"skills/{SKILL}/skill_meta.json",
        line=4 + 9 * number,
        tags=tags,
    )


PAYLOADS = (
    "<script>window.hit = 1; alert(1)</script>",
    "</script><script>window.hit = 2</script>",
    "</textarea></title></style><img src=x onerror='window.hit = 3'>",
    (
        "<svg onload='window.hit = 4'><animate onbegin='window.hit = 4' attributeName=x"
        " /></svg>"
    ),
    "<a href='javascript:window.hit = 5' autofocus onfocus='window.hit = 5'>x</a>",
    "[x](javascript:window.hit=6) javascript:window.hit=6",
    "--><img src='http://example.org/beacon.png'><!--",
    "${window.hit = 7} {{constructor.constructor('window.hit = 7')()}}",
    "\u2028\u2029\u202e\u2066\u200b\x00\x07\x9b\x1b[31m\r\ud800 lone",
    (
        "<base href='http://example.org/'><meta http-equiv=refresh"
        " content='0;url=http://example.org'>"
    ),
    "<iframe srcdoc='<script>parent.hit = 9</script>'></iframe>",
    "' onmouseover='window.hit = 10' x='",
    '" autofocus onfocus="window.hit = 11',
    "__proto__",
    "]]>&lt;script&gt;window.hit = 12&lt;/script&gt;",
)
ALL_PAYLOADS = "\n".join(PAYLOADS)


def hostile_run(cases: int = len(PAYLOADS)) -> RunResults:
    """A run in which every text tries to become markup or code."""
    models = (PAYLOADS[0], PAYLOADS[12])
    skills = (PAYLOADS[1], PAYLOADS[3], "__proto__")
    made = made_run(skills=skills, models=models, cases=cases, runs=2)

    def named(case: str) -> str:
        return PAYLOADS[int(case.removeprefix("case-"))]

    def record(old: Record) -> Record:
        places = ((0, 3), (2, 40), (30, 10**6))
        checks = (
            Grade(PAYLOADS[2], passed=False, reason=ALL_PAYLOADS, found=places),
            Grade("contains", passed=False, reason=ALL_PAYLOADS, unwanted=places),
        )
        error = ALL_PAYLOADS if old.run == 2 else None
        outcome = "errored" if old.run == 2 else old.outcome
        answer = f"{old.arm}\n{ALL_PAYLOADS}"
        new = replace(
            old, case=named(old.case), output=answer, checks=checks, error=error
        )
        files = (
            AnswerFile(PAYLOADS[0], ALL_PAYLOADS, 9, ""),
            AnswerFile(PAYLOADS[1], None, 9, ""),
        )
        transcript = tuple(
            Turn(kind, ALL_PAYLOADS, PAYLOADS[2]) for kind in get_args(TurnKind)
        )
        done = Activity(
            1,
            1,
            activated=True,
            opened=PAYLOADS,
            read=PAYLOADS,
            scripts=PAYLOADS,
            findings=(ALL_PAYLOADS, *PAYLOADS),
        )
        return replace(
            new, outcome=outcome, files=files, transcript=transcript, activity=done
        )

    def test(old: PlannedCase) -> PlannedCase:
        return replace(
            old,
            nodeid=PAYLOADS[4],
            case=named(old.case),
            file=PAYLOADS[6],
            tags=PAYLOADS,
            expected=replace(accepted_count(1), date=PAYLOADS[3]),
        )

    texts = {
        "text": f"---\n{ALL_PAYLOADS}\n---\n{ALL_PAYLOADS}",
        "previous_text": ALL_PAYLOADS,
    }
    hostile: dict[str, Any] = {"path": ALL_PAYLOADS, "against": PAYLOADS[2], **texts}
    return replace(
        made,
        skills=tuple(replace(s, **hostile) for s in made.skills),
        rerun=Rerun(PAYLOADS, PAYLOADS, PAYLOADS[0]),
        model_ids=dict.fromkeys(models, ALL_PAYLOADS),
        records=tuple(map(record, made.records)),
        tests=tuple(map(test, made.tests)),
        questions={(s, c): ALL_PAYLOADS for s in skills for c in PAYLOADS},
        commit=Commit(PAYLOADS[0], dirty=True),
        versions={PAYLOADS[0]: PAYLOADS[1]},
    )


def large_run(cases: int = 200) -> RunResults:
    """A run with answers of about 1,500 characters each,
    all different and hard to compress.
    """
    luck = random.Random(7)
    letters = "abcdefghijklmnoprstuvwyz"
    words = ["".join(luck.choices(letters, k=luck.randint(2, 11))) for _ in range(6000)]

    def passes(case: int, _model: str, arm: str, _run: int) -> bool:
        return case % 3 == 0 if arm == "baseline" else case % 6 != 5

    models = ("haiku", "sonnet", "opus")
    made = made_run(models=models, cases=cases, runs=3, passes=passes)
    records = [
        replace(record, output=" ".join(luck.choices(words, k=luck.randint(150, 250))))
        for record in made.records
    ]
    questions = {key: " ".join(luck.choices(words, k=25)) for key in made.questions}
    return replace(made, records=tuple(records), questions=questions)


class Elements(HTMLParser):
    """Every element with its attributes and texts; fails if one is not closed."""

    VOID = frozenset({"meta", "link", "br", "img", "input", "wbr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element with this tag."""
        return [attributes for name, attributes in self.found if name == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)
