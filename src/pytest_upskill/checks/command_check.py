"""``command``: run after the agent, in a copy of its workspace, in a separate sandbox.

The sandbox has what the skill's scripts need, but neither the skill nor a network, so
both arms are graded alike. The agent's code may run in it, imported by a hidden test,
say: so pytest has to report its end, and what could steer it is left out.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from .._util.texts import end_of, one_line, plain
from ..agents.needs import spec_for
from ..agents.sandboxes.sandbox import (
    CommandResult,
    Sandbox,
    SandboxError,
)
from ..agents.snapshot import Snapshot, fill, unpack
from ..agents.task_sandbox import TaskSandbox, sandbox_for
from ..errors import CheckError
from ..skills.case import SandboxNeeds, WorkspaceFile
from ..skills.folder import mode_of, read_skill_bytes
from ..skills.task_forms import FileOfSkill, TextOrFile
from .check import CheckContext, CheckKind, Result, Text, quoted
from .file_checks import Condition, ConditionsForm, conditions_in, results_in
from .final_workspace import OWN_GIT, Run, WorkspaceCommand, relative
from .pytest_report import FOLDER, PytestReport, runs_pytest
from .time_budget import not_counted

_T = TypeVar("_T")
_DEFAULT_SECONDS: Final = 60.0
_MOST_SECONDS: Final = 3600.0
_SETUP_SECONDS: Final = 120.0  # seconds
_SHOWN: Final = 160  # characters of the output
# Stands in hidden files for a word that none can know
_LAST_WORD: Final = b"UPSKILL_LAST_WORD"
_NO_LAST_WORD: Final = "it ended without its last word"
# Settings of the agent's could leave hidden tests out.
_OWN_OPTIONS: Final = "-o addopts= -o python_classes=Test -o python_functions=test"


class CommandForm(ConditionsForm):
    """A command that is run in a copy of the workspace.
    Its output is checked like an answer.
    """

    run: Text = Field(description="A command line for the shell, such as 'pytest -q'.")
    exit: int | None = Field(
        0, description="The exit status that it must have (default: 0); null for any."
    )
    timeout: Annotated[float, Field(gt=0, le=_MOST_SECONDS)] = Field(
        _DEFAULT_SECONDS, description="Seconds that it may take (default: 60)."
    )
    hidden_files: dict[Annotated[Text, AfterValidator(relative)], TextOrFile] | None = (
        Field(
            None,
            description=(
                "Files that the agent must not see, added first: path → text, or path →"
                ' {"file": "path in the skill\'s folder"}. The text UPSKILL_LAST_WORD'
                " in them becomes a word that the output must have."
            ),
        )
    )
    keep: list[Annotated[Text, AfterValidator(relative)]] | None = Field(
        None,
        description=(
            "Files of the agent that would be left out because they can steer the"
            " hidden ones, such as conftest.py, and may stay."
        ),
    )


class CommandCheck(NamedTuple):
    """A command, and what is asked of its exit status and output."""

    command: WorkspaceCommand
    output: tuple[Condition, ...]


def command_kind(folder: Path | None = None) -> CheckKind:
    """``command`` of a skill in ``folder``, whose files may be added."""

    def command_checks(forms: list[CommandForm]) -> list[CommandCheck]:
        return [_command_check(form, folder) for form in forms]

    argument: TypeAdapter[Any] = TypeAdapter(
        Annotated[
            list[CommandForm],
            Field(min_length=1),
            BeforeValidator(
                _as_forms,
                json_schema_input_type=Text | CommandForm | list[Text | CommandForm],
            ),
            AfterValidator(command_checks),
        ]
    )
    return CheckKind("command", argument, _command, needs_agent=True, of_files=True)


def _as_forms(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    return [{"run": item} if isinstance(item, str) else item for item in items]


def _command_check(form: CommandForm, folder: Path | None) -> CommandCheck:
    output = conditions_in(form)
    if form.exit is None and not output:
        raise ValueError(
            f"{quoted(form.run)}: with any exit status, every answer would pass"
        )
    hidden_files = (form.hidden_files or {}).items()
    hidden = tuple(_hidden(path, text, folder) for path, text in hidden_files)
    keep = tuple(form.keep or ())
    command = WorkspaceCommand(
        form.run, form.timeout, hidden, keep=keep, exit=form.exit
    )
    return CommandCheck(command, output)


def _hidden(
    path: str, content: str | FileOfSkill, folder: Path | None
) -> WorkspaceFile:
    if isinstance(content, str):
        return WorkspaceFile(path, content.encode("utf-8", "replace"))
    if folder is None:
        raise ValueError(f"{quoted(content.file)} is in no skill's folder")
    data = read_skill_bytes(folder, content.file)
    return WorkspaceFile(path, data, mode_of(folder / content.file))


def _command(context: CheckContext) -> Iterator[Result]:
    for check in context.value:
        name = one_line(check.command.run, 60)
        if context.why_not_gradable:
            ran = CommandResult(0, b"")
        else:
            with not_counted():
                ran = context.workspace.run(check.command)
        text = ran.output.decode("utf-8", "replace")
        if check.command.exit is not None:
            passed, reason = _ended(ran, check.command)
            end = "" if passed else end_of(text, _SHOWN)
            left_out = (
                "" if passed else ", ".join(context.workspace.left_out(check.command))
            )
            reason += f"; left out: {one_line(left_out, 60)}" if left_out else ""
            yield passed, f"{name}: {reason}{f'; it said: {end}' if end else ''}"
        for condition in check.output:
            for passed, reason in results_in(text, "its output", condition, context):
                yield passed and not ran.problem, f"{name}: {ran.problem or reason}"


def _ended(ran: CommandResult, command: WorkspaceCommand) -> Result:
    if ran.timed_out:
        return False, f"no end within {plain(command.timeout)} s"
    if ran.problem:
        return False, ran.problem
    passed = ran.exit == command.exit
    return passed, ran.status if passed else f"{ran.status}, not {command.exit}"


def commands_in(
    sandbox: str, image: str, needs: SandboxNeeds, start: Sequence[WorkspaceFile] = ()
) -> Run:
    """Runs commands in sandboxes of a kind, by its name,
    with what a skill's scripts need.

    ``start`` has the files that the trial started with.
    """

    def run(packed: bytes, command: WorkspaceCommand) -> CommandResult:
        try:
            place = sandbox_of(needs, sandbox, image)
            given = place.start(needs, start).files if place.is_own else start
            return wait_for(_ran(place, needs, unpack(packed, given), command))
        except (SandboxError, ValueError) as error:
            raise CheckError(
                f"the command can't be run: {one_line(str(error), 300)}"
            ) from None
        except TimeoutError:
            raise CheckError("the sandbox of a command was not ready in time") from None

    return run


@lru_cache(maxsize=64)
def sandbox_of(needs: SandboxNeeds, name: str, image: str) -> TaskSandbox:
    return sandbox_for(needs, name, image)


async def _ran(
    place: TaskSandbox,
    needs: SandboxNeeds,
    snapshot: Snapshot,
    command: WorkspaceCommand,
) -> CommandResult:
    async with asyncio.timeout(command.timeout + _SETUP_SECONDS):
        needs = place.needs_inside(needs)._replace(network=False)
        spec = await asyncio.to_thread(spec_for, needs)
        word = secrets.token_hex(8).encode()
        hidden = tuple(
            replace(f, data=f.data.replace(_LAST_WORD, word)) for f in command.hidden
        )
        sandbox = await place.kind.open(spec)
        try:
            await fill(sandbox, _with_hidden(snapshot, hidden, command.left_out))
            env = _environment(sandbox, hidden)
            if runs_pytest(command.run):
                ran = await _with_report(sandbox, command, env)
            else:
                ran = await sandbox.run(command.run, timeout=command.timeout, env=env)
        finally:
            await sandbox.close()
        if hidden == command.hidden or word in ran.output:
            return replace(ran, output=ran.output.replace(word, b""))
        return replace(ran, problem=_NO_LAST_WORD)


async def _with_report(
    sandbox: Sandbox, command: WorkspaceCommand, env: dict[str, str]
) -> CommandResult:
    """Run a command that runs pytest, which must report its end."""
    report = PytestReport(sandbox)
    env = {**env, **await report.prepare(command.run)}
    folder = sandbox.path(FOLDER)
    # An image may have a PYTHONPATH of its own; that of the command is added later.
    first_line = f'export PYTHONPATH="{folder}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
    run = command.run.replace("PYTHONPATH=", "UPSKILL_PATH=")
    ran = await sandbox.run(first_line + run, timeout=command.timeout, env=env)
    is_over = ran.timed_out or ran.problem or command.exit not in (None, ran.exit)
    if is_over:
        return ran

    return replace(ran, problem=await report.problem(command.exit))


def _environment(sandbox: Sandbox, hidden: tuple[WorkspaceFile, ...]) -> dict[str, str]:
    """By which Python, pytest and git read nothing of the agent's
    that they were not told to.
    """
    env = {
        **OWN_GIT,
        "PYTHONNOUSERSITE": "1",
        "PYTHONPYCACHEPREFIX": sandbox.path("/tmp/pycache"),  # not the agent's bytecode
    }
    if hidden:
        env["PYTEST_ADDOPTS"] = _OWN_OPTIONS
    return env


def _with_hidden(
    snapshot: Snapshot, hidden: tuple[WorkspaceFile, ...], left_out: Sequence[str] = ()
) -> Snapshot:
    """Hidden files replace what the agent left in their place,
    or what Python prefers to them.
    """
    taken = {file.path for file in hidden}
    modules = tuple(path.removesuffix("py") for path in taken if path.endswith(".py"))
    above = {
        path[:at] for path in taken for at, letter in enumerate(path) if letter == "/"
    }

    def is_free(path: str, *, folder: bool = False) -> bool:
        packages = [module[:-1] for module in modules]
        is_below = any(path.startswith(f"{place}/") for place in (*taken, *packages))
        is_module = path.endswith((".so", ".pyd", ".pyc")) and path.startswith(modules)
        free = (
            path not in taken
            and path not in left_out
            and not is_below
            and not is_module
        )
        return free and (folder or path not in above)

    return Snapshot(
        (*(file for file in snapshot.files if is_free(file.path)), *hidden),
        tuple(link for link in snapshot.links if is_free(link.path)),
        tuple(path for path in snapshot.folders if is_free(path, folder=True)),
    )


def wait_for(running: Coroutine[Any, Any, _T]) -> _T:
    """Wait for the result; in another thread if a loop is running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(running)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, running).result()
