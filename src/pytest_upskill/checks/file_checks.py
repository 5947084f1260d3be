"""Checks of the files that an agent leaves behind.

The text of a file is checked by the same kinds as an answer's text, with the same
arguments; so is the output of a command.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, create_model

from .._util.json_forms import Strict
from .._util.texts import one_line
from ..agents.sandboxes.sandbox import WORKSPACE
from ..skills.folder import decoded, read_skill_bytes
from ..trials.answer import Answer, AnswerFile
from .check import CheckContext, CheckKind, Paths, Result, Text, quoted
from .data_checks import KINDS as DATA_KINDS
from .final_workspace import matches, relative
from .text_checks import KINDS as TEXT_KINDS

_ONLY_OF_ANSWERS: Final = ("max_output_tokens", "max_seconds", "refused", "stop")
TEXT_CONDITIONS: Final[Mapping[str, CheckKind]] = {
    kind.name: kind
    for kind in (*TEXT_KINDS, *DATA_KINDS)
    if kind.name not in _ONLY_OF_ANSWERS
}

Condition = tuple[CheckKind, Any]  # with its argument


class _Argument:
    """The argument of a kind as the type of a form's field."""

    def __init__(self, kind: CheckKind) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        self._kind.argument.rebuild()
        return self._kind.argument.core_schema


def _field(name: str) -> str:
    """Forms have methods of their own, such as ``json``."""
    return f"text_{name}"


if TYPE_CHECKING:
    ConditionsForm = Strict
else:
    ConditionsForm = create_model(
        "ConditionsForm",
        __base__=Strict,
        **{
            _field(name): (
                Annotated[Any, _Argument(kind)] | None,
                Field(None, alias=name),
            )
            for name, kind in TEXT_CONDITIONS.items()
        },
    )


def conditions_in(form: ConditionsForm) -> tuple[Condition, ...]:
    values = (
        (kind, getattr(form, _field(name))) for name, kind in TEXT_CONDITIONS.items()
    )
    return tuple((kind, value) for kind, value in values if value is not None)


def results_in(
    text: str, text_name: str, condition: Condition, context: CheckContext
) -> list[Result]:
    """The results of a condition for a text."""
    kind, value = condition
    sensitive = context.case_sensitive
    return list(
        kind.evaluate(
            CheckContext(
                Answer(text), context.case, value, sensitive, text_name=text_name
            )
        )
    )


# What forbids or limits something must hold for every file that a pattern matches;
# anything else for at least one of them.
_FOR_ALL: Final = ("not_contains", "not_regex", "max_words", "max_chars", "max_bytes")
_SHORT_FORMS: Final = {True: {"exists": True}, "exists": {"exists": True}} | {
    False: {"absent": True},
    "absent": {"absent": True},
}
_CUT: Final = "unknown: the agent left more files than are kept"
_BOTH: Final = (
    "a file can't be absent and have something in it, so no answer would pass"
)


class ExpectedFile(NamedTuple):
    """A file to be compared with."""

    name: str
    data: bytes


class FileForm(ConditionsForm):
    """What is asked of a file. Its text is checked as that of an answer is."""

    exists: bool | None = Field(None, description="True: the file has to be there.")
    absent: bool | None = Field(None, description="True: there must be no such file.")
    equals_file: Text | None = Field(
        None,
        description=(
            "A file in the skill's folder with the same content, best below evals/, "
            "which no agent sees: 'evals/expected.csv'."
        ),
    )
    max_bytes: Annotated[int, Field(ge=1)] | None = Field(
        None, description="The largest size that it may have."
    )


class FileCheck(NamedTuple):
    """What is asked of the files that a path or pattern matches."""

    path: str
    absent: bool
    texts: tuple[Condition, ...] = ()
    equals: ExpectedFile | None = None
    max_bytes: int | None = None


_Written = Text | list[Text] | dict[str, FileForm | bool | Literal["exists", "absent"]]


def files_kind(folder: Path | None = None) -> CheckKind:
    """``files`` of a skill in ``folder``, whose files they may be compared with."""

    def file_checks(written: Mapping[str, Any]) -> list[FileCheck]:
        return [_file_check(path, form, folder) for path, form in written.items()]

    argument: TypeAdapter[Any] = TypeAdapter(
        Annotated[
            dict[Annotated[Text, AfterValidator(relative)], FileForm],
            Field(min_length=1),
            BeforeValidator(_as_forms, json_schema_input_type=_Written),
            AfterValidator(file_checks),
        ]
    )
    return CheckKind("files", argument, _files, needs_agent=True, of_files=True)


def _as_forms(value: Any) -> Any:
    """Each path with an object; a path, or a list of them, means that the files
    exist.
    """
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and all(isinstance(path, str) for path in value):
        value = dict.fromkeys(value, True)
    if not isinstance(value, dict):
        raise ValueError('must be an object of paths, such as {"report.md": "exists"}')
    return {path: _as_form(path, form) for path, form in value.items()}


def _as_form(path: str, form: Any) -> Any:
    if isinstance(form, bool | str):
        if form not in _SHORT_FORMS and isinstance(form, str):
            problem = (
                'must be "exists", "absent" or an object, such as {"contains":'
                f" {quoted(form)}}}"
            )
            raise ValueError(f"{quoted(path)}: {problem}")
        return _SHORT_FORMS[form]
    if not isinstance(form, dict):
        raise ValueError(
            f'{quoted(path)}: must be "exists", "absent" or an object of checks'
        )
    return form


def _file_check(path: str, form: FileForm, folder: Path | None) -> FileCheck:
    texts = conditions_in(form)
    absent = form.absent is True or form.exists is False
    present = (
        form.absent is False
        or form.exists is True
        or form.equals_file
        or form.max_bytes
    )
    if absent and (present or texts):
        raise ValueError(f"{quoted(path)}: {_BOTH}")
    if not absent and not present and not texts:
        raise ValueError(
            f'{quoted(path)}: must not be empty; "exists" asks only if it is there'
        )
    equals = None
    if form.equals_file:
        equals = ExpectedFile(form.equals_file, _read(folder, form.equals_file))
    return FileCheck(path, absent, texts, equals, form.max_bytes)


def _read(folder: Path | None, name: str) -> bytes:
    if folder is None:
        raise ValueError(f"{quoted(name)} is in no skill's folder")
    return read_skill_bytes(folder, name)


def _files(context: CheckContext) -> Iterator[Result]:
    """One result for a file that exists or not, and one for each condition on it."""
    for check in context.value:
        files = context.workspace.matching(check.path)
        if check.absent and not files and context.workspace.is_cut:
            yield None, f"{check.path}: {_CUT}"
            continue
        if check.absent:
            there = one_line(", ".join(file.path for file in files), 100)
            yield (
                not files,
                f"{there}: there, and should not be" if files else _gone(check.path),
            )
            continue
        if not (check.texts or check.equals or check.max_bytes):
            missing = "" if files else context.workspace.why_missing(check.path)
            yield bool(files), missing or f"{_name(files[0])}: there"
            continue
        for every, look in _conditions(check, context):
            results = [
                [(passed, f"{_name(file)}: {reason}") for passed, reason in look(file)]
                for file in files
            ]
            if not files:
                reason = context.workspace.why_missing(check.path)
                results = [
                    [(False, reason) for _ in look(AnswerFile.of(check.path, b""))]
                ]
            yield from (
                _together(every, column) for column in zip(*results, strict=True)
            )


def _gone(path: str) -> str:
    return f"{path}: not there, as expected"


def _name(file: AnswerFile) -> str:
    return one_line(file.path, 100)


def _together(every: bool, results: Sequence[Result]) -> Result:
    """The first result, of several files, that decides."""
    deciding = (False, None) if every else (True,)
    return next((result for result in results if result[0] in deciding), results[0])


Look = Callable[[AnswerFile], list[Result]]


def _conditions(check: FileCheck, context: CheckContext) -> Iterator[tuple[bool, Look]]:
    """Each condition on a file, and whether every matching file must meet it."""
    for condition in check.texts:
        yield condition[0].name in _FOR_ALL, partial(_of_text, context, condition)
    if expected := check.equals:
        yield False, lambda file: [_equal(file, expected)]
    if most := check.max_bytes:
        yield (
            True,
            lambda file: [(file.size <= most, f"{file.size:,} bytes (limit {most:,})")],
        )


def _of_text(
    context: CheckContext, condition: Condition, file: AnswerFile
) -> list[Result]:
    results = results_in(file.text or "", "the file", condition, context)
    if file.text is None:
        return [(None, _no_text(file)) for _ in results]
    return results


def _no_text(file: AnswerFile) -> str:
    return (
        f"not a text, or too large for one ({file.size:,} bytes), so it can't be"
        " searched"
    )


def _equal(file: AnswerFile, expected: ExpectedFile) -> Result:
    """Equal bytes, or texts that differ only in line ends and trailing space."""
    same = file.digest == sha256(expected.data).hexdigest()
    if not same and file.text is not None:
        try:
            same = (
                file.text.replace("\r\n", "\n").rstrip()
                == decoded(expected.data).rstrip()
            )
        except UnicodeDecodeError:
            same = False
    if same:
        return True, f"the same as {expected.name}"
    sizes = f"{file.size:,} bytes, not {len(expected.data):,}"
    return (
        False,
        (
            f"not the same as {expected.name}"
            f" ({_first_difference(file, expected) or sizes})"
        ),
    )


def _first_difference(file: AnswerFile, expected: ExpectedFile) -> str:
    if file.text is None:
        return ""
    lines = file.text.splitlines()
    expected_lines = expected.data.decode("utf-8", "replace").splitlines()
    for number, (line, expected_line) in enumerate(
        zip(lines, expected_lines, strict=False), start=1
    ):
        if line.rstrip() != expected_line.rstrip():
            return f"line {number} is {quoted(line)}, not {quoted(expected_line)}"
    return f"{len(lines):,} lines, not {len(expected_lines):,}"


def of_output_file(kind: CheckKind, path: str) -> CheckKind:
    """A check of upskill that gets the text of a file where an agent answered."""
    inside = path.removeprefix(f"{WORKSPACE}/").removeprefix("./")

    def evaluate(context: CheckContext) -> Iterator[Result]:
        if context.answer.activity is None:
            yield from kind.evaluate(context)
            return
        file = context.workspace.files.get(inside)
        if file is None:
            yield False, context.workspace.why_missing(inside)
        elif file.text is None:
            yield None, f"{_name(file)}: {_no_text(file)}"
        else:
            yield from kind.evaluate(
                replace(context, answer=replace(context.answer, text=file.text))
            )

    return replace(kind, evaluate=evaluate, of_files=True)


# Files that must stay as they are.


def _unchanged(context: CheckContext) -> Iterator[Result]:
    workspace = context.workspace
    new_files = {file.path for file in workspace.touched if file.change == "made"}
    for pattern in context.value:
        changed = [file for file in workspace.changed if matches(file.path, pattern)]
        if changed:
            yield False, f"{_name(changed[0])}: {changed[0].change}"
        elif workspace.changes_are_cut:
            yield None, f"{pattern}: {_CUT}"
        elif any(file.path not in new_files for file in workspace.matching(pattern)):
            yield True, f"{pattern}: unchanged"
        else:
            yield None, f"{pattern}: no such file at the start"


UNCHANGED: Final = CheckKind(
    "unchanged", TypeAdapter(Paths), _unchanged, needs_agent=True, of_files=True
)
