"""Tasks of benchmarks: Harbor's task.toml with instruction.md,
and packages with a task.md.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from ..._util.json_forms import FormError, read_form
from ..._util.texts import first_few, one_line
from ...errors import CasesError
from ..case import Case
from ..folder import leads_outside, walk
from ..frontmatter import YAML_ERRORS, read_yaml
from ..loaded_cases import LoadedCases, numbered
from ..task_folders import (
    CONFIG_NAME,
    DOCUMENT_NAME,
    ENVIRONMENT,
    SKILLS,
    SOLUTIONS,
    VERIFIERS,
    has_skills,
    skills_folder,
    task_file,
    task_id,
    tasks_at,
)
from ..task_forms import MOST_SECONDS
from .suite import Suite, Written, read_cases
from .yaml_files import (
    LeftOut,
    broken_by,
    good_tags,
    problem_at,
    read_document,
    read_text,
)

_INSTRUCTION_NAME: Final = "instruction.md"
_DOCKERFILE: Final = f"{ENVIRONMENT}/Dockerfile"
_COMPOSE_NAMES: Final = (
    *("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"),
)
_VERIFIER_DOCUMENT: Final = "verifier.md"
_VERSIONS: Final = ("0.0", "1.0", "1.1", "1.2", "1.3", "1.4")
# Characters of a task.toml; the time to read one is not linear
_LONGEST: Final = 50_000
_VERIFIER_SECONDS: Final = 600.0  # if a task does not say
_FOR_AGENTS: Final = "a task of a benchmark is for agents"
_CANARY: Final = re.compile(
    r"\A(?:\s*(?:<!--(?=[^>]*canary)[^>]*-->|#[^\n]*canary[^\n]*))+", re.I
)
_SECTION: Final = re.compile(
    r"^##\s+(prompt|(?:role|scene):[\w.-]+|user-persona)\s*$", re.I | re.M
)
_HOST_VALUE: Final = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", re.I)
_MEGABYTES: Final = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
_OWN_SERVICE: Final = "main"
_PRIVILEGES: Final = ("privileged", "devices", "cap_add", "pid", "runtime")


def _megabytes(value: Any) -> Any:
    size = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return round(float(size[1]) * _MEGABYTES[size[2].upper()]) if size else value


Megabytes = Annotated[int, Field(gt=0), BeforeValidator(_megabytes)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Form(BaseModel):
    """A part of a task; keys that it does not know are ignored, as Harbor does."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class _EnvironmentForm(_Form):
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_mb: Megabytes | None = None
    storage_mb: Megabytes | None = None
    memory: Megabytes | None = None  # up to schema 1.0
    storage: Megabytes | None = None
    gpus: int | None = None
    tpu: Any = None
    mcp_servers: list[Any] = Field(default_factory=list)
    setup_commands: list[Any] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    skills_dir: str | None = None
    workdir: str | None = None


class _VerifierForm(_Form):
    timeout_sec: Annotated[Seconds, Field(le=MOST_SECONDS)] = _VERIFIER_SECONDS
    env: dict[str, str] = Field(default_factory=dict)
    type: str = "test-script"
    environment_mode: str | None = None
    sandbox_mode: str | None = None
    environment: Any = None
    sandbox: Any = None
    collect: list[Any] = Field(default_factory=list)


class _AgentForm(_Form):
    timeout_sec: Seconds | None = None


class _SolutionForm(_Form):
    env: dict[str, str] = Field(default_factory=dict)


class _TaskForm(_Form):
    """What a task.toml or the frontmatter of a task.md says."""

    schema_version: Any = None
    version: Any = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    task: dict[str, Any] = Field(default_factory=dict)
    agent: _AgentForm = Field(default_factory=_AgentForm)
    verifier: _VerifierForm = Field(default_factory=_VerifierForm)
    environment: _EnvironmentForm = Field(default_factory=_EnvironmentForm)
    solution: _SolutionForm = Field(default_factory=_SolutionForm)
    steps: list[Any] = Field(default_factory=list)
    scenes: list[Any] = Field(default_factory=list)
    agents: dict[str, Any] = Field(default_factory=dict)
    user: Any = None


_FORM: Final = TypeAdapter(_TaskForm)
# Names in a task.md of what has another name in a task.toml.
_NAMES_IN_DOCUMENT: Final = {"sandbox": "environment", "oracle": "solution"}


def harbor_suite(path: Path, folder: Path) -> Suite | None:
    """A task or a folder of tasks; None if the path is of another form."""
    del folder  # a task names files of its own
    if path.is_file() and path.name not in (CONFIG_NAME, DOCUMENT_NAME):
        return None
    tasks = tasks_at(path)
    if not tasks:
        return None
    names = numbered([task_id(task) for task in tasks])
    files = [_loaded(task, name) for task, name in zip(tasks, names, strict=True)]
    return Suite(path, path if path.is_dir() else path.parent, tuple(files))


def _loaded(folder: Path, name: str) -> LoadedCases[Case]:
    """A task is read once, as long as its files are as they were."""
    stamps = [
        (str(file), stat.st_mtime_ns, stat.st_size)
        for inside, _, names in walk(folder)
        for file in (inside / name for name in names)
        if (stat := file.lstat())
    ]
    return _read_once(folder, name, tuple(stamps))


@lru_cache(maxsize=1024)
def _read_once(
    folder: Path,
    name: str,
    stamps: tuple[object, ...],  # noqa: ARG001
) -> LoadedCases[Case]:
    file, left_out = task_file(folder), LeftOut()
    try:
        case = {"id": name, **_TaskFolder.read(folder, left_out).case()}
        written = Written((), 1, case, name, needs_agent=_FOR_AGENTS, is_task=True)
        loaded = replace(read_cases(file, [written], folder), folder=folder)
    except CasesError as error:
        return broken_by(file, name, error)
    return replace(loaded, warnings=(*loaded.warnings, *left_out.warnings))


@dataclass(frozen=True)
class _TaskFolder:
    """A task: its folder, what its file says, and its instruction."""

    folder: Path
    file: Path
    form: _TaskForm
    instruction: str
    left_out: LeftOut

    @classmethod
    def read(cls, folder: Path, left_out: LeftOut) -> "_TaskFolder":
        """CasesError says what is wrong with its files."""
        file = task_file(folder)
        _require_own(folder, file)
        if file.name == CONFIG_NAME:
            text = read_text(file)
            if len(text) > _LONGEST:
                raise problem_at(
                    file, 1, f"{len(text):,} characters (limit {_LONGEST:,})"
                )
            data, lines = _toml(file, text), text
            instruction_file = folder / _INSTRUCTION_NAME
            if not instruction_file.is_file():
                raise problem_at(
                    file, 1, f"{_INSTRUCTION_NAME} is missing: write what to do there"
                )
            _require_own(folder, instruction_file)
            instruction = read_text(instruction_file)
        else:
            document, instruction_file = read_document(file), file
            lines, instruction = read_text(file), _prompt(document.body)
            data = {
                _NAMES_IN_DOCUMENT.get(key, key): v
                for key, v in document.values.items()
            }
        try:
            form: _TaskForm = read_form(_FORM, data)
        except FormError as error:
            (place, problem), *_ = error.problems
            keys = [str(step) for step in place]
            line = _line_of(lines, keys[-1] if keys else "")
            raise problem_at(file, line, f"{'.'.join(keys)}: {problem}") from None
        instruction = _CANARY.sub("", instruction).strip()
        if not instruction:
            raise problem_at(instruction_file, 1, "no instruction: write what to do")
        return cls(folder, file, form, instruction, left_out)

    def case(self) -> dict[str, Any]:
        """In the form of skill_meta.json; CasesError says what is missing."""
        form, left_out = self.form, self.left_out
        version = str(form.schema_version or form.version or _VERSIONS[1])
        if version not in _VERSIONS:
            left_out.change(
                f"schema {one_line(version, 20)} is not known, and read as if it were"
            )
        verifier, skip = self._verifier()
        case = {
            "input": self.instruction,
            "tags": self._tags(),
            "timeout": form.agent.timeout_sec,
            "skip": self._why_skipped() or skip,
            "sandbox": self._sandbox(),
            "skills": self._skills(),
            "reference": self._reference(),
            "expected": {"verifier": verifier},
        }
        return {
            key: value for key, value in case.items() if value not in (None, [], "")
        }

    def _tags(self) -> list[str]:
        metadata, task = self.form.metadata, self.form.task
        written = [metadata.get(key) for key in ("difficulty", "category")]
        for values in (metadata.get("tags"), task.get("keywords")):
            written += values if isinstance(values, list) else [values]
        return good_tags(
            [tag for tag in written if isinstance(tag, str) and tag], LeftOut()
        )

    def _verifier(self) -> tuple[dict[str, Any], str]:
        """How the result is checked; or why that is not possible here."""
        form = self.form.verifier
        names = [name for name in VERIFIERS if (self.folder / name).is_dir()]
        name = (
            names[-1]
            if self.file.name == DOCUMENT_NAME and names
            else (names or ["tests"])[0]
        )
        run, skip = f"{name}/test.sh", ""
        if (document := self.folder / name / _VERIFIER_DOCUMENT).is_file():
            _require_own(self.folder, document)
            run, skip = _strategy(document, run)
        if form.type != "test-script":
            skip = (
                f"its verifier is of the type {one_line(form.type, 40)}, not a script"
            )
        if not skip and not (self.folder / run).is_file():
            raise problem_at(self.file, 1, f"no verifier: {run} is missing")
        env = self._values(form.env, "verifier.env")
        return {"run": run, "timeout": form.timeout_sec, "env": env}, skip

    def _why_skipped(self) -> str:
        """Why the task can't run here; empty if it can."""
        form, environment = self.form, self.form.environment
        verifier = form.verifier
        roles = form.agents.get("roles")
        reasons = {
            "it has several steps": (
                len(form.steps) > 0 or (self.folder / "steps").is_dir()
            ),
            "it has several scenes": len(form.scenes) > 1,
            "it has several agents": isinstance(roles, dict) and len(roles) > 1,
            "it has a simulated user": bool(form.user),
            f"it needs {environment.gpus} GPU": bool(environment.gpus),
            "it needs a TPU": bool(environment.tpu),
            "it needs MCP servers": bool(environment.mcp_servers),
            "it has setup commands": bool(environment.setup_commands),
            f"it needs {one_line(environment.os, 20)}": (
                environment.os.lower() != "linux"
            ),
            "its verifier needs an environment of its own": bool(
                verifier.environment or verifier.sandbox or verifier.collect
            ),
        }
        return (
            next((reason for reason, is_so in reasons.items() if is_so), "")
            or self._compose()
        )

    def _compose(self) -> str:
        """Why the services of a compose file are needed;
        empty if its own container is all.
        """
        for name in _COMPOSE_NAMES:
            file = self.folder / ENVIRONMENT / name
            if not file.is_file():
                continue
            _require_own(self.folder, file)
            try:
                services = read_yaml(read_text(file))[1]["services"]
                others = sorted(set(map(str, services)) - {_OWN_SERVICE})
                own = services.get(_OWN_SERVICE) or {}
            except (*YAML_ERRORS, yaml.YAMLError, TypeError, KeyError, AttributeError):
                return f"{name} can't be read"
            if others:
                return f"it needs docker compose, for {first_few(others, 3)}"
            if privileges := [key for key in _PRIVILEGES if key in own]:
                return f"it needs docker compose, for {privileges[0]}"
        return ""

    def _sandbox(self) -> dict[str, Any]:
        form = self.form.environment
        dockerfile = (self.folder / _DOCKERFILE).is_file()
        sandbox = {
            "workdir": form.workdir,
            "env": self._values(form.env, "environment.env"),
            "image": form.docker_image or None,
            "dockerfile": _DOCKERFILE if dockerfile else None,
            "build_timeout": form.build_timeout_sec if dockerfile else None,
            "memory_mb": form.memory_mb or form.memory,
            "storage_mb": form.storage_mb or form.storage,
            "cpus": form.cpus,
        }
        return {key: value for key, value in sandbox.items() if value not in (None, {})}

    def _skills(self) -> str | None:
        top = skills_folder(self.folder)
        _require_own(self.folder, top)
        for folder, folders, names in walk(top):
            for name in (*folders, *names):
                _require_own(self.folder, folder / name)
        return SKILLS if has_skills(self.folder) else None

    def _reference(self) -> dict[str, Any] | None:
        for name in reversed(SOLUTIONS):
            if (self.folder / name / "solve.sh").is_file():
                env = self._values(self.form.solution.env, "solution.env")
                return {"run": f"{name}/solve.sh", "env": env}
        return None

    def _values(self, env: Mapping[str, str], place: str) -> dict[str, str]:
        """Variables without values of this machine, which may be keys."""
        values = {}
        for name, value in env.items():
            match = _HOST_VALUE.fullmatch(value.strip())
            values[name] = (match[2] or "") if match else value
            if match and not match[2]:
                self.left_out.change(
                    f"{place}: {name} is empty, as no key leaves this machine"
                )
        return values


def _require_own(folder: Path, path: Path) -> None:
    """A link could lead to a file of the user's, which a model would be told."""
    if leads_outside(folder, path):
        raise problem_at(
            path, 1, "a link out of the task's folder: copy what it leads to"
        )


def _strategy(document: Path, usual: str) -> tuple[str, str]:
    """The script of a verifier.md; or why there is none."""
    verifier = read_document(document).values.get("verifier")
    verifier = verifier if isinstance(verifier, dict) else {}
    strategies = verifier.get("strategies")
    chosen = (
        strategies.get(verifier.get("default_strategy"))
        if isinstance(strategies, dict)
        else 0
    )
    if not isinstance(chosen, dict):
        return usual, ""
    kind, command = (
        chosen.get("type", "script"),
        str(chosen.get("command") or "./test.sh"),
    )
    script = re.fullmatch(
        r"(?:bash\s+|sh\s+)?(?:\./|/verifier/|/tests/)?([\w./-]+\.sh)", command
    )
    if kind != "script" or not script:
        return (
            usual,
            f"its verifier is of the type {one_line(str(kind), 40)}, not a script",
        )
    return f"{document.parent.name}/{script[1]}", ""


def _toml(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        at = re.search(r"\(at line (\d+)", str(error))
        problem = re.sub(r" \(at .*\)$", "", str(error)) or "nested too deeply"
        line = int(at[1]) if at else text.count("\n") + 1
        raise problem_at(
            file, line, f"invalid TOML: {one_line(problem, 200)}"
        ) from None


def _line_of(text: str, key: str) -> int:
    """The first line that sets a key."""
    match = (
        re.search(rf"^[ \t\"]*{re.escape(key)}\"?\s*[=:]", text, re.M) if key else None
    )
    return text.count("\n", 0, match.start()) + 1 if match else 1


def _prompt(body: str) -> str:
    """The instruction in the body of a task.md."""
    sections = list(_SECTION.finditer(body))
    for number, section in enumerate(sections):
        if section[1].lower() == "prompt":
            ends = [later.start() for later in sections[number + 1 :]]
            return body[section.end() : ends[0] if ends else len(body)].strip()
    return body[: sections[0].start()] if sections else body
