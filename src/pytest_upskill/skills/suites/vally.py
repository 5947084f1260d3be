"""Evals of Vally: eval.yaml with stimuli and graders."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ..._util.files import read_file, resolved
from ..._util.texts import guess, one_line, slug
from ...errors import CasesError, shown
from ..case import Case
from ..folder import EVAL_SPEC_NAMES, walk
from ..loaded_cases import LoadedCases, numbered
from .suite import Suite, Written, read_cases
from .yaml_files import Document, LeftOut, good_tags, pattern_of, read_yaml_file

_ENDINGS: Final = (".eval.yaml", ".eval.yml", "-eval.yaml", "-eval.yml")
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_STIMULI: Final = re.compile(rb"^stimuli\s*:", re.MULTILINE)
_WORD: Final = re.compile(r"[\w./-]+")
_ALTERNATIVES: Final = re.compile(r"(?:\(\?i\))?\^?\(?([\w./|-]+)\)?\$?")
_SHELLS: Final = ("bash", "sh", "shell", "powershell", "pwsh", "terminal")
_LONGEST_TAG: Final = 40
_SILENT: Final = frozenset(
    {"name", "description", "version", "type", "stimuli", "$schema", "id"}
)
_OF_FILE: Final = _SILENT | {
    "tags",
    "environment",
    "config",
    "defaults",
    "scoring",
    "graders",
}
_CONFIG: Final = frozenset({"runs", "timeout"})
_OF_STIMULUS: Final = (
    _SILENT
    | _CONFIG
    | {"prompt", "turns", "tags", "environment", "constraints", "graders", "config"}
)
_IGNORED: Final = ("completed", "exit-success")  # no answer that is empty passes here
_NOT_HERE: Final = (
    *(
        "pairwise",
        "program",
        "error-count",
        "diff-contains",
        "diff-not-contains",
        "diff-empty",
    ),
    *("token-budget", "tool-call-count", "time-limit"),
)

Config = Mapping[str, Any]
Group = dict[str, Any]


def vally_files(path: Path) -> list[Path]:
    """The eval specs of a folder; or the file, if it is one."""
    if path.is_file():
        return [path] if path.suffix in (".yaml", ".yml") and _has_stimuli(path) else []
    try:
        files = sorted(path.iterdir()) if path.is_dir() else []
    except OSError:
        return []
    named = [f for f in files if f.name in EVAL_SPEC_NAMES or f.name.endswith(_ENDINGS)]
    return [file for file in named if file.is_file() and _has_stimuli(file)]


def _has_stimuli(file: Path) -> bool:
    """Other tools have an eval.yaml, too."""
    try:
        return _STIMULI.search(read_file(file)) is not None
    except OSError:
        return False


def vally_suite(path: Path, folder: Path) -> Suite | None:
    """An eval spec, or all of those in a folder; None if the path is of another
    form.
    """
    files = vally_files(path)
    return (
        Suite(path, folder, tuple(_loaded(file, folder) for file in files))
        if files
        else None
    )


def _loaded(file: Path, folder: Path) -> LoadedCases[Case]:
    spec, left_out = read_yaml_file(file), LeftOut()
    stimuli = spec.values.get("stimuli")
    if not isinstance(stimuli, list) or not stimuli:
        raise spec.error("must be a list of at least one stimulus", "stimuli")
    settings = {**_part(spec.values, "config"), **_part(spec.values, "defaults")}
    scoring = _part(spec.values, "scoring")
    for key in sorted(spec.values.keys() - _OF_FILE):
        left_out.add(key)
    for name, part, read in (
        ("config", settings, _CONFIG),
        ("scoring", scoring, {"weights"}),
    ):
        for key in sorted(part.keys() - read):
            left_out.add(f"{name}.{key}")
    cases = list[dict[str, Any]]()
    for number, stimulus in enumerate(stimuli):
        try:
            case = case_of_stimulus(stimulus, spec, folder, left_out)
        except CasesError as error:
            raise spec.error(f"stimuli[{number}]: {error.problem}", "stimuli") from None
        cases.append(case)
    names = numbered(
        [case.get("id") or f"stimulus-{n}" for n, case in enumerate(cases, 1)]
    )
    line = spec.lines.get("stimuli", 1)
    written = [
        Written((number,), line, {**case, "id": name})
        for number, (case, name) in enumerate(zip(cases, names, strict=True))
    ]
    loaded = read_cases(file, written, folder, foreign=False)
    return replace(loaded, warnings=(*loaded.warnings, *left_out.warnings))


def case_of_stimulus(
    stimulus: Any, spec: Document, folder: Path, left_out: LeftOut
) -> dict[str, Any]:
    """A case in our own form; CasesError says what is wrong with it."""
    if not isinstance(stimulus, dict):
        raise spec.error("must be a mapping")
    for key in sorted(map(str, stimulus.keys() - _OF_STIMULUS)):
        left_out.add(key)
    own = {key: stimulus[key] for key in _CONFIG if key in stimulus} | _part(
        stimulus, "config"
    )
    for key in sorted(own.keys() - _CONFIG):
        left_out.add(f"config.{key}")
    settings = {**_part(spec.values, "config"), **_part(spec.values, "defaults"), **own}
    weights = _part(_part(spec.values, "scoring"), "weights")
    constraints = _part(stimulus, "constraints")
    for key in sorted(constraints.keys() - {"max_turns", "timeout"}):
        left_out.add(f"constraints.{key}")
    graders = [
        *_listed(spec.values, "graders", spec),
        *_listed(stimulus, "graders", spec),
    ]
    files, setup = _environment(stimulus, spec, folder, left_out)
    prompts = _prompts(stimulus, spec)
    if len(prompts) > 1:
        left_out.change(
            "later turns are replies, given if the agent ends with a question"
        )
    runs, timeout = (
        settings.get("runs"),
        constraints.get("timeout", settings.get("timeout")),
    )
    name = slug(str(stimulus.get("name") or ""))
    case = {
        "id": name or None,
        "input": prompts[0],
        "replies": prompts[1:] or None,
        "expected": _expected(graders, weights, spec, left_out),
        "tags": _tags(stimulus.get("tags"), left_out),
        "runs": runs if runs != 0 else None,
        "skip": "runs: 0" if runs == 0 else None,
        "max_turns": constraints.get("max_turns"),
        "timeout": _seconds(timeout, spec) if timeout is not None else None,
        "context": {"files": files} if files else None,
        "setup": setup or None,
    }
    return {key: value for key, value in case.items() if value not in (None, [])}


def _part(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    inside = values.get(key)
    return (
        {str(name): value for name, value in inside.items()}
        if isinstance(inside, dict)
        else {}
    )


def _listed(
    values: Mapping[str, Any], key: str, spec: Document
) -> list[dict[str, Any]]:
    listed = values.get(key) or []
    if not isinstance(listed, list) or not all(
        isinstance(entry, dict) for entry in listed
    ):
        raise spec.error(f"{key} must be a list of mappings")
    return listed


def _prompts(stimulus: Config, spec: Document) -> list[str]:
    turns = stimulus.get("turns") or [stimulus.get("prompt")]
    if not isinstance(turns, list):
        raise spec.error("turns must be a list")
    written = [turn.get("prompt") if isinstance(turn, dict) else turn for turn in turns]
    texts = [text for text in written if isinstance(text, str) and text.strip()]
    if not texts or len(texts) < len(written):
        raise spec.error("no prompt, or an empty one")
    return texts


def _tags(written: Any, left_out: LeftOut) -> list[str]:
    """A mapping of tags becomes marks such as tier-smoke."""
    if not isinstance(written, dict):
        return good_tags(written, left_out)
    tags = list[str]()
    for key, value in written.items():
        values = value if isinstance(value, list) else [value]
        for text in map(str, values):
            if len(text) > _LONGEST_TAG:
                left_out.add(f"tag {key}")
            else:
                tags.append(f"{key}-{text}")
    return good_tags(tags, left_out)


def _seconds(written: Any, spec: Document) -> float:
    match = _DURATION.fullmatch(str(written).strip())
    if not match and not isinstance(written, int | float):
        raise spec.error(f"timeout {written!r} needs a unit: 5m, 300s or 30000ms")
    return float(match[1]) * _UNITS[match[2]] if match else float(written)


def _environment(
    stimulus: Config, spec: Document, folder: Path, left_out: LeftOut
) -> tuple[dict[str, Any], str]:
    """Files of the workspace, and commands that run in it."""
    files, commands = dict[str, Any](), list[str]()
    for environment in (spec.values.get("environment"), stimulus.get("environment")):
        if environment is None:
            continue
        if not isinstance(environment, dict):
            left_out.add("environment by name")
            continue
        for key in sorted(
            map(str, environment.keys() - {"files", "commands", "skills"})
        ):
            left_out.add(f"environment.{key}")
        for key in ("files", "commands"):
            if not isinstance(environment.get(key) or [], list):
                raise spec.error(f"environment.{key} must be a list")
        for entry in environment.get("files") or []:
            files |= dict(_files(entry, spec, folder))
        commands += map(str, environment.get("commands") or [])
    return files, " && ".join(commands)


def _files(entry: Any, spec: Document, folder: Path) -> Iterator[tuple[str, Any]]:
    source = entry.get("src") if isinstance(entry, dict) else entry
    if isinstance(entry, dict) and isinstance(entry.get("content"), str):
        yield str(entry.get("dest") or entry.get("path")), entry["content"]
        return
    found = spec.file.parent / str(source)
    if not isinstance(source, str) or not os.path.exists(found):  # noqa: PTH110 (never raises)
        raise spec.error(f"no such file: {one_line(str(source), 100)}")
    if resolved(folder).is_relative_to(resolved(found)) or resolved(found) == resolved(
        spec.file
    ):
        raise spec.error(f"{source} has the evals, which an agent must not see")
    target = (
        str(entry.get("dest") or found.name) if isinstance(entry, dict) else found.name
    )
    paths = [(target, found)]
    if found.is_dir():
        inside = [top / name for top, _, names in walk(found) for name in sorted(names)]
        base = target.strip("./")
        paths = [
            ("/".join(filter(None, [base, file.relative_to(found).as_posix()])), file)
            for file in inside
        ]
    for name, file in paths:
        try:
            inside_folder = file.resolve().relative_to(folder.resolve()).as_posix()
        except ValueError:
            raise spec.error(f"{source} is outside of {shown(folder)}") from None
        yield name.removeprefix("./"), {"file": inside_folder}


# Graders.


def _expected(
    graders: Sequence[Config], weights: Config, spec: Document, left_out: LeftOut
) -> list[Group] | Group:
    groups = list[Group]()
    for grader in graders:
        kind, config = grader.get("type"), _part(grader, "config")
        if not isinstance(kind, str):
            raise spec.error("a grader has no type")
        if kind in _IGNORED:
            continue
        translate = _KINDS.get(kind)
        if not translate:
            if kind not in _NOT_HERE and (meant := guess(kind, [*_KINDS, *_IGNORED])):
                raise spec.error(f"unknown grader {kind!r}{meant}")
            left_out.add(f"graders of type {kind}")
            continue
        try:
            found = translate(config, left_out)
        except (KeyError, TypeError, ValueError) as error:
            reason = (
                f"{error.args[0]} is missing"
                if isinstance(error, KeyError)
                else str(error)
            )
            raise spec.error(f"grader {kind}: {reason}") from None
        weight = grader.get(
            "weight", weights.get(str(grader.get("name")), weights.get(kind, 1))
        )
        if isinstance(weight, int | float) and weight > 0 and weight != 1:
            found = [g if "with_skill" in g else {**g, "weight": weight} for g in found]
        groups += found
    if not groups:
        groups = [{"min_words": 1}]  # that it completes
    return groups[0] if len(groups) == 1 else groups


Translate = Callable[[Config, LeftOut], list[Group]]


def _text(kind: str) -> Translate:
    def translate(config: Config, left_out: LeftOut) -> list[Group]:  # noqa: ARG001
        return [
            {kind: _value(config, "substring", "value", "text"), "case_sensitive": True}
        ]

    return translate


def _pattern(kind: str, around: str = "") -> Translate:
    def translate(config: Config, left_out: LeftOut) -> list[Group]:  # noqa: ARG001
        check = {
            kind: pattern_of(_value(config, "pattern"), str(config.get("flags") or ""))
        }
        return [{**({around: check} if around else check), "case_sensitive": True}]

    return translate


def _file(kind: str, *keys: str) -> Translate:
    def translate(config: Config, left_out: LeftOut) -> list[Group]:  # noqa: ARG001
        value = _value(config, *keys)
        check = {kind: pattern_of(value) if kind.endswith("regex") else value}
        return [{"files": {_value(config, "path"): check}, "case_sensitive": True}]

    return translate


def _there(state: str) -> Translate:
    return lambda config, _: [{"files": {_value(config, "path"): state}}]


def _value(config: Config, *keys: str) -> str:
    key = next((key for key in keys if key in config), keys[0])
    if not isinstance(config[key], str):
        raise TypeError(f"{key} must be a string")
    return str(config[key])


def _skills(config: Config, left_out: LeftOut) -> list[Group]:
    for key in sorted(config.keys() - {"required", "disallowed"}):
        left_out.add(f"skill-invocation: {key}")
    checks = {
        "skill_opened": config.get("required"),
        "skill_not_opened": config.get("disallowed"),
    }
    return [{"with_skill": {name: names for name, names in checks.items() if names}}]


def _calls(config: Config, left_out: LeftOut) -> list[Group]:
    for key in sorted(config.keys() - {"required", "disallowed"}):
        left_out.add(f"tool-calls: {key}")
    groups = [_call(entry, wanted=True) for entry in config.get("required") or []]
    return groups + [
        _call(entry, wanted=False) for entry in config.get("disallowed") or []
    ]


def _call(entry: Any, *, wanted: bool) -> Group:
    """A call by its tool; names and arguments are patterns."""
    values = {"name": entry} if isinstance(entry, str) else dict(entry)
    name, command, arguments = (
        values.get("name"),
        values.get("command"),
        values.get("args"),
    )
    if isinstance(command, str):
        return {
            "commands_run" if wanted else "commands_not_run": command,
            "case_sensitive": True,
        }
    if not isinstance(name, str):
        raise TypeError("a tool call needs a name")
    if not arguments and (names := _plain_names(name)):
        if not wanted:
            return {"tools_not_used": names}
        choices: list[Group] = [{"tools_used": each} for each in names]
        return choices[0] if len(choices) == 1 else {"any_of": choices}
    inline = re.match(r"\(\?i\)", name)
    plain = name[len(inline[0]) if inline else 0 :].removeprefix("^").removesuffix("$")
    pattern = rf'"name":"(?:{plain})","input":\{{'
    for key, value in (arguments or {}).items() if isinstance(arguments, dict) else ():
        inside = re.sub(r"^\(\?i\)", "", str(value)).removeprefix("^").removesuffix("$")
        pattern += rf'(?=[^\n]*"{re.escape(str(key))}":"?[^"\n]*(?:{inside}))'
    check = {"regex" if wanted else "not_regex": f"(?i){pattern}"}
    return {"transcript": check, "case_sensitive": True}


def _plain_names(pattern: str) -> list[str]:
    """The tools that a pattern names, if it is no more than names."""
    match = _ALTERNATIVES.fullmatch(pattern)
    names = match[1].split("|") if match else []
    return names if all(map(_WORD.fullmatch, names)) else []


def _judge(config: Config, left_out: LeftOut) -> list[Group]:
    known = {"prompt", "rubric", "criteria", "scoring", "threshold"}
    for key in sorted(config.keys() - known):
        left_out.add(f"prompt: {key}")
    key = next(
        (key for key in ("prompt", "rubric", "criteria") if key in config), "prompt"
    )
    written = config[key]
    texts = [written] if isinstance(written, str) else [str(text) for text in written]
    return [{"judge": [text.strip() for text in texts]}]


def _command(config: Config, left_out: LeftOut) -> list[Group]:
    read = {"command", "args", "sub_path", "expected_exit_code", "timeout"}
    checks = {"stdout_contains": "contains", "stdout_matches": "regex"}
    checks |= {"stdout_not_matches": "not_regex"}
    for key in sorted(config.keys() - read - checks.keys()):
        left_out.add(f"run-command: {key}")
    run = _value(config, "command")
    if config.get("args"):
        run = shlex.join([run, *map(str, config["args"])])
    if config.get("sub_path"):
        run = f"cd {shlex.quote(str(config['sub_path']))} && {run}"
    command: Group = {"run": run, "exit": config.get("expected_exit_code")}
    command |= {
        ours: config[theirs] for theirs, ours in checks.items() if theirs in config
    }
    if match := _DURATION.fullmatch(str(config.get("timeout", ""))):
        command["timeout"] = float(match[1]) * _UNITS[match[2]]
    return [
        {"command": {key: value for key, value in command.items() if value is not None}}
    ]


_KINDS: Final[Mapping[str, Translate]] = {
    "output-contains": _text("contains"),
    "output-not-contains": _text("not_contains"),
    "output-matches": _pattern("regex"),
    "output-not-matches": _pattern("not_regex"),
    "transcript-contains": lambda config, _: [
        {
            "transcript": {"contains": _value(config, "substring", "value")},
            "case_sensitive": True,
        }
    ],
    "transcript-matches": _pattern("regex", "transcript"),
    "file-exists": _there("exists"),
    "file-not-exists": _there("absent"),
    "file-contains": _file("contains", "substring", "value", "content"),
    "file-not-contains": _file("not_contains", "substring", "value", "content"),
    "file-matches": _file("regex", "pattern"),
    "file-not-matches": _file("not_regex", "pattern"),
    "skill-invocation": _skills,
    "tool-calls": _calls,
    "prompt": _judge,
    "run-command": _command,
}
