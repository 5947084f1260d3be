"""Rules for triggers: are the queries valid, and do they show anything?"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from .._util.texts import counted
from ..errors import shown
from ..settings import ENOUGH_QUERIES
from ..skills.case import Case
from ..skills.triggers import LoadedTriggers, Trigger, load_triggers, names_skill
from .case_rules import near_duplicates
from .finding import Finding, Level, finding_of

_LOPSIDED: Final = 2  # one kind has more than this many times as many queries as the other


def lint_triggers(folder: Path, name: str) -> Iterator[Finding]:
    """The findings of a skill's queries, if it has any; ``name`` is the skill's."""
    loaded = load_triggers(folder)
    for broken in loaded.broken:
        yield finding_of(broken.error, "trigger-invalid")
    for one in loaded.warnings:
        code = "trigger-duplicate" if one.repeats else "trigger-warning"
        yield Finding(shown(one.file), one.line, "warning", code, one.message)
    for trigger in loaded.triggers:
        if trigger.should_trigger and names_skill(trigger.query, name):
            message = f"{trigger.id}: the query names the skill"
            hint = "Write what a user would who has never heard of it."
            yield _finding(trigger, "warning", "trigger-names-skill", message, hint)
    yield from _alike(loaded)
    yield from _numbers(loaded, folder)


def _finding(trigger: Trigger, level: Level, code: str, message: str, hint: str) -> Finding:
    return Finding(shown(trigger.file), trigger.line, level, code, message, hint)


def _alike(loaded: LoadedTriggers) -> Iterator[Finding]:
    """Queries that are nearly the same; with opposite wishes, that is what makes a good set."""
    for kind in (True, False):
        queries = {one.id: one for one in loaded.of_kind(kind)}
        for first, second in near_duplicates([Case(one.id, one.query) for one in queries.values()]):
            message = f"{second.id}: almost the same query as {first.id}"
            hint = "Ask something different: repeats add no evidence."
            yield _finding(queries[second.id], "warning", "trigger-duplicate", message, hint)


def _numbers(loaded: LoadedTriggers, folder: Path) -> Iterator[Finding]:
    """At most one finding about how many queries there are."""
    should, should_not = loaded.of_kind(True), loaded.of_kind(False)
    if not loaded.triggers:
        return
    how = f"Write more, or run pytest-upskill triggers {shown(folder)}."
    code, message = "", ""
    if not should or not should_not:
        code = "trigger-one-kind"
        message = f"{_counted(loaded.triggers)}, and none that {_kind(bool(should_not))}"
    elif min(len(should), len(should_not)) < ENOUGH_QUERIES:
        code = "trigger-few"
        few = min(should, should_not, key=len)
        message = f"{_counted(few)}: too few to show much"
        how = (
            f"Have at least {ENOUGH_QUERIES} of each kind, or run pytest-upskill triggers "
            f"{shown(folder)}."
        )
    elif max(len(should), len(should_not)) > _LOPSIDED * min(len(should), len(should_not)):
        code = "trigger-unbalanced"
        message = f"{_counted(should)}, but {_counted(should_not)}"
    if code:
        yield _finding(loaded.triggers[0], "warning", code, message, how)


def _counted(queries: Sequence[Trigger]) -> str:
    return f"{counted(len(queries), 'query')} that {_kind(queries[0].should_trigger)}"


def _kind(should_trigger: bool) -> str:
    return "should trigger" if should_trigger else "should not trigger"
