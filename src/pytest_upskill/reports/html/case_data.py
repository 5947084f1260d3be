"""The data of the table of cases as JSON, with texts cut to limits."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..._util.texts import digest, harmless, one_line, shortened, slug
from ...results.case_changes import ChangedCase, Earlier
from ...results.run import RunResults
from ...results.verdict import Verdict
from ...trials.answer import AnswerFile
from ...trials.arm import AGAIN, PREVIOUS
from ...trials.records import Record
from ...trials.transcript import Activity, Transcript
from .case_rows import PageCase
from .marked import marked_checks
from .markup import packed

_NAME_LIMIT: Final = 200
_COMMAND_LIMIT: Final = 2000
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


@dataclass(frozen=True)
class TextLimits:
    """How many characters of a text are shown; ``telling`` answers matter most."""

    ordinary: int
    telling: int


def case_anchor(skill: str, case: str, model: str) -> str:
    return f"case-{anchor(skill, case, model)}"


def anchor(*names: str) -> str:
    """The end of a link; made of names alone, so it stays valid for later runs."""
    words = [part for name in names if (part := slug(name, 30))]
    return "-".join([*words, digest(*names)[:10]])


def skill_anchor(name: str) -> str:
    return f"skill-{anchor(name)}"


def word_of(verdict: Verdict) -> str:
    """The word of a verdict, or what there is in place of one."""
    return verdict.word or ("A/A" if verdict.by_chance else "no baseline")


def page_data(
    results: RunResults,
    rows: Sequence[PageCase],
    limits: TextLimits,
    earlier: Earlier | None = None,
) -> dict[str, Any]:
    cases = list(dict.fromkeys((row.test.skill, row.test.case) for row in rows))
    number = {case: index for index, case in enumerate(cases)}
    infos = {(row.test.skill, row.test.case): row.test for row in rows}
    beside = Beside(rows)
    verdicts: dict[str, dict[str, str]] = {}
    for verdict in results.verdicts:
        of_skill = verdicts.setdefault(shown_name(verdict.summary.skill), {})
        of_skill[shown_name(verdict.summary.label)] = word_of(verdict)
    return {
        "skills": {
            shown_name(skill.name): {"id": skill_anchor(skill.name), "score": skill.score}
            for skill in results.skills
        },
        "verdicts": verdicts,
        "images": beside.images,
        "against": {
            shown_name(s.name): s.against and shown_name(s.against) for s in results.skills
        },
        "skill_files": _skill_files(results, limits),
        "cases": [
            {
                "skill": shown_name(skill),
                "name": shown_name(case),
                "question": _cut(results.questions.get((skill, case)), limits.telling),
                "is_trigger": infos[skill, case].is_trigger,
                "tags": [shown_name(tag) for tag in infos[skill, case].tags],
                "place": shown_name(_place(infos[skill, case].file, infos[skill, case].line)),
            }
            for skill, case in cases
        ],
        "tests": [
            {
                **_test(row, number, limits, beside),
                "command": _command(results.rerun.command(row.test.nodeid)),
            }
            for row in rows
        ],
        "before": earlier and _about(earlier),
    }


def _about(earlier: Earlier) -> dict[str, Any]:
    """The run that this one is compared with."""
    run = earlier.results
    return {
        "id": shown_name(earlier.id),
        "started": run.started.isoformat(timespec="seconds"),
        "commit": run.commit and shown_name(run.commit.id),
        "dirty": run.commit and run.commit.dirty,
    }


def _skill_files(results: RunResults, limits: TextLimits) -> dict[str, Any]:
    """SKILL.md of each, and as it was at the git ref."""
    return {
        shown_name(skill.name): [
            _cut(skill.text, limits.telling),
            _cut(skill.previous_text, limits.telling),
        ]
        for skill in results.skills
        if skill.text
    }


def _command(words: str) -> str:
    """Whole or not at all: half a command would run something else."""
    return words if len(words) <= _COMMAND_LIMIT else ""


class Beside:
    """How much of the transcripts and images of a page is shown, whatever its texts leave room
    for: so many small things add up.
    """

    def __init__(self, rows: Sequence[PageCase]) -> None:
        transcripts = sum(bool(record.transcript) for row in rows for record in row.records)
        fewest, most = _STEPS
        self._steps = max(fewest, min(most, _ALL_STEPS // max(1, transcripts)))
        self._first = int(self._steps * _FIRST_STEPS)
        self.images = dict[str, str]()
        characters_left = _MOST_OF_IMAGES
        for row in sorted(rows, key=lambda row: not row.is_telling):
            for file in (file for record in row.records for file in record.files[:_MOST_FILES]):
                picture = _picture(file)
                if picture and file.digest not in self.images and len(picture) <= characters_left:
                    characters_left -= len(picture)
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
    row: PageCase, cases: Mapping[tuple[str, str], int], limits: TextLimits, beside: Beside
) -> dict[str, Any]:
    test, summary, accepted = row.test, row.summary, row.test.expected
    third = AGAIN if summary and AGAIN in summary.arms else PREVIOUS
    answers = limits.telling if row.is_telling else limits.ordinary
    reasons = min(_REASON_LIMIT, max(_LEAST_REASON, limits.telling))
    return {
        "id": case_anchor(test.skill, test.case, test.label),
        "case": cases[test.skill, test.case],
        "model": shown_name(test.label),
        "states": row.states,
        "of_arms": {arm: row.states_of(arm) for arm in dict.fromkeys(r.arm for r in row.records)},
        "outcome": row.outcome,
        "changes": row.changes,
        "rates": summary and [summary.arm(arm).rate for arm in ("baseline", third, "skill")],
        "lift": row.lift,
        "tokens": summary and [summary.arm("baseline").tokens, summary.arm("skill").tokens],
        "accepted": accepted and f"{accepted.was} on {one_line(accepted.date, 20)}",
        "new": test.new,
        "standing": one_line(row.standing.reason, reasons) if row.standing else "",
        "trials": [_trial(record, answers, reasons, beside) for record in row.records],
        "change": row.change and row.change.kind,
        **({"was": _was(row, row.change, answers, reasons, beside)} if row.change else {}),
    }


def _was(
    row: PageCase, change: ChangedCase, answers: int, reasons: int, beside: "Beside"
) -> dict[str, Any]:
    """The case in the earlier run: how often it passed, and its trials; answers only if others."""
    now = {(record.arm, record.run): record.output for record in row.records}
    trials = []
    for record in row.earlier or ():
        same = record.output is not None and now.get((record.arm, record.run)) == record.output
        record_shown = replace(record, output=None) if same else record
        trials.append({**_trial(record_shown, answers, reasons, beside), "same": same})
    return {
        "passed": change.was,
        "now": change.now,
        "shown": change.shown,
        "trials": trials if row.earlier is not None else None,
    }


def _trial(record: Record, answers: int, reasons: int, beside: Beside) -> dict[str, Any]:
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
                shown_name(grade.check),
                one_line(grade.reason, reasons),
                marks,
            ]
            for grade, marks in zip(record.checks, marked_checks(record, answers), strict=True)
        ],
    }
    if record.activity:
        data["activity"] = _activity(record.activity)
    if record.files:
        data["files"] = [
            [
                *(shown_name(file.path), file.size, _cut(file.text, answers), file.change),
                file.digest if file.digest in beside.images else None,
            ]
            for file in record.files[:_MOST_FILES]
        ]
        data["all_files"] = len(record.files)
    if record.transcript:
        data["transcript"] = [
            [
                *(
                    turn.kind,
                    shown_name(turn.tool),
                    turn.failed,
                    _cut(turn.text, answers),
                    turn.reply,
                ),
                *(turn.seconds, turn.input_tokens, turn.output_tokens, turn.cost),
            ]
            for turn in beside.steps(record.transcript)
        ]
        data["steps"] = len(record.transcript)
        data["cut_after"] = beside.cut_after(record.transcript)
        data["totals"] = _totals(record)
    return data


def _totals(record: Record) -> dict[str, Any]:
    """Of a whole transcript, whatever is shown of it."""
    results = [turn for turn in record.transcript if turn.kind == "result"]
    seconds_known = [turn.seconds for turn in results if turn.seconds is not None]
    return {
        "failed": sum(turn.failed for turn in results),
        "tools": sum(seconds_known) if seconds_known else None,
        "opened": _opened_in(record),
    }


def _opened_in(record: Record) -> int | None:
    """The turn in which an agent opened the skill: the first call that names it."""
    if not record.activity or not record.activity.activated:
        return None
    names = ("SKILL.md", record.skill)
    calls = (turn for turn in record.transcript if turn.kind == "call")
    return next((turn.reply for turn in calls if any(name in turn.text for name in names)), None)


def _activity(activity: Activity) -> dict[str, Any]:
    other_skills = () if activity.activated else activity.opened
    lists = {
        "read": activity.read,
        "ran": activity.scripts,
        "findings": activity.findings,
        "others": other_skills,
    }
    return {
        "turns": activity.turns,
        "calls": activity.tool_calls,
        "opened": activity.activated,
        **{
            name: [shown_name(name) for name in names[:_MOST_NAMED]]
            for name, names in lists.items()
        },
    }


def _cut(words: str | None, limit: int) -> list[Any] | None:
    """A harmless text, with its full length if it was cut."""
    if words is None:
        return None
    text = harmless(shortened(words, limit, saving=1))
    return [text] if len(words) <= limit else [text, len(words)]


def shown_name(words: str) -> str:
    """As the script knows it."""
    return one_line(words, _NAME_LIMIT)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else ""


_MOST_LOOKED_AT: Final = 20_000_000  # characters: more can't fit, however well they compress
_LEAST: Final = 200  # characters that every answer keeps while others are longer
_MARK: Final = 45  # characters of the note about what is left out
_TRIES: Final = 6
_NOTHING: Final = TextLimits(0, 0)


@dataclass(frozen=True)
class Fitted:
    """The data of a page, and how many of its answers are cut."""

    data: str
    cut: int
    answers: int


def fitted(
    results: RunResults, rows: Sequence[PageCase], size: int, earlier: Earlier | None = None
) -> Fitted:
    """As much as fits into ``room`` characters; the numbers of trials are always kept."""
    lengths = _Lengths(results, rows)
    limits = lengths.limits(_MOST_LOOKED_AT)
    data = packed(page_data(results, rows, limits, earlier))
    if len(data) > size:
        bare = len(packed(page_data(results, rows, _NOTHING, earlier)))
        for _ in range(_TRIES):
            # Assume that characters compress as well as in the last try.
            share = (size - bare) / max(1, len(data) - bare)
            limits = lengths.limits(int(0.98 * lengths.kept(limits) * share))
            data = packed(page_data(results, rows, limits, earlier))
            if len(data) <= size or limits == _NOTHING:
                break
    return Fitted(data, lengths.cut(limits), lengths.answers)


class _Lengths:
    """The lengths of texts that may be cut; questions are cut last, with telling answers."""

    def __init__(self, results: RunResults, rows: Sequence[PageCase]) -> None:
        self._ordinary: list[int] = []
        self._telling: list[int] = []
        # Texts that are cut too but don't count as answers.
        ordinary_beside: list[int] = []
        telling_beside = [len(question) for question in results.questions.values()]
        texts = [text for skill in results.skills for text in (skill.text, skill.previous_text)]
        telling_beside += [len(text) for text in texts if text]
        beside_answers = Beside(rows)
        for row in rows:
            answers = self._telling if row.is_telling else self._ordinary
            answers += [len(record.output) for record in row.records if record.output is not None]
            beside = telling_beside if row.is_telling else ordinary_beside
            beside += [len(record.output or "") for record in row.earlier or ()]
            beside += [len(text) for record in row.records for text in beside_answers.texts(record)]
        self.answers = len(self._ordinary) + len(self._telling)
        self._all_ordinary = [*self._ordinary, *ordinary_beside]
        self._all_telling = [*self._telling, *telling_beside]

    def limits(self, size: int) -> TextLimits:
        """The largest limits that keep at most ``room`` characters in total."""
        longest = max([0, *self._all_ordinary, *self._all_telling])
        shortest = min(_LEAST, longest)

        def at(step: int) -> TextLimits:
            """Growing: first a little of everything, then telling answers, then all."""
            if step <= shortest:
                return TextLimits(step, step)
            return TextLimits(max(shortest, shortest + step - longest), min(step, longest))

        steps = range(2 * longest - shortest + 1)
        step = bisect_right(steps, size, key=lambda step: self.kept(at(step)))
        return at(max(0, step - 1))

    def kept(self, limits: TextLimits) -> int:
        """How many characters are left."""
        groups = (self._all_telling, limits.telling), (self._all_ordinary, limits.ordinary)
        return sum(
            length if length <= limit else limit + _MARK
            for lengths, limit in groups
            for length in lengths
        )

    def cut(self, limits: TextLimits) -> int:
        ordinary = sum(length > limits.ordinary for length in self._ordinary)
        return ordinary + sum(length > limits.telling for length in self._telling)
