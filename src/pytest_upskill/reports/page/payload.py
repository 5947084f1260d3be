"""The data of a run's page: the results as --skill-json writes them,
and what is said of them.

Numbers are computed and written here or in the results; the viewer only arranges them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..._util.texts import counted, digest, duration, slug
from ...results.case_changes import Earlier, changes
from ...results.outcomes import failure_words
from ...results.regressions import could_flip
from ...results.run import RunResults
from ...results.run_file import results_values
from ...results.run_notes import agent_lines, subset_notes, untested_notes
from ...results.summary_row import SummaryRow
from ...results.sweet_spot import sweet_spot
from ...results.verdict import Verdict, signal_lines
from ...stats import ROUNDING
from ...trials.plan import Count, PlannedCase
from ...trials.records import Record
from ...trials.subject import ORACLE
from ..numbers import Number, cache_words, shown_numbers
from .comparing import changes_values, section_values, study_values, trigger_values

_COMMAND_LIMIT: Final = 2000
# How many characters are kept of a text of a passed test, and of another one.
_LIMITS: Final = (
    (100_000, 100_000),
    (20_000, 50_000),
    (4_000, 20_000),
    (1_000, 4_000),
    (200, 1_000),
)
# Of all texts: more never fit, however well they compress
_MOST_CHARACTERS: Final = 30_000_000
# Fields of records.
_UNSHOWN: Final = frozenset(
    {
        *("judge_calls", "written_tokens", "hour_tokens", "retries"),
        *(f"judge_{kind}_tokens" for kind in ("input", "output", "cached", "written")),
        "asked_at",
    }
)
_MOST_OF_IMAGES: Final = 1_000_000  # characters of all images
# What a browser takes for a picture, by how it begins as base64.
_IMAGES: Final = {
    "iVBORw0KGgo": "png",
    "/9j/": "jpeg",
    "R0lGOD": "gif",
    "UklGR": "webp",
}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def case_anchor(skill: str, case: str, model: str) -> str:
    """The end of a link to a test; made of names alone,
    so it stays valid for later runs.
    """
    words = [part for part in (slug(case, 30), digest(skill, case, model)[:10]) if part]
    return f"case={'-'.join(words)}"


class RunPayload:
    def __init__(
        self,
        results: RunResults,
        notes: Sequence[str],
        earlier: Earlier | None,
        view: str,
    ) -> None:
        changed = changes(earlier, results) if earlier else None
        incomplete = [*subset_notes(results), *untested_notes(results)]
        self._values = {
            "title": _title(results),
            "view": view,
            "took": duration(results.seconds),
            "incomplete": incomplete,
            "results": _shown_results(results),
            "outcome": results.outcome(),
            "problems": _problems(results),
            "facts": [
                *agent_lines(results),
                *filter(None, [cache_words(results.prompt_cache_saved)]),
            ],
            **_numbers(results),
            "sweet_spots": _sweet_spots(results),
            "tests": _tests(results),
            "studies": [study_values(study) for study in results.studies],
            "sections": [section_values(section) for section in results.sections],
            "triggers": [
                trigger_values(summary) for summary in results.trigger_summaries
            ],
            "changes": changed and changes_values(changed, results),
            "images": dict(_images(results)),
            "notes": [note for note in notes if note not in incomplete],
            "left_out": 0,
        }

    @property
    def title(self) -> str:
        return f"{self._values['title']} · skill report"

    def shorter_and_shorter(self) -> Iterator[dict[str, Any]]:
        """The data with its texts cut more and more, those of passed tests first."""
        records = self._values["results"]["records"]
        failed = self._places_of_failed
        for passed_limit, failed_limit in _LIMITS:
            limits = [
                failed_limit if _place(r) in failed else passed_limit for r in records
            ]
            size = sum(
                _size(r, limit) for r, limit in zip(records, limits, strict=True)
            )
            if size <= _MOST_CHARACTERS:
                yield self._cut(limits)
        if changed := self._values["changes"]:
            bare = [
                {**case, "records": [], "left_out": True} for case in changed["cases"]
            ]
            self._values["changes"] = {**changed, "cases": bare}
        yield self._cut([0] * len(records))

    @property
    def _places_of_failed(self) -> set[tuple[str, ...]]:
        tests = zip(
            self._values["results"]["tests"], self._values["tests"], strict=True
        )
        return {_place(test) for test, about in tests if about["outcome"] != "passed"}

    def _cut(self, limits: Sequence[int]) -> dict[str, Any]:
        records = self._values["results"]["records"]
        cut = [_cut_record(r, limit) for r, limit in zip(records, limits, strict=True)]
        left_out = sum(
            after != before for before, after in zip(records, cut, strict=True)
        )
        results = {**self._values["results"], "records": cut}
        return {**self._values, "results": results, "left_out": left_out}


def _shown_results(results: RunResults) -> dict[str, Any]:
    """Without what the viewer never shows, so that a browser reads
    10,000 cases in a second.
    """
    values = results_values(results, transcripts=True)
    records = [
        {name: value for name, value in record.items() if name not in _UNSHOWN}
        for record in values["records"]
    ]
    return {**values, "records": records, "by_case": [], "outcomes": []}


def _problems(results: RunResults) -> list[str]:
    """Why the run fails or is incomplete, besides the tests that failed,
    which are counted.
    """
    failed = failure_words(results.outcome_counts)
    return [line for line in results.problems or results.withheld if line not in failed]


def _title(results: RunResults) -> str:
    names = [skill.name for skill in results.skills]
    return names[0] if len(names) == 1 else counted(len(names), "skill")


# Texts that are too long lose their end, so that places in what
# is left stay as they are.


def _place(values: dict[str, Any]) -> tuple[str, ...]:
    return values["skill"], values["agent"], values["model"], values["case"]


def _size(record: dict[str, Any], limit: int) -> int:
    texts = [record["output"], *(file["text"] for file in record["files"])]
    texts += [turn["text"] for turn in record["transcript"]]
    return sum(min(limit, len(text)) for text in texts if text)


def _cut_record(record: dict[str, Any], limit: int) -> dict[str, Any]:
    if _size(record, limit) == _size(record, 10**9):
        return record
    return {
        **record,
        "output": _cut_text(record["output"], limit),
        "files": [
            {**file, "text": _cut_text(file["text"], limit)} for file in record["files"]
        ],
        "transcript": (
            [
                {**turn, "text": _cut_text(turn["text"], limit)}
                for turn in record["transcript"]
            ]
            if limit
            else []
        ),
    }


def _cut_text(text: str | None, limit: int) -> str | None:
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} characters left out …]"


# What is said of each skill and model, and of each test.


def _numbers(results: RunResults) -> dict[str, Any]:
    """The columns of tables, and for each row of the summary its texts by column."""
    numbers = shown_numbers(results.summary, details=True)
    verdicts = {verdict.summary.pair: verdict for verdict in results.verdicts}
    return {
        "columns": [
            [number.name, number.header_of(results.summary)] for number in numbers
        ],
        "rows": [
            {
                "texts": {number.name: _texts(number, row) for number in numbers},
                **(_about(verdicts[row.pair]) if row.pair in verdicts else {}),
            }
            for row in results.summary
        ],
    }


def _texts(number: Number, row: SummaryRow) -> list[str | None]:
    """The number, its interval or its growth, the same in full,
    and the number with the skill.
    """
    bounds = number.bounds_text(row) if number.interval_priority else None
    brief = bounds or number.growth_text(row, bounds=False)
    full = bounds or number.lift_text(row) or number.growth_text(row)
    return [number.text(row), brief, full, number.skill_text(row)]


def _about(verdict: Verdict) -> dict[str, Any]:
    since = [verdict.since] if verdict.since else []
    return {
        "word": verdict.word or _without_word(verdict),
        "worse": verdict.worse_since,
        "lines": [*since, *signal_lines(verdict)],
    }


def _without_word(verdict: Verdict) -> str:
    if verdict.is_of_oracle:
        return "references"
    return "A/A" if verdict.by_chance else "no baseline"


def _sweet_spots(results: RunResults) -> dict[str, str]:
    by_skill = {
        skill.name: sweet_spot(
            [v for v in results.verdicts if v.summary.skill == skill.name]
        )
        for skill in results.skills
    }
    return {skill: words for skill, words in by_skill.items() if words}


def _tests(results: RunResults) -> list[dict[str, Any]]:
    scores = {
        (row.pair, case.case): [
            case.arm(arm).scored(row.score) for arm in ("baseline", "skill")
        ]
        for row in results.summaries
        for case in row.by_case
    }
    unknown = [None, None]
    return [
        _test(results, test, *scores.get((test.pair, test.case), unknown))
        for test in results.tests
    ]


def _test(
    results: RunResults,
    test: PlannedCase,
    without: float | None,
    with_skill: float | None,
) -> dict[str, Any]:
    records = results.records_of(test)
    ended = results.outcome_of(test)
    now = _count(records, "skill")
    command = results.rerun.command(test.nodeid)
    worse = (
        without is not None
        and with_skill is not None
        and with_skill < without - ROUNDING
    )
    signals = {
        "worse with the skill": worse,
        "flaky": now is not None and could_flip(now, test.threshold),
        "no signal": without == with_skill and without in (0, 1),
    }
    signals = {} if test.agent == ORACLE else signals
    return {
        "id": case_anchor(test.skill, test.case, test.label).removeprefix("case="),
        # Whole or not at all: half a command would run something else.
        "command": command if len(command) <= _COMMAND_LIMIT else "",
        "outcome": "regressed" if ended.regressed else ended.outcome,
        "reason": ended.reason,
        "passes": {
            arm: _count(records, arm) for arm in dict.fromkeys(r.arm for r in records)
        },
        "signals": [word for word, holds in signals.items() if holds],
    }


def _count(records: Sequence[Record], arm: str) -> Count | None:
    graded = [r for r in records if r.arm == arm and r.outcome != "errored"]
    return (
        Count(sum(r.outcome == "passed" for r in graded), len(graded))
        if graded
        else None
    )


def _images(results: RunResults) -> Iterator[tuple[str, str]]:
    """By the digest of the file, as addresses of data."""
    characters_left, seen = _MOST_OF_IMAGES, set[str]()
    for file in (file for record in results.records for file in record.files):
        kind = next(
            (kind for start, kind in _IMAGES.items() if file.data.startswith(start)), ""
        )
        if not kind or file.digest in seen or not _BASE64.fullmatch(file.data):
            continue
        if len(file.data) <= characters_left:
            characters_left -= len(file.data)
            seen.add(file.digest)
            yield file.digest, f"data:image/{kind};base64,{file.data}"
