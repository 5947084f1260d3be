"""What a reader must know to trust the numbers of a run."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
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
from .run import RunResults, triggers_as_cases
from .summary import Summary, repeat_notes
from .verdict import first_names

_MOST_FILES: Final = 5
_LONGEST_NAME: Final = 100
_MOST_SKILLS: Final = 3  # more of them share one note


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
        *_retry_notes(results.summaries),
        *repeat_notes(results.summaries),
        *repeat_notes(triggers_as_cases(results).summaries, "query"),
        *_unseen_notes(results, spell),
        *listing_notes(results.records),
    ]


def agent_lines(results: RunResults) -> list[str]:
    """Who carried out the cases, with what skills of their own."""
    named = ", ".join(
        f"{name} {version}".rstrip() for name, version in results.agents.items()
    )
    lines = [f"carried out by {one_line(named, 200)}"] if named else []
    return lines + [
        f"{name} has skills of its own in all arms: {one_line(', '.join(skills), 200)}"
        for name, skills in results.bundled.items()
    ]


def untested_notes(results: RunResults) -> list[str]:
    return [
        f"No verdict on {names}: {reason}."
        for reason, names in results.untested_by_reason
    ]


def subset_notes(results: RunResults) -> list[str]:
    shares = (
        (group.pair, f"ran only {share}") for group, share in results.subsets.items()
    )
    return _by_words(shares)


def _with_skill_notes(results: RunResults) -> list[str]:
    """Where tests fail though a lift, which has not their checks, does not tell."""
    alone = grouped(
        (test for test in results.tests if test.skill_only), lambda test: test.pair
    )
    asked = (
        (
            pair,
            (
                f"{counted(len(tests), 'case')} asked with the skill alone, in no rate"
                " or lift"
            ),
        )
        for pair, tests in alone.items()
    )
    failed = Counter(
        record.pair
        for record in results.case_records
        if record.outcome == "failed" and record.passed_common
    )
    only = (
        (
            pair,
            (
                f"{counted(number, 'trial')} failed only by checks in with_skill, in no"
                " rate or lift"
            ),
        )
        for pair, number in failed.items()
    )
    return _by_words([*asked, *only])


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
    names = sorted({skill for skill, _ in examples})
    return [
        (
            f"{counted(len(examples), 'case')} of {first_names(names)} with the tag"
            f" {EDIT_ME}: examples, which say nothing about a skill."
            " Edit them, then remove the tag."
        )
    ]


def _age_notes(results: RunResults) -> list[str]:
    """When the arms were asked, unless that was at the time of the run."""
    return _by_words(
        (row.pair, row.asked_words(results.started)) for row in results.summaries
    )


def _by_words(words_of_pairs: Iterable[tuple[object, str | None]]) -> list[str]:
    """One note for all pairs of a skill and a model that the same words are about."""
    pairs_by_words: dict[str, list[str]] = {}
    for pair, words in words_of_pairs:
        if words:
            pairs_by_words.setdefault(words, []).append(str(pair))
    return [
        f"{first_names(pairs)}: {words}." for words, pairs in pairs_by_words.items()
    ]


def _version_notes(results: RunResults) -> list[str]:
    """Agents that have another version than those of the accepted results."""
    notes = dict[str, None]()
    for test in results.tests:
        now, accepted = (
            results.agents.get(test.agent, ""),
            test.expected and test.expected.version,
        )
        if accepted and now not in ("", accepted):
            before = (
                f"{test.agent} was {one_line(accepted, 60)} when results were accepted"
            )
            notes[f"{before}, and is now {one_line(now, 60)}."] = None
    return list(notes)


def _login_notes(results: RunResults) -> list[str]:
    """Whose costs nobody is billed for."""
    return (
        [f"{first_names(results.logins)}: costs {ON_A_PLAN}."] if results.logins else []
    )


def _limit_notes(results: RunResults, spell: Spell | None) -> list[str]:
    """Where a limit ended trials: a low one looks like a skill that is of no use."""
    trials, notes = (
        Counter(record.label for record in results.case_records),
        list[str](),
    )
    for limit, settings, names_it in _LIMITS:
        stopped = Counter(
            record.label
            for record in results.case_records
            if any(names_it(grade.reason) for grade in record.checks)
        )
        hint = f" ({', '.join(map(spell, settings))})" if spell else ""
        notes += [
            f"{model}: {number:,} of {counted(trials[model], 'trial')} stopped at"
            f" {limit}{hint}, which counts as failed."
            for model, number in stopped.items()
        ]
    return notes


# What it is, what to set, and whether the reason of a check names it.
_LIMITS: Final[Sequence[tuple[str, Sequence[str], Callable[[str], bool]]]] = (
    (
        "the limit of turns or time",
        ("max_turns", "timeout"),
        lambda why: why.startswith(STOPPED),
    ),
    (
        "the output limit without a word",
        ("max_output",),
        lambda why: why.endswith(CUT_OFF),
    ),
)


def _retry_notes(rows: Iterable[Summary]) -> list[str]:
    """Where the arms were not asked alike: errors may come with what is asked."""
    retries = {
        row.pair: {name: arm.retries for name, arm in row.arms.items()} for row in rows
    }
    return _by_words(
        (
            pair,
            "asked again after errors: "
            + ", ".join(f"{name} {number:,}" for name, number in by_arm.items()),
        )
        for pair, by_arm in retries.items()
        if len(set(by_arm.values())) > 1
    )


def listing_notes(records: Iterable[Record]) -> list[str]:
    """Agents that did not send all descriptions of the skills that are installed."""
    skills: dict[str, dict[str, set[Sent]]] = {}  # by agent and model, then name
    for record in records:
        for skill in record.activity.listed if record.activity else ():
            skills.setdefault(record.label, {}).setdefault(skill.name, set()).add(
                skill.sent
            )
    notes = list[str]()
    for label, by_name in skills.items():
        kinds: dict[Sent, str] = {
            "cut": "cut",
            "name": "name only",
            "not listed": "not listed",
        }
        parts = [
            f"{words} {len(names):,} ({first_names(names)})"
            for kind, words in kinds.items()
            if (names := sorted(name for name, sent in by_name.items() if kind in sent))
        ]
        if parts:
            total = counted(len(by_name), "installed skill")
            words = ", ".join(parts)
            notes.append(f"{label} did not send all descriptions of {total}: {words}.")
    return notes


def _unseen_notes(results: RunResults, spell: Spell | None) -> list[str]:
    """An agent has all files of a skill, also one that only a test in Python asks."""

    def by_agent(test: PlannedCase) -> bool:
        return test.agent != CHAT or any(
            record.activity for record in results.records_of(test)
        )

    plain = {test.skill for test in results.cases if not by_agent(test)}
    skills = [skill for skill in results.skills if skill.name in plain]
    mixed = any(map(by_agent, results.cases))
    return unseen_notes(skills, spell, "plain completions" if mixed else "the model")


def unseen_notes(
    skills: Sequence[SkillInfo], spell: Spell | None = None, reader: str = "the model"
) -> list[str]:
    """Without these files a skill was not measured as an agent would use it.

    With ``spell``, the notes name the setting that helps.
    """
    affected = [skill for skill in skills if skill.unseen_files]
    if len(affected) > _MOST_SKILLS:
        files = [
            (f"{skill.name}/", file)
            for skill in affected
            for file in skill.unseen_files
        ]
        return [_unseen_note(f"of {len(affected)} skills", files, spell, reader)]
    return [
        f"{one_line(skill.name, _LONGEST_NAME)}: "
        + _unseen_note(
            "of this skill", [("", file) for file in skill.unseen_files], spell, reader
        )
        for skill in affected
    ]


def _unseen_note(
    owner: str,
    files: Sequence[tuple[str, UnseenFile]],
    spell: Spell | None,
    reader: str,
) -> str:
    verb, pronoun = ("was", "it") if len(files) == 1 else ("were", "them")
    listed = files[:_MOST_FILES]
    names = [
        _with_reason(
            reason,
            [one_line(f"{folder}{file.path}", _LONGEST_NAME) for folder, file in group],
        )
        for reason, group in groupby(listed, key=lambda entry: entry[1].reason)
    ]
    names += [f"{len(files) - len(listed):,} more"] if len(files) > len(listed) else []
    hint = ""
    if spell and any(file.reason is None for _, file in files):
        in_context = f"{spell('references')} puts {pronoun} in context"
        hint = f"; {in_context}, {spell('agents')} loop reads {pronoun}"
    count = f"{counted(len(files), 'file')} {owner} {verb} not available to {reader}"
    return f"{count}: {', '.join(names)}{hint}."


def _with_reason(reason: str | None, names: Sequence[str]) -> str:
    return (
        f"{', '.join(names)} ({one_line(reason, _LONGEST_NAME)})"
        if reason
        else ", ".join(names)
    )
