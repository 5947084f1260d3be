"""A suite: cases translated from any form into those of skill_meta.json,
then into values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from ..._util.json_forms import FormError, Location, json_path, read_form
from ...errors import CasesError, NoCasesError
from ..case import Case, CaseUser, Role, SandboxNeeds
from ..case_files import CaseFiles
from ..case_forms import CaseForm, is_good_id
from ..invocation import Invocation
from ..kinds import CASE, CaseKind
from ..loaded_cases import BrokenCase, LoadedCases, automatic_ids, broken, numbered
from ..task_files import with_task_files

EVALS: Final = "evals"  # the folder of a skill's evals
_NO_VALIDATOR: Final = (
    "output_file and validator_config are ignored without a validator"
)
_NO_INPUT: Final = "missing; the baseline has no skill, so say what it is asked instead"
_NO_REASON: Final = "no reason given"
_CASE: Final = TypeAdapter(CaseForm)


@dataclass(frozen=True)
class Suite:
    """The cases of a file or a folder, whatever their form.

    ``Suite.of(path, cases)`` makes one of cases as skill_meta.json has them.
    """

    path: Path  # the file or folder
    folder: Path  # the skill's or bundle's, whose files cases may name
    # The cases by file; triggers may be among them
    files: tuple[LoadedCases[Case], ...] = ()
    error: CasesError | None = None  # why it can't be read as a whole

    @classmethod
    def of(
        cls,
        path: Path,
        cases: Iterable[Mapping[str, Any]],
        *,
        folder: Path | None = None,
        lines: Sequence[int] = (),
    ) -> "Suite":
        """The suite of cases in the form of skill_meta.json.

        Cases may name files in ``folder``; the default is that of the path, or around
        its evals/. ``lines`` are those of the cases, for messages.
        """
        written = [
            Written((number,), lines[number] if number < len(lines) else 1, case)
            for number, case in enumerate(cases)
        ]
        folder = folder or folder_around(path)
        return cls(path, folder, (read_cases(path, written, folder, foreign=False),))

    @property
    def cases(self) -> list[Case]:
        """All cases that can be run, without triggers."""
        return [
            case
            for of_file in self.files
            for case in of_file.cases
            if case.kind == CASE
        ]

    @property
    def has_cases(self) -> bool:
        """Whether there is a case besides triggers, or a mistake to report."""
        return self._has(is_trigger=False) or bool(
            self.error and not isinstance(self.error, NoCasesError)
        )

    @property
    def has_triggers(self) -> bool:
        return self._has(is_trigger=True)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a case nor a trigger, nor a mistake to report."""
        return not (self.has_cases or self.has_triggers)

    @property
    def ids(self) -> Iterator[str]:
        """Of all cases, and of those that can't be run."""
        for of_file in self.files:
            yield from (case.id for case in of_file.cases)
            yield from (case.name for case in of_file.broken)

    def require(self) -> "Suite":
        """The same; CasesError if it can't be read as a whole."""
        if self.error:
            raise self.error
        return self

    def _has(self, *, is_trigger: bool) -> bool:
        kinds: set[CaseKind] = set()
        for of_file in self.files:
            kinds.update(case.kind for case in of_file.cases)
            kinds.update(case.kind for case in of_file.broken)
        return bool(kinds - {CASE}) if is_trigger else CASE in kinds


def folder_around(path: Path) -> Path:
    """The folder whose files the cases at a path name, if no skill says so."""
    return path.parent.parent if path.parent.name == EVALS else path.parent


class Written(NamedTuple):
    """A case in the form of skill_meta.json, and where it is from."""

    place: Location  # its path in the file
    line: int
    case: Mapping[str, Any] | FormError  # or why it can't be translated
    id: str | None = None  # of a case that is broken
    # Paths that come from the file's defaults
    defaulted: frozenset[Location] = frozenset()
    needs_agent: str = ""  # why a plain completion can't be asked
    is_task: bool = False  # of a benchmark


def read_cases(
    file: Path, written: Iterable[Written], folder: Path, *, foreign: bool = True
) -> LoadedCases[Case]:
    """The cases of a file; they may name files in ``folder``.

    In ``foreign`` forms ids may repeat, and errors name no paths inside a case.
    """
    cases, bad, warnings = list[Case](), list[BrokenCase](), list[tuple[int, str]]()
    files, forms = CaseFiles(folder), dict[Location, Mapping[str, Any]]()
    for item in written:
        try:
            if isinstance(item.case, FormError):
                raise item.case
            form: CaseForm = read_form(_CASE, _with_input(item), item.place)
            if (form.output_file or form.validator_config) and not form.validator:
                warnings = warnings or [(item.line, _NO_VALIDATOR)]
            case = _case(item, form, files, foreign=foreign)
            cases.append(with_task_files(case, form, folder))
            forms[item.place] = item.case
        except FormError as error:
            bad.append(
                broken(
                    file, item.line, item.place, error.problems, item.id or _id_of(item)
                )
            )
    named = {case.place for case in cases if case.id}
    cases = _with_ids(cases)
    twice = _duplicates(cases)
    if foreign:
        names = numbered([case.id for case in cases])
        cases = [
            replace(case, id=name) for case, name in zip(cases, names, strict=True)
        ]
        warnings += [
            (case.line, "ids that occur twice are numbered") for case, _ in twice[:1]
        ]
    else:
        for case, first in twice:
            first_place = json_path(first.place)
            problem = f"duplicate id {case.id!r}: also the id of {first_place}"
            if case.place not in named:
                problem = (
                    f"missing, and {first_place} asks the same; give one of them an id"
                )
            bad.append(
                broken(file, case.line, case.place, [((*case.place, "id"), problem)])
            )
        left_out = {case.place for case, _ in twice}
        cases = [case for case in cases if case.place not in left_out]
    ours = tuple({**forms[case.place], "id": case.id} for case in cases)
    return replace(LoadedCases.of(file, cases, bad, warnings), written=ours)


def _with_input(written: Written) -> dict[str, Any]:
    """A case that is invoked with arguments needs no other input
    for arms without the skill.
    """
    assert not isinstance(written.case, FormError)
    case = dict(written.case)
    if isinstance(invoke := case.get("invoke"), str) and "input" not in case:
        with suppress(ValueError):  # reported with its form
            case["input"] = Invocation.of(invoke).arguments
            if not case["input"]:
                raise FormError([((*written.place, "input"), _NO_INPUT)])
    return case


def _id_of(written: Written) -> str | None:
    """The id of a case whose other keys may be wrong."""
    value = None if isinstance(written.case, FormError) else written.case.get("id")
    return value if isinstance(value, str) and is_good_id(value) else None


def _case(written: Written, form: CaseForm, files: CaseFiles, *, foreign: bool) -> Case:
    turns: list[tuple[Role, str]] = (
        [("user", form.input)]
        if isinstance(form.input, str)
        else [(message.role, message.content) for message in form.input]
    )
    case = Case(
        id=form.id or "",
        input=turns[-1][1],
        expected=form.expected,
        place=written.place,
        line=written.line,
        tags=tuple(form.tags),
        group=form.group or "",
        earlier=tuple(turns[:-1]),
        invoke=Invocation.of(form.invoke) if form.invoke else None,
        system=form.system,
        skip=_reason(form.skip),
        xfail=_reason(form.xfail),
        runs=form.runs,
        threshold=form.threshold,
        models=tuple(form.models or ()),
        workspace=form.workspace or "",
        setup=form.setup or "",
        max_turns=form.max_turns,
        timeout=form.timeout,
        sandbox=SandboxNeeds.of(form.sandbox),
        user=CaseUser.of(form),
        validator=_validator(form),
        defaulted=written.defaulted,
    )
    case = files.add_to(replace(case, is_task=written.is_task), form)
    case = files.with_scaffold(case, form.scaffold) if form.scaffold else case
    return replace(
        case,
        is_eval=foreign,
        needs_agent=case.needs_agent or written.needs_agent,
    )


def _validator(form: CaseForm) -> tuple[str, dict[str, Any]] | None:
    settings = {**(form.validator_config or {}), "output_file": form.output_file}
    value = {key: setting for key, setting in settings.items() if setting is not None}
    return (form.validator, value) if form.validator else None


def _reason(written: bool | str | None) -> str | None:
    return _NO_REASON if written is True else written or None


def _with_ids(cases: Sequence[Case]) -> list[Case]:
    unnamed = [case for case in cases if not case.id]
    questions = [
        (case.input, *chain(*case.files), *chain(*case.earlier), *(case.invoke or ()))
        for case in unnamed
    ]
    new_ids = iter(automatic_ids(questions))
    return [case if case.id else replace(case, id=next(new_ids)) for case in cases]


def _duplicates(cases: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Each case that has the id of an earlier one, and the earlier one."""
    first: dict[str, Case] = {}
    return [
        (case, first[case.id])
        for case in cases
        if first.setdefault(case.id, case) is not case
    ]
