"""What a reader must know to trust the numbers of a run."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from .._util import grouped
from .._util.texts import counted, one_line
from ..errors import Spell
from ..models.prices import ON_A_PLAN
from ..skills.case import EDIT_ME
from ..skills.skill import UnseenFile
from ..trials.answer import CUT_OFF, STOPPED
from ..trials.plan import PlannedCase, SkillInfo
from ..trials.records import Record
from ..trials.subject import CHAT
from ..trials.transcript import Sent
from .row import repeat_words
from .run import RunResults, first_names

_MAX_FILES: Final = 5
_MAX_NAME_LENGTH: Final = 100
_MAX_SKILLS: Final = 3  # more of them share one note
_NOT_WHOLE: Final[dict[Sent, str]] = {
    "cut": "cut",
    "name": "name only",
    "not listed": "not listed",
}


def run_notes(results: RunResults, spell: Spell | None = None) -> list[str]:
    """One line each; with ``spell``, also what to set."""
    return [
        *untested_notes(results),
        *_example_notes(results),
        *_age_notes(results),
        *_version_notes(results),
        *_login_notes(results),
        *_limit_notes(results, spell),
        *subset_notes(results),
        *_with_skill_notes(results),
        *_gate_notes(results),
        *_repeat_notes(results),
        *_unseen_notes(results, spell),
        *listing_notes(results.records),
    ]


def agent_lines(results: RunResults) -> list[str]:
    """Who carried out the cases, with what skills of their own."""
    lines = []
    if results.agents:
        named = [f"{name} {of}".rstrip() for name, of in results.agents.items()]
        lines.append(f"carried out by {one_line(', '.join(named), 200)}")
    for name, skills in results.bundled.items():
        names = one_line(", ".join(skills), 200)
        lines.append(f"{name} has skills of its own everywhere: {names}")
    return lines


def untested_notes(results: RunResults) -> list[str]:
    return [
        f"No verdict on {names}: {reason}."
        for reason, names in results.untested_by_reason
    ]


def subset_notes(results: RunResults) -> list[str]:
    return _join_pairs(
        (group.pair, f"ran only {share}") for group, share in results.subsets.items()
    )


def _with_skill_notes(results: RunResults) -> list[str]:
    """Where tests fail though a lift, which has not their checks, does not tell."""
    alone = results.cases_apart
    failed = Counter(
        record.pair
        for record in results.case_records
        if record.outcome == "failed" and record.passed_common
    )
    words = []
    for pair, number in alone.items():
        cases = counted(number, "case")
        words.append((pair, f"{cases} asked with the skill alone, in no rate or lift"))
    for pair, number in failed.items():
        trials = counted(number, "trial")
        only = "failed only by checks in with_skill, in no rate or lift"
        words.append((pair, f"{trials} {only}"))
    return _join_pairs(words)


def _gate_notes(results: RunResults) -> list[str]:
    if not results.selected_to_fail or not results.gates.any():
        return []
    return ["No gate is decided: only tests ran that failed the last time."]


def _example_notes(results: RunResults) -> list[str]:
    """Cases that came with init: whatever they show, it is not what users ask."""
    examples = {
        (test.skill, test.case) for test in results.tests if EDIT_ME in test.tags
    }
    if not examples:
        return []

    cases = counted(len(examples), "case")
    names = first_names(sorted({skill for skill, _ in examples}))
    note = f"{cases} of {names} with the tag {EDIT_ME}: examples, which say nothing"
    return [f"{note} about a skill. Edit them, then remove the tag."]


def _age_notes(results: RunResults) -> list[str]:
    """When the arms were asked, unless that was at the time of the run."""
    return _join_pairs(
        (row.pair, row.asked.words(results.started))
        for row in results.summary
        if row.asked
    )


def _join_pairs(words_of_pairs: Iterable[tuple[object, str]]) -> list[str]:
    """One note for all pairs of a skill and a model that the same words are about."""
    notes = []
    for words, group in grouped(words_of_pairs, lambda item: item[1]).items():
        if words:
            names = first_names([str(pair) for pair, _ in group])
            notes.append(f"{names}: {words}.")
    return notes


def _version_notes(results: RunResults) -> list[str]:
    """Agents and models that are others than those of the accepted results."""
    notes = dict[str, None]()
    for test in results.tests:
        if test.expected:
            version = results.agents.get(test.agent)
            model_id = results.model_ids.get(test.label)
            for name, before, now in (
                (test.agent, test.expected.version, version),
                (test.label, test.expected.model_id, model_id),
            ):
                if before and now and now != before:
                    was = (
                        f"{name} was {one_line(before, 60)} when results were accepted"
                    )
                    notes[f"{was}, and is now {one_line(now, 60)}."] = None
    return list(notes)


def _login_notes(results: RunResults) -> list[str]:
    """Whose costs nobody is billed for."""
    if not results.logins:
        return []
    return [f"{first_names(results.logins)}: costs {ON_A_PLAN}."]


def _limit_notes(results: RunResults, spell: Spell | None) -> list[str]:
    """Where a limit ended trials: a low one looks like a skill that is of no use."""
    trials = Counter(record.label for record in results.case_records)
    stopped = Counter[str]()
    silent = Counter[str]()
    for record in results.case_records:
        reasons = [grade.reason for grade in record.checks]
        stopped[record.label] += any(why.startswith(STOPPED) for why in reasons)
        silent[record.label] += any(why.endswith(CUT_OFF) for why in reasons)

    notes = []
    for limit, settings, counts in (
        ("the limit of turns or time", ("max_turns", "timeout"), stopped),
        ("the output limit without a word", ("max_output",), silent),
    ):
        hint = f" ({', '.join(map(spell, settings))})" if spell else ""
        for label, number in counts.items():
            if number:
                notes.append(
                    f"{label}: {number:,} of {counted(trials[label], 'trial')} stopped"
                    f" at {limit}{hint}, which counts as failed."
                )
    return notes


def _repeat_notes(results: RunResults) -> list[str]:
    """What cases that ask the same or are of one group mean for the numbers, once per
    skill.
    """
    rows = {row.skill: row for row in results.rows if row.samples < len(row.by_case)}
    return [
        f"{repeat_words(skill, len(row.by_case), row.samples)}."
        for skill, row in rows.items()
    ]


def listing_notes(records: Iterable[Record]) -> list[str]:
    """Agents that did not send all descriptions of the skills that are installed."""
    sent: dict[str, dict[str, set[Sent]]] = {}  # by agent and model, then name
    for record in records:
        for skill in record.activity.listed if record.activity else ():
            of_label = sent.setdefault(record.label, {})
            of_label.setdefault(skill.name, set()).add(skill.sent)

    notes = []
    for label, by_name in sent.items():
        parts = []
        for kind, words in _NOT_WHOLE.items():
            names = sorted(name for name, kinds in by_name.items() if kind in kinds)
            if names:
                parts.append(f"{words} {len(names):,} ({first_names(names)})")
        if parts:
            total = counted(len(by_name), "installed skill")
            words = ", ".join(parts)
            notes.append(f"{label} did not send all descriptions of {total}: {words}.")
    return notes


def _unseen_notes(results: RunResults, spell: Spell | None) -> list[str]:
    """An agent has all files of a skill, also one that only a test in Python asks."""
    plain = {test.skill for test in results.cases if not _is_by_agent(test, results)}
    skills = [skill for skill in results.skills if skill.name in plain]
    if any(_is_by_agent(test, results) for test in results.cases):
        return unseen_notes(skills, spell, "plain completions")
    return unseen_notes(skills, spell)


def _is_by_agent(test: PlannedCase, results: RunResults) -> bool:
    if test.agent != CHAT:
        return True
    return any(record.activity for record in results.records_of(test))


def unseen_notes(
    skills: Iterable[SkillInfo], spell: Spell | None = None, reader: str = "the model"
) -> list[str]:
    """Without these files a skill was not measured as an agent would use it.

    With ``spell``, the notes name the setting that helps.
    """
    affected = [skill for skill in skills if skill.unseen_files]
    notes = []
    files: list[UnseenFile] = []
    for skill in affected:
        note = _unseen_note("of this skill", skill.unseen_files, spell, reader=reader)
        notes.append(f"{one_line(skill.name, _MAX_NAME_LENGTH)}: {note}")
        for file in skill.unseen_files:
            files.append(replace(file, path=f"{skill.name}/{file.path}"))
    if len(affected) <= _MAX_SKILLS:
        return notes
    return [_unseen_note(f"of {len(affected)} skills", files, spell, reader=reader)]


def _unseen_note(
    owner: str, files: Sequence[UnseenFile], spell: Spell | None, *, reader: str
) -> str:
    verb = "was" if len(files) == 1 else "were"
    return (
        f"{counted(len(files), 'file')} {owner} {verb} not available to {reader}:"
        f" {_list_files(files)}{_unseen_hint(files, spell)}."
    )


def _list_files(files: Sequence[UnseenFile]) -> str:
    by_reason = grouped(files[:_MAX_FILES], lambda file: file.reason)
    parts = []
    for reason, group in by_reason.items():
        names = ", ".join(one_line(file.path, _MAX_NAME_LENGTH) for file in group)
        if reason:
            names += f" ({one_line(reason, _MAX_NAME_LENGTH)})"
        parts.append(names)
    if len(files) > _MAX_FILES:
        parts.append(f"{len(files) - _MAX_FILES:,} more")
    return ", ".join(parts)


def _unseen_hint(files: Sequence[UnseenFile], spell: Spell | None) -> str:
    if not spell or all(file.reason for file in files):
        return ""
    pronoun = "it" if len(files) == 1 else "them"
    return (
        f"; {spell('references')} puts {pronoun} in context, {spell('agents')} loop"
        f" reads {pronoun}"
    )
