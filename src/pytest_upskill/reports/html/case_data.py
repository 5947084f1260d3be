"""The data of the table of cases as JSON, with answers cut evenly to fit the page."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ..._util.texts import digest, harmless, one_line, shortened, slug
from ...results.regressions import Standing, could_flip, reaches
from ...results.run import Pair, RunResults
from ...results.summary import CaseSummary
from ...settings import Score
from ...trials.activity import Activity
from ...trials.answer import AnswerFile
from ...trials.plan import Count, PlannedCase
from ...trials.records import Record
from ...trials.transcript import Transcript
from ...trials.trial import Arm
from .markup import packed

_ROUNDING: Final = 1e-9
_PAIR: Final[tuple[Arm, ...]] = ("baseline", "skill")
_NAME_LIMIT: Final = 200
_REASON_LIMIT: Final = 1000
_LEAST_REASON: Final = 120
_MOST_FILES: Final = 50
_MOST_NAMED: Final = 20
_STEPS: Final = (12, 150)  # of a transcript: at least and at most, depending on how many there are
_ALL_STEPS: Final = 12_000
_FIRST_STEPS: Final = 0.25  # of those that are shown; the end tells more
_MOST_OF_IMAGES: Final = 250_000  # characters of all images
# What a browser takes for a picture, by how it begins as base64.
_IMAGES: Final = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
# Answers of cases in these states matter most, so they are cut last.
_TELLING: Final = frozenset({"failed", "regressed", "worse", "errored"})


@dataclass(frozen=True)
class Limits:
    """How many characters of a text are shown; ``telling`` answers matter most."""

    ordinary: int
    telling: int


@dataclass(frozen=True)
class CaseRow:
    """A case on a model, with its records."""

    test: PlannedCase
    records: Sequence[Record]
    summary: CaseSummary | None  # over complete runs
    standing: Standing | None  # compared with accepted results
    score: Score = "pass"  # of the skill

    @cached_property
    def states(self) -> list[str]:
        if not self.records:
            return ["not run"]
        arms = [self.summary.arm(arm) for arm in _PAIR] if self.summary else []
        without, with_it = [arm.scored(self.score) for arm in arms] or [None, None]
        found = {
            "failed": self.count is not None and not reaches(self.count, self.test.threshold),
            "regressed": self.standing is not None and self.standing.kind == "regressed",
            "worse": self.lift is not None and self.lift < -_ROUNDING,
            "errored": any(record.outcome == "errored" for record in self.records),
            "flaky": self.count is not None and could_flip(self.count, self.test.threshold),
            "no signal": without == with_it and without in (0, 1),
        }
        return [state for state, holds in found.items() if holds]

    @property
    def lift(self) -> float | None:
        """Of what the verdict is on."""
        pair = [self.summary.arm(arm).scored(self.score) for arm in _PAIR] if self.summary else []
        return None if None in pair or not pair else (pair[1] or 0.0) - (pair[0] or 0.0)

    @property
    def count(self) -> Count | None:
        """Of the answered runs with the skill."""
        done = [r for r in self.records if r.arm == "skill" and r.outcome != "errored"]
        passed = sum(record.outcome == "passed" for record in done)
        return Count(passed, len(done)) if done else None

    @property
    def is_telling(self) -> bool:
        return not _TELLING.isdisjoint(self.states)


def rows_of(results: RunResults) -> list[CaseRow]:
    """All tests, in the order of the run."""
    summaries: dict[Pair, dict[str, CaseSummary]] = {
        (row.skill, row.model): {case.case: case for case in row.by_case}
        for row in results.summaries
    }
    scores = {skill.name: skill.score for skill in results.skills}
    return [
        CaseRow(
            test,
            results.records_of(test),
            summaries.get((test.skill, test.model), {}).get(test.case),
            results.standing(test),
            scores.get(test.skill, "pass"),
        )
        for test in results.tests
    ]


def anchor(*names: str) -> str:
    """The end of a link; made of names alone, so it stays valid for later runs."""
    words = [part for name in names if (part := slug(name, 30))]
    return "-".join([*words, digest(*names)[:10]])


def page_data(results: RunResults, rows: Sequence[CaseRow], limits: Limits) -> dict[str, Any]:
    cases = list(dict.fromkeys((row.test.skill, row.test.case) for row in rows))
    number = {case: index for index, case in enumerate(cases)}
    infos = {(row.test.skill, row.test.case): row.test for row in rows}
    beside = _Beside(rows)
    return {
        "images": beside.images,
        "against": {_name(s.name): s.against and _name(s.against) for s in results.skills},
        "cases": [
            {
                "skill": _name(skill),
                "name": _name(case),
                "question": _cut(results.questions.get((skill, case)), limits.telling),
                "tags": [_name(tag) for tag in infos[skill, case].tags],
                "place": _name(_place(infos[skill, case].file, infos[skill, case].line)),
            }
            for skill, case in cases
        ],
        "tests": [_test(row, number, limits, beside) for row in rows],
    }


class _Beside:
    """How much of the transcripts and images of a page is shown, whatever its texts leave room
    for: so many small things add up.
    """

    def __init__(self, rows: Sequence[CaseRow]) -> None:
        transcripts = sum(bool(record.transcript) for row in rows for record in row.records)
        least, most = _STEPS
        self._steps = max(least, min(most, _ALL_STEPS // max(1, transcripts)))
        self._first = int(self._steps * _FIRST_STEPS)
        self.images = dict[str, str]()
        room = _MOST_OF_IMAGES
        for row in sorted(rows, key=lambda row: not row.is_telling):
            for file in (file for record in row.records for file in record.files[:_MOST_FILES]):
                picture = _picture(file)
                if picture and file.digest not in self.images and len(picture) <= room:
                    room -= len(picture)
                    self.images[file.digest] = picture

    def steps(self, transcript: Transcript) -> Transcript:
        if len(transcript) <= self._steps:
            return transcript
        return transcript[: self._first] + transcript[self._first - self._steps :]

    def cut_after(self, transcript: Transcript) -> int | None:
        """How many steps stand before those that are left out."""
        return self._first if len(transcript) > self._steps else None

    def texts(self, record: Record) -> list[str]:
        """The texts of a trial that are cut like its answer but not counted as answers."""
        files = [file.text for file in record.files[:_MOST_FILES] if file.text]
        return files + [turn.text for turn in self.steps(record.transcript)]


def _picture(file: AnswerFile) -> str:
    """An address that holds the image; empty if it is none that browsers show."""
    kinds = [kind for start, kind in _IMAGES.items() if file.data.startswith(start)]
    if not kinds or len(file.data) > _MOST_OF_IMAGES or not _BASE64.fullmatch(file.data):
        return ""
    return f"data:image/{kinds[0]};base64,{file.data}"


def _test(
    row: CaseRow, cases: Mapping[tuple[str, str], int], limits: Limits, beside: _Beside
) -> dict[str, Any]:
    test, summary, accepted = row.test, row.summary, row.test.expected
    answers = limits.telling if row.is_telling else limits.ordinary
    reasons = min(_REASON_LIMIT, max(_LEAST_REASON, limits.telling))
    return {
        "id": f"case-{anchor(test.skill, test.case, test.model)}",
        "case": cases[test.skill, test.case],
        "model": _name(test.model),
        "states": row.states,
        "rates": summary and [summary.arm(arm).rate for arm in ("baseline", "previous", "skill")],
        "lift": row.lift,
        "tokens": summary and [summary.arm("baseline").tokens, summary.arm("skill").tokens],
        "accepted": accepted and f"{accepted.was} on {one_line(accepted.date, 20)}",
        "new": test.new,
        "standing": one_line(row.standing.reason, reasons) if row.standing else "",
        "trials": [_trial(record, answers, reasons, beside) for record in row.records],
    }


def _trial(record: Record, answers: int, reasons: int, beside: _Beside) -> dict[str, Any]:
    data: dict[str, Any] = {
        "arm": record.arm,
        "run": record.run,
        "outcome": record.outcome,
        "answer": _cut(record.output, answers),
        "tokens": [record.input_tokens, record.output_tokens, record.cached_tokens],
        "seconds": record.seconds,
        "cost": record.cost,
        "score": record.score,
        "stored": record.stored,
        "error": record.error and one_line(record.error, reasons),
        "checks": [
            [
                "ok" if grade.passed else "FAIL" if grade.required else "miss",
                _name(grade.check),
                one_line(grade.reason, reasons),
            ]
            for grade in record.checks
        ],
    }
    if record.activity:
        data["activity"] = _activity(record.activity)
    if record.files:
        data["files"] = [
            [
                *(_name(file.path), file.size, _cut(file.text, answers), file.change),
                file.digest if file.digest in beside.images else None,
            ]
            for file in record.files[:_MOST_FILES]
        ]
        data["all_files"] = len(record.files)
    if record.transcript:
        data["transcript"] = [
            [
                *(turn.kind, _name(turn.tool), turn.failed, _cut(turn.text, answers), turn.reply),
                *(turn.seconds, turn.input_tokens, turn.output_tokens, turn.cost),
            ]
            for turn in beside.steps(record.transcript)
        ]
        data["steps"] = len(record.transcript)
        data["cut_after"] = beside.cut_after(record.transcript)
    return data


def _activity(done: Activity) -> dict[str, Any]:
    others = () if done.activated else done.opened
    lists = {"read": done.read, "ran": done.scripts, "findings": done.findings, "others": others}
    return {
        "turns": done.turns,
        "calls": done.tool_calls,
        "opened": done.activated,
        **{name: [_name(one) for one in own[:_MOST_NAMED]] for name, own in lists.items()},
    }


def _cut(words: str | None, limit: int) -> list[Any] | None:
    """A harmless text, with its full length if it was cut."""
    if words is None:
        return None
    shown = harmless(shortened(words, limit, saving=1))
    return [shown] if len(words) <= limit else [shown, len(words)]


def _name(words: str) -> str:
    return one_line(words, _NAME_LIMIT)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""


_MOST_LOOKED_AT: Final = 20_000_000  # characters: more can't fit, however well they compress
_LEAST: Final = 200  # characters that every answer keeps while others are longer
_MARK: Final = 45  # characters of the note about what is left out
_TRIES: Final = 6
_NOTHING: Final = Limits(0, 0)


@dataclass(frozen=True)
class Fitted:
    """The data of a page, and how many of its answers are cut."""

    data: str
    cut: int
    answers: int


def fitted(results: RunResults, rows: Sequence[CaseRow], room: int) -> Fitted:
    """As much as fits into ``room`` characters; the numbers of trials are always kept."""
    lengths = _Lengths(results, rows)
    limits = lengths.limits(_MOST_LOOKED_AT)
    data = packed(page_data(results, rows, limits))
    if len(data) > room:
        bare = len(packed(page_data(results, rows, _NOTHING)))
        for _ in range(_TRIES):
            # Assume that characters compress as well as in the last try.
            share = (room - bare) / max(1, len(data) - bare)
            limits = lengths.limits(int(0.98 * lengths.kept(limits) * share))
            data = packed(page_data(results, rows, limits))
            if len(data) <= room or limits == _NOTHING:
                break
    return Fitted(data, lengths.cut(limits), lengths.answers)


class _Lengths:
    """The lengths of texts that may be cut; questions are cut last, with telling answers."""

    def __init__(self, results: RunResults, rows: Sequence[CaseRow]) -> None:
        self._ordinary: list[int] = []
        self._telling: list[int] = []
        # Texts that are cut too but don't count as answers.
        ordinary_beside: list[int] = []
        telling_beside = [len(question) for question in results.questions.values()]
        beside_answers = _Beside(rows)
        for row in rows:
            answers = self._telling if row.is_telling else self._ordinary
            answers += [len(record.output) for record in row.records if record.output is not None]
            beside = telling_beside if row.is_telling else ordinary_beside
            beside += [len(text) for record in row.records for text in beside_answers.texts(record)]
        self.answers = len(self._ordinary) + len(self._telling)
        self._all_ordinary = [*self._ordinary, *ordinary_beside]
        self._all_telling = [*self._telling, *telling_beside]

    def limits(self, room: int) -> Limits:
        """The largest limits that keep at most ``room`` characters in total."""
        longest = max([0, *self._all_ordinary, *self._all_telling])
        least = min(_LEAST, longest)

        def at(step: int) -> Limits:
            """Growing: first a little of everything, then telling answers, then all."""
            if step <= least:
                return Limits(step, step)
            return Limits(max(least, least + step - longest), min(step, longest))

        steps = range(2 * longest - least + 1)
        found = bisect_right(steps, room, key=lambda step: self.kept(at(step)))
        return at(max(0, found - 1))

    def kept(self, limits: Limits) -> int:
        def kept(lengths: Sequence[int], limit: int) -> int:
            return sum(length if length <= limit else limit + _MARK for length in lengths)

        telling = kept(self._all_telling, limits.telling)
        return telling + kept(self._all_ordinary, limits.ordinary)

    def cut(self, limits: Limits) -> int:
        ordinary = sum(length > limits.ordinary for length in self._ordinary)
        return ordinary + sum(length > limits.telling for length in self._telling)
