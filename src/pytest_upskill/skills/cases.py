"""skill_meta.json, or another file of cases, read and checked into frozen values."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from .._util.json_forms import (
    FormError,
    Location,
    Problem,
    cases_error,
    json_path,
    lines_inside,
    read_form,
)
from .._util.texts import digest, slug
from ..errors import CasesError, shown
from .case_forms import CaseForm, ContextForm, FileOfSkill, MessageForm, Messages, MetaForm
from .evals import TRIGGERS_ARE_NO_CASES, cases_of_evals, is_trigger_set
from .skill import read_skill_file

Role = Literal["user", "assistant"]

MAX_CASES_BYTES: Final = 50_000_000
_NO_REASON: Final = "no reason is given"
_HOW_TO_ADD_CASES: Final = (
    'Write {"cases": [{"input": "a question", "expected": {"contains": ["text"]}}]} into {file}.'
)


@dataclass(frozen=True)
class Case:
    """One question with the checks its answer must pass."""

    id: str
    input: str
    expected: Any = None  # as written: what checks there are is not known here
    place: Location = ()  # where in the file it stands
    line: int = 1  # and on which line
    files: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    earlier: tuple[tuple[Role, str], ...] = ()  # the turns before the question
    system: str | None = None
    skip: str | None = None  # why
    xfail: str | None = None  # why
    runs: int | None = None
    threshold: float | None = None
    models: tuple[str, ...] = ()  # patterns; none is for all
    validator: tuple[str, dict[str, Any]] | None = None  # a check in Python, and its argument
    defaulted: frozenset[Location] = frozenset()  # what of it the file's defaults gave

    def place_of(self, *inside: str | int) -> Location:
        """Where something of this case stands in the file."""
        given = any(inside[:length] in self.defaulted for length in (1, 2))
        return (*(("defaults",) if given else self.place), *inside)

    def is_for(self, *names: str) -> bool:
        """Whether one of a model's names fits a pattern of the case, in whatever case."""
        return not self.models or any(
            fnmatchcase(name.lower(), pattern.lower()) for pattern in self.models for name in names
        )


_MESSAGES: Final = TypeAdapter(Messages)
_META: Final = TypeAdapter(MetaForm)
_LIST: Final = TypeAdapter(list[CaseForm])


def load_cases(file: Path, folder: Path | None = None) -> list[Case]:
    """The cases of a file in any of the known forms, in its order.

    ``folder`` is the skill's, whose files a case may name; if None, the one that the file is in.
    """
    (text, data), folder = _read_json(file), folder or file.parent
    if is_trigger_set(data):
        raise CasesError(file, TRIGGERS_ARE_NO_CASES)
    try:
        root, written, defaults = _written_cases(file, data, folder)
        if not written:
            raise CasesError(file, "there are no cases", how_to_add_cases(file))
        merged = [_with_defaults(case, defaults) for case in written]
        forms: list[CaseForm] = read_form(_LIST, merged, root)
        lines = lines_inside(text, root)
        cases = [
            _case(
                (*root, number), lines[number], form, folder, _defaulted(written[number], defaults)
            )
            for number, form in enumerate(forms)
        ]
        _refuse_duplicates(cases)
    except FormError as error:
        raise cases_error(file, error.problems) from None
    return cases


def how_to_add_cases(file: Path) -> str:
    return _HOW_TO_ADD_CASES.replace("{file}", shown(file))


def _written_cases(
    file: Path, data: Any, folder: Path
) -> tuple[Location, list[Any], Mapping[str, Any]]:
    """Where in the file its cases stand, the cases as written, and its defaults."""
    if isinstance(data, list):
        return (), data, {}
    if not isinstance(data, dict):
        raise CasesError(file, "neither an object nor a list", how_to_add_cases(file))
    if "evals" in data:
        return ("evals",), cases_of_evals(data, folder), {}
    meta: MetaForm = read_form(_META, data)
    if meta.cases is not None and meta.tests is not None:
        raise CasesError(file, "both 'cases' and 'tests' are there", "Keep one of them.")
    key = "cases" if meta.tests is None else "tests"
    return (key,), data.get(key) or [], data.get("defaults") or {}


def _with_defaults(case: Any, defaults: Mapping[str, Any]) -> Any:
    """What a case says wins; its tags are added to, its ``expected`` is filled up by key."""
    if not isinstance(case, dict):
        return case
    merged = {**defaults, **case}
    tags, expected = case.get("tags"), case.get("expected")
    if isinstance(tags, list):  # its own come first, so that a bad one has its own place
        merged["tags"] = [*tags, *(tag for tag in defaults.get("tags", ()) if tag not in tags)]
    if isinstance(expected, dict):
        merged["expected"] = {**(defaults.get("expected") or {}), **expected}
    return merged


def _defaulted(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> frozenset[Location]:
    """The places in a case that are not its own, but filled in from the defaults."""
    own, common = case.get("expected"), defaults.get("expected")
    return frozenset(
        [(key,) for key in defaults if key not in case]
        + [("expected", key) for key in common or () if isinstance(own, dict) and key not in own]
    )


def _read_json(file: Path) -> tuple[str, Any]:
    try:
        if file.stat().st_size > MAX_CASES_BYTES:
            raise CasesError(file, f"this file has more than {MAX_CASES_BYTES:,} bytes")
        text = file.read_bytes().decode("utf-8-sig")
        if not text.strip():
            raise CasesError(file, "this file is empty", how_to_add_cases(file))
        return text, json.loads(text, object_pairs_hook=_no_twins)
    except OSError as error:
        raise CasesError(file, error.strerror or str(error), "Check the path.") from None
    except UnicodeDecodeError as error:
        raise CasesError(
            file, f"this file is not UTF-8 (byte {error.start})", "Save it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise CasesError(
            f"{shown(file)}:{error.lineno}:{error.colno}",
            f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}",
            "A comma or a quote is often missing, or too many, just before this place.",
        ) from None
    except _TwinKeyError as error:
        raise CasesError(file, f"the key {error.args[0]!r} stands twice in one object") from None
    except (RecursionError, ValueError) as error:
        problem = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise CasesError(file, f"this is not JSON that can be read: {problem}") from None


class _TwinKeyError(Exception):
    pass


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """json keeps the last of two equal keys, and so would lose a check without a word."""
    out = dict(pairs)
    if len(out) < len(pairs):
        raise _TwinKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return out


def _case(
    place: Location, line: int, form: CaseForm, folder: Path, defaulted: frozenset[Location]
) -> Case:
    turns: list[tuple[Role, str]] = (
        [("user", form.input)]
        if isinstance(form.input, str)
        else [(message.role, message.content) for message in form.input]
    )
    case = Case(
        id=form.id or "",
        input=turns[-1][1],
        expected=form.expected,
        place=place,
        line=line,
        tags=tuple(form.tags),
        earlier=tuple(turns[:-1]),
        system=form.system,
        skip=_reason(form.skip),
        xfail=_reason(form.xfail),
        runs=form.runs,
        threshold=form.threshold,
        models=tuple(form.models or ()),
        defaulted=defaulted,
    )
    files, validator = _files(case, form.context, folder), _validator(case, form)
    case = replace(case, files=files, validator=validator)
    return case if case.id else replace(case, id=_made_id(case))


def _validator(case: Case, form: CaseForm) -> tuple[str, dict[str, Any]] | None:
    told = {**(form.validator_config or {}), "output_file": form.output_file}
    value = {key: setting for key, setting in told.items() if setting is not None}
    if form.validator:
        return form.validator, value
    if value:
        problem = "validator_config or output_file, but no validator that reads it"
        raise FormError([(case.place_of(), problem)])
    return None


def read_messages(turns: Any) -> tuple[tuple[Role, str], ...]:
    """Messages as people write them, held to their form; FormError if they are not."""
    messages: list[MessageForm] = read_form(_MESSAGES, turns)
    return tuple((message.role, message.content) for message in messages)


def _reason(written: bool | str | None) -> str | None:
    return _NO_REASON if written is True else written or None


def _files(case: Case, context: ContextForm | None, folder: Path) -> tuple[tuple[str, str], ...]:
    """Names and texts; what only names a file of the skill is read."""
    written = (context and context.files) or {}
    named: list[tuple[str | int, str, str | FileOfSkill]]
    if isinstance(written, dict):
        named = [(name, name, content) for name, content in written.items()]
    else:
        named = [(step, name, FileOfSkill(file=name)) for step, name in enumerate(written)]
    files, problems = list[tuple[str, str]](), list[Problem]()
    for step, name, content in named:
        try:
            text = content if isinstance(content, str) else read_skill_file(folder, content.file)
            files.append((name, text))
        except ValueError as error:
            problems.append((case.place_of("context", "files", step), str(error)))
    if problems:
        raise FormError(problems)
    return tuple(files)


def _made_id(case: Case) -> str:
    """Some words of the question and a hash of it, so that no other case can change it."""
    asked = (*case.files, *case.earlier)
    mark = digest(case.input, *(part for pair in asked for part in pair))[:6]
    return f"{slug(case.input) or 'case'}-{mark}"


def _refuse_duplicates(cases: Sequence[Case]) -> None:
    seen: dict[str, Case] = {}
    problems: list[Problem] = []
    for case in cases:
        first = seen.setdefault(case.id, case)
        if first is not case:
            what = f"{case.id!r} is the id of {json_path(first.place)} too; give each its own"
            problems.append(((*case.place, "id"), what))
    if problems:
        raise FormError(problems)
