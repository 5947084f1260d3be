"""Rules for the checks of cases: are they valid, can they pass,
and do they measure anything?

Parsed checks have no position, so ``expected`` is walked as written.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from .._util.json_forms import FormError, Location
from .._util.texts import counted, guess
from ..agents.loop_tools import TOOLS
from ..checks import (
    AnyCheck,
    Check,
    CheckedCase,
    CheckKind,
    checks_of,
    grade,
    rubric_of,
    walk,
)
from ..checks.check import CheckContext, Result, Text, quoted
from ..checks.final_workspace import matches
from ..checks.group import COMBINING, RESERVED
from ..checks.kinds import KINDS, TAKEN, kinds_of_skill
from ..checks.languages import BrokenError, parse_python
from ..checks.parse import with_checks
from ..checks.python_checks import place_of_function
from ..errors import CasesError, CheckError, Setting, shown
from ..skills.case import Case
from ..skills.folder import installed_files, read_skill_file
from ..skills.kinds import kinds_by_agent, rules_of
from ..skills.loaded_cases import LoadedCases
from ..skills.suites.suite import Suite
from ..trials.answer import Answer, Usage
from ..trials.trial import start_files, user_text
from .finding import CasesSource, Finding, Level

_MAX_DEPTH: Final = 10  # the parser rejects deeper nesting
_WHOLE_WORDS_BELOW: Final = 4  # characters: "know" contains "no" by chance
_TEXT_CHECKS: Final = (
    "contains",
    "contains_any",
    "words",
    "equals",
    "starts_with",
    "ends_with",
)
_NONSENSE: Final = (
    "I do not know.",
    "Yes",
    (
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor"
        " incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam, quis"
        " nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat."
    ),
)
_SKILL_TOOL: Final = "skill"  # our agent's tool that loads a skill
_MCP: Final = "mcp__"  # of servers that have mocks
_TOOLS: Final = tuple(tool.name for tool in TOOLS)
_TOOL_CHECKS: Final = ("tools_used", "tool_order")
_FILE_VERBS: Final = {"references_read": "read", "scripts_run": "run"}


@dataclass(frozen=True)
class WrittenCheck:
    """A check as written in the file, with its path in the case."""

    place: Location
    name: str
    argument: Any = None
    case_sensitive: bool = False
    required: bool = True
    wanted: bool = True  # False inside ``not``

    @property
    def texts(self) -> list[Any]:
        return self.argument if isinstance(self.argument, list) else [self.argument]


def written_checks(
    expected: Any, group: WrittenCheck | None = None
) -> Iterator[WrittenCheck]:
    """Every check of ``expected``, including those inside ``any_of`` and the like.

    Skips whatever is not a group; the parser reports that.
    """
    group = group or WrittenCheck(("expected",), "")
    if len(group.place) > 2 * _MAX_DEPTH:
        return
    if isinstance(expected, list):
        for number, item in enumerate(expected):
            yield from written_checks(item, _inside(group, number))
    elif isinstance(expected, dict):
        if expected.get("case_sensitive") is not None:
            group = replace(group, case_sensitive=expected["case_sensitive"] is True)
        if expected.get("required") is False:
            group = replace(group, required=False)
        for name, argument in expected.items():
            if name in COMBINING:
                yield from written_checks(argument, _inside(group, name))
            elif name not in RESERVED and argument is not None:
                yield _inside(group, name, argument)


def _inside(group: WrittenCheck, step: str | int, argument: Any = None) -> WrittenCheck:
    return replace(
        group,
        place=(*group.place, step),
        name=str(step),
        argument=argument,
        wanted=group.wanted and step != "not",
    )


def runnable_cases(suite: Suite) -> list[LoadedCases[CheckedCase]]:
    """The cases of a suite; those are broken that can't run,
    whatever a conftest.py registers.

    CasesError if it can't be read as a whole.
    """

    def parsed(case: Case) -> tuple[AnyCheck, ...]:
        unknown = [
            name for name, _ in _unregistered(case, list(written_checks(case.expected)))
        ]
        return _parsed(case, unknown, suite.folder)

    return [with_checks(of_file, parsed) for of_file in suite.require().files]


def check_findings(
    source: CasesSource, cases: Sequence[Case], folder: Path
) -> Iterator[Finding]:
    """A mistake in the defaults is found in every case; the caller drops the
    repeats.
    """
    unknown = set[str]()
    for case in cases:
        written = list(written_checks(case.expected))
        for name, place in _unregistered(case, written):
            if name not in unknown:
                unknown.add(name)
                message = f"unknown check {quoted(name)}{guess(name, TAKEN)}"
                hint = (
                    "Ignore this if a conftest.py registers it; lint does not read"
                    " conftest.py."
                )
                yield source.finding("warning", "check-unknown", place, message, hint)
        try:
            checks = _parsed(case, unknown, folder)
        except FormError as error:
            for place, problem in error.problems:
                yield source.invalid(case.place_of(*place), problem)
            continue
        for text, place in leaked_texts(case, written):
            message = f"{case.id}: the question already contains {quoted(text)}"
            hint = "Reword the question, or expect something that only the skill says."
            yield source.finding(
                "warning", "leak", case.place_of(*place), message, hint
            )
        yield from _agent_findings(source, case, checks, written, folder)
        for kind in kinds_by_agent().values():
            yield from rules_of(kind).find_mistakes(source, case, checks)
        if any_answer_passes(checks):
            message = f"{case.id}: any answer passes, even nonsense"
            hint = (
                'Check for something the answer must say, for example with "contains".'
            )
            yield source.finding("warning", "any-answer", case.place, message, hint)


def judge_findings(suite: Suite) -> Iterator[Finding]:
    """What there is to say if no judge is set."""
    try:
        loaded = runnable_cases(suite)
    except CasesError:  # of the defaults, which is told
        return
    judged = [
        (of_file.file, case)
        for of_file in loaded
        for case, checks in of_file.cases
        if rubric_of(checks).texts
    ]
    if judged:
        file, case = judged[0]
        message = f"{counted(len(judged), 'case')} with a rubric, but no judge is set"
        fix = (
            "Name a judge: skill_judge in pytest's ini file, or ",
            Setting("judge"),
            " MODEL.",
        )
        yield Finding(shown(file), case.line, "warning", "no-judge", message, fix)


def _unregistered(
    case: Case, written: Sequence[WrittenCheck]
) -> Iterator[tuple[str, Location]]:
    for check in written:
        if check.name not in TAKEN:
            yield check.name, case.place_of(*check.place)
    if case.validator and case.validator[0] not in TAKEN:
        yield case.validator[0], case.place_of("validator")


def _parsed(case: Case, unknown: Iterable[str], folder: Path) -> tuple[AnyCheck, ...]:
    """Unknown checks take any argument; Python checks are parsed, not loaded."""
    registered = {name: CheckKind(name, TypeAdapter(Any), _not_run) for name in unknown}
    kinds = {
        **KINDS,
        **kinds_of_skill(folder),
        **registered,
        "python": _python_kind(folder),
    }
    return checks_of(case, kinds, registered)


def _not_run(_: CheckContext) -> Iterator[Result]:
    yield None, "not run by lint"


def _python_kind(folder: Path) -> CheckKind:
    def inspected(written: str) -> str:
        file, function = place_of_function(folder, written)
        source = read_skill_file(folder, written.rpartition(":")[0])
        try:
            names = set(_names_of(parse_python(source)))
        except BrokenError as error:
            raise ValueError(f"{quoted(file.name)}: {error}") from None
        if function not in names and "*" not in names:
            raise ValueError(f"{quoted(file.name)} has no function {function!r}")
        return written

    return CheckKind(
        "python", TypeAdapter(Annotated[Text, AfterValidator(inspected)]), _not_run
    )


def _names_of(module: ast.Module) -> Iterator[str]:
    """Names bound at module level."""
    nodes: list[ast.AST] = [module]
    while nodes:
        match node := nodes.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.alias():
                yield node.asname or node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case _:
                nodes.extend(ast.iter_child_nodes(node))


def leaked_texts(
    case: Case, written: Iterable[WrittenCheck] | None = None
) -> list[tuple[str, Location]]:
    """Expected texts that already appear in the question,
    each with its path in the case.
    """
    question = "\n".join(
        [case.system or "", *(text for _, text in case.earlier), user_text(case)]
    )
    leaks: list[tuple[str, Location]] = []
    for check in written_checks(case.expected) if written is None else written:
        if check.name not in _TEXT_CHECKS or not (check.required and check.wanted):
            continue
        for number, text in enumerate(check.texts):
            if _appears_in(question, text, check.case_sensitive):
                inside = (number,) if isinstance(check.argument, list) else ()
                leaks.append((text, (*check.place, *inside)))
    return leaks


def _appears_in(question: str, text: str, case_sensitive: bool) -> bool:
    kind = KINDS["words" if len(text.strip()) < _WHOLE_WORDS_BELOW else "contains"]
    (result,) = grade([Check(kind, [text.strip()], case_sensitive)], Answer(question))
    return result.passed


def any_answer_passes(checks: Sequence[AnyCheck]) -> bool:
    """Whether nonsense passes; False if a judge or a function decides."""
    required = [check for check in checks if check.required]
    plain_kinds = set(KINDS.values()) - {KINDS["judge"]}
    if any(check.kind not in plain_kinds for check in walk(required)):
        return False
    try:
        return all(
            result.passed
            for text in _NONSENSE
            for result in grade(
                required, Answer(text, Usage(1, len(text.split()), 0), seconds=1.0)
            )
        )
    except CheckError:
        return False


# Checks of agents: can they pass, and do they give the answer away?


def _agent_findings(
    source: CasesSource,
    case: Case,
    checks: Sequence[AnyCheck],
    written: Iterable[WrittenCheck],
    folder: Path,
) -> Iterator[Finding]:
    for check in written:
        for code, message, hint in _agent_problems(case, check, folder):
            level: Level = "error" if code == "check-impossible" else "warning"
            place = case.place_of(*check.place)
            yield source.finding(level, code, place, f"{case.id}: {message}", hint)
    required = [
        check.kind for check in walk(check for check in checks if check.required)
    ]
    if required and all(kind.of_skill for kind in required):
        message = f"{case.id}: nothing is asked of the baseline, so it always passes"
        hint = "Also check what the answer says or which files there are."
        yield source.finding(
            "warning", "baseline-passes", case.place_of(), message, hint
        )


def _agent_problems(
    case: Case, check: WrittenCheck, folder: Path
) -> Iterator[tuple[str, str, str]]:
    """The code, message and hint of each problem."""
    if check.name in _TOOL_CHECKS and check.wanted:
        yield from _tool_problems(check)
    elif check.name in _FILE_VERBS and check.wanted:
        yield from _skill_file_problems(check, folder)
    elif check.name == "unchanged" and not case.setup:
        yield from _unchanged_problems(case, check)
    elif check.name in ("files", "command"):
        yield from _expected_file_problems(check, folder)


def _tool_problems(check: WrittenCheck) -> Iterator[tuple[str, str, str]]:
    for name in _wanted_tools(check):
        if name.casefold() == _SKILL_TOOL:
            message = f"the baseline has no tool {quoted(name)}, so it always fails"
            yield "tool-unknown", message, 'Use "skill_activated": true.'
        elif name.casefold() not in _TOOLS and not name.startswith(_MCP):
            message = f"the agent loop has no tool {quoted(name)}{guess(name, _TOOLS)}"
            tools = ", ".join(_TOOLS)
            hint = f"It has {tools}. Ignore this if the case is for another agent."
            yield "tool-unknown", message, hint


def _skill_file_problems(
    check: WrittenCheck, folder: Path
) -> Iterator[tuple[str, str, str]]:
    files = installed_files(folder)
    verb = _FILE_VERBS[check.name]
    for path in check.texts:
        if path.removeprefix("./") not in files:
            message = f"no answer passes: {quoted(path)} is not a file of the skill"
            hint = f"Name a file that can be {verb}, relative to the skill."
            yield "check-impossible", message + guess(path, list(files)), hint


def _unchanged_problems(
    case: Case, check: WrittenCheck
) -> Iterator[tuple[str, str, str]]:
    start = [file.path for file in start_files(case)]
    for pattern in check.texts:
        if not any(matches(path, pattern.removeprefix("./")) for path in start):
            message = (
                f"no answer passes: the workspace starts without {quoted(pattern)}"
            )
            hint = "Name a file of the case: context.files or workspace."
            yield "check-impossible", message + guess(pattern, start), hint


def _expected_file_problems(
    check: WrittenCheck, folder: Path
) -> Iterator[tuple[str, str, str]]:
    files = installed_files(folder)
    for path in _files_named(check.argument):
        if path.removeprefix("./") in files:
            message = f"{quoted(path)} is part of the skill, so an agent may read it"
            hint = (
                "Move it below evals/; here it is left out only if SKILL.md doesn't"
                " name it."
            )
            yield "expected-in-skill", message, hint


def _wanted_tools(check: WrittenCheck) -> Iterator[str]:
    """The tools that have to be called."""
    for call in check.texts:
        if isinstance(call, str):
            yield call
        elif isinstance(call, dict) and call.get("max") != 0 and call.get("min") != 0:
            yield str(call.get("tool", ""))


def _files_named(argument: Any) -> Iterator[str]:
    """Files of the skill that a check compares with, or adds."""
    if isinstance(argument, list):
        for item in argument:
            yield from _files_named(item)
    elif isinstance(argument, dict):
        for form in [argument, *argument.values()]:
            if isinstance(form, dict) and isinstance(form.get("equals_file"), str):
                yield form["equals_file"]
        hidden = argument.get("hidden_files")
        for content in hidden.values() if isinstance(hidden, dict) else ():
            if isinstance(content, dict) and isinstance(content.get("file"), str):
                yield content["file"]
