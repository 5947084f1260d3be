"""Evals of Claude Code's plugins: ``evals/CASE/`` with prompt.md,
case.yaml and graders/*.md.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ..._util.files import read_file, reason_of, resolved
from ..._util.texts import guess, one_line, slug
from ...errors import CasesError, shown
from ..case import Case
from ..case_forms import CaseForm, is_good_id
from ..folder import SKILL_NAMES, leads_outside, real_skill_file, walk
from ..loaded_cases import LoadedCases
from ..skill import name_of
from .suite import Suite, Written, read_cases
from .yaml_files import (
    Document,
    LeftOut,
    broken_by,
    good_tags,
    pattern_of,
    problem_at,
    read_document,
    read_yaml_file,
    repeated,
)

PROMPT: Final = "prompt.md"
CASE_NAMES: Final = ("case.yaml", "case.yml")
_GRADERS: Final = "graders"
_MOCKS: Final = "mocks"
_NOT_CASES: Final = frozenset({"results", _MOCKS, "node_modules", _GRADERS})
_KINDS: Final = ("regex", "tool_used", "tool_order", "file_exists", "llm", "baseline")
_VOTES: Final = 3
# For people and other programs; ignored silently.
_SILENT: Final = frozenset(
    {"schema_version", "name", "description", "expected_outcome", "title", "notes"}
)
_READ: Final = frozenset(
    {
        "prompt",
        "tags",
        "runs",
        "max_turns",
        "timeout_seconds",
        "append_system_prompt",
        "graders",
    }
    | {"scaffold_script", "history_file"}
)
_TARGETS: Final = ("last_message", "trace", "files", "mock_calls")
_MOST_HISTORY: Final = 5_000_000  # bytes
_MOST_PATHS: Final = 50  # that a glob with braces stands for
_LONGEST_PATTERN: Final = 2_000
_LARGE_COUNT: Final = re.compile(r"\{\d{3,}")
_SECONDS: Final = 1.0


def plugin_suite(path: Path, folder: Path) -> Suite | None:
    """The evals of a plugin or a skill in ``folder``;
    None if the path is of another form.
    """
    folders = case_folders(path)
    if not folders:
        return None
    left_out, skills = LeftOut(), _skill_names(folder)
    files = [_loaded(case, path, folder, skills, left_out) for case in folders]
    if left_out.warnings:
        files[0] = replace(files[0], warnings=(*files[0].warnings, *left_out.warnings))
    return Suite(path, folder, tuple(files))


def case_folders(path: Path) -> list[Path]:
    """The folders of cases below a folder, or this one."""
    if not path.is_dir():
        return []
    found = []
    for inside, subfolders, names in walk(path):
        subfolders[:] = sorted(set(subfolders) - _NOT_CASES)
        has_graders = (inside / _GRADERS).is_dir()
        if (PROMPT in names and has_graders) or not {*CASE_NAMES}.isdisjoint(names):
            found.append(inside)
            subfolders[:] = []
    return found


def _skill_names(folder: Path) -> list[str]:
    """The names of the skills in a plugin, or of the skill that a folder is."""
    files = list[Path]()
    for inside, subfolders, names in walk(folder):
        subfolders[:] = sorted(
            n for n in subfolders if n not in _NOT_CASES and n[0] != "."
        )
        files += [inside / name for name in SKILL_NAMES if name in names]
    return list(dict.fromkeys(map(name_of, files)))


def _loaded(
    case: Path, root: Path, folder: Path, skills: Sequence[str], left_out: LeftOut
) -> LoadedCases[Case]:
    file = next(
        (f for name in (PROMPT, *CASE_NAMES) if (f := case / name).is_file()), case
    )
    name = (
        slug(case.relative_to(root).as_posix().replace("/", "."))
        or slug(case.name)
        or "case"
    )
    try:
        written = case_of_folder(case, folder, skills, left_out)
    except CasesError as error:
        return broken_by(file, name, error)
    if not is_good_id(str(written.get("id", ""))):
        written["id"] = name
    return read_cases(file, [Written((), 1, written)], folder, foreign=False)


def case_of_folder(
    case: Path, folder: Path, skills: Sequence[str], left_out: LeftOut
) -> dict[str, Any]:
    """A case in our own form; CasesError says what is wrong with it."""
    yaml_file = next((f for name in CASE_NAMES if (f := case / name).is_file()), None)
    for file in filter(None, (yaml_file, case / PROMPT, *_grader_files(case))):
        if leads_outside(folder, file) and leads_outside(case, file):
            raise problem_at(file, 1, f"a link out of {shown(folder)}: copy the file")
    settings = read_yaml_file(yaml_file) if yaml_file else Document(case, {}, {})
    values = dict(settings.values)
    for key in ("execution", "context"):
        inside = values.pop(key, None)
        if inside is not None and not isinstance(inside, dict):
            raise settings.error("must be a mapping", key)
        values |= {str(name): value for name, value in (inside or {}).items()}
    prompt, main = values.get("prompt"), settings
    if (case / PROMPT).is_file():
        main = read_document(case / PROMPT)
        values |= main.values
        prompt = main.body or prompt
    if not isinstance(prompt, str) or not prompt.strip():
        raise main.error(
            "no prompt: write one below the frontmatter, or as execution.prompt"
        )
    for key in sorted(values.keys() - _SILENT - _READ):
        left_out.add(key)
    expected = _expected(_graders(case, settings, values), skills, left_out)
    if not expected:
        raise main.error(f"no grader that can be used: add one to {_GRADERS}/")
    written: dict[str, Any] = {
        "id": values.get("name"),
        "input": _messages(
            case,
            folder,
            settings,
            values=values,
            prompt=prompt.strip(),
            left_out=left_out,
        ),
        "expected": expected[0] if len(expected) == 1 else expected,
        "system": values.get("append_system_prompt"),
        "tags": good_tags(values.get("tags"), left_out),
        "runs": values.get("runs"),
        "max_turns": values.get("max_turns"),
        "timeout": values.get("timeout_seconds"),
        "scaffold": _script(case, folder, settings, values.get("scaffold_script")),
        "mocks": _mocks(case, folder),
    }
    if "invoke" in CaseForm.model_fields and isinstance(written["input"], str):
        written |= _invoked(written["input"], skills)
    return {key: value for key, value in written.items() if value not in (None, [])}


def _invoked(prompt: str, skills: Sequence[str]) -> dict[str, Any]:
    """The explicit use of a skill of the plugin: ``/plugin:skill arguments``."""
    name, _, arguments = prompt.removeprefix("/").partition(" ")
    if not prompt.startswith("/") or name.rpartition(":")[2] not in skills:
        return {}
    return {
        "invoke": f"/{name.rpartition(':')[2]} {arguments}".strip(),
        "input": arguments or prompt,
    }


def _mocks(case: Path, folder: Path) -> str | None:
    """The folder with mocks of MCP servers for this case alone."""
    mocks = case / _MOCKS
    inside = mocks.is_dir() and mocks.is_relative_to(folder)
    return mocks.relative_to(folder).as_posix() if inside else None


def _script(case: Path, folder: Path, settings: Document, script: Any) -> str | None:
    """The path of the scaffold script in the folder of the plugin."""
    if script is None:
        return None
    return (
        _named_file(case, folder, settings, script)
        .relative_to(resolved(folder))
        .as_posix()
    )


def _named_file(case: Path, folder: Path, settings: Document, name: Any) -> Path:
    """Where a file is that a case names; it is in the folder of the plugin."""
    try:
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is no path")
        return real_skill_file(
            folder, os.path.relpath(resolved(case / name), resolved(folder))
        )
    except (ValueError, OSError):
        problem = (
            f"no such file: {one_line(str(name), 100)} (it must be in {shown(folder)})"
        )
        raise settings.error(problem, "context") from None


# Messages before the prompt.


def _messages(
    case: Path,
    folder: Path,
    settings: Document,
    *,
    values: Mapping[str, Any],
    prompt: str,
    left_out: LeftOut,
) -> str | list[dict[str, str]]:
    if (history := values.get("history_file")) is None:
        return prompt
    file = _named_file(case, folder, settings, history)
    try:
        lines = read_file(file, _MOST_HISTORY).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        raise settings.error(f"{history}: {reason}", "context") from None
    turns = list[dict[str, str]]()
    said = [
        turn
        for n, line in enumerate(lines, 1)
        for turn in _turns(file, n, line, left_out)
    ]
    for role, text in [*said, ("user", prompt)]:
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append({"role": role, "content": text})
    if turns[0]["role"] != "user":
        raise problem_at(file, 1, "the first message must be the user's")
    return turns


def _turns(
    file: Path, line: int, text: str, left_out: LeftOut
) -> Iterator[tuple[str, str]]:
    """The words of a line of a history; calls of tools and their results are no
    words.
    """
    if not text.strip():
        return
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise problem_at(file, line, "invalid JSON") from None
    message = entry.get("message", entry) if isinstance(entry, dict) else None
    if not isinstance(message, dict) or message.get("role") not in (
        "user",
        "assistant",
    ):
        left_out.add("lines of a history that are no messages")
        return
    content = message.get("content")
    blocks = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else content or []
    )
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and isinstance(words := block.get("text"), str):
            if words.strip():
                yield message["role"], words
        else:
            left_out.add("tool calls in a history")


# Graders.


def _grader_files(case: Path) -> list[Path]:
    return [file for file in sorted((case / _GRADERS).glob("*.md")) if file.is_file()]


def _graders(
    case: Path, settings: Document, values: Mapping[str, Any]
) -> list[Document]:
    documents = [read_document(file) for file in _grader_files(case)]
    listed = values.get("graders") or []
    if not isinstance(listed, list) or not all(
        isinstance(entry, dict) for entry in listed
    ):
        raise settings.error("must be a list of mappings", "graders")
    line = settings.lines.get("graders", 1)
    documents += [
        Document(settings.file, entry, dict.fromkeys(entry, line), "")
        for entry in listed
    ]
    if not documents:
        at = settings if settings.values else Document(case / PROMPT, {}, {})
        raise at.error(
            f"no grader: add one to {_GRADERS}/, such as {_GRADERS}/answer.md"
        )
    return documents


def _expected(
    graders: Sequence[Document], skills: Sequence[str], left_out: LeftOut
) -> list[dict[str, Any]]:
    """A group of checks for each grader."""
    groups, indicators = list[dict[str, Any]](), list[dict[str, Any]]()
    for grader in graders:
        group = _group(grader, skills, left_out)
        if not group:
            continue
        arm = grader.values.get("arm")
        if arm not in (None, "both", "with-only"):
            raise grader.error(f"{arm!r} is unknown: write both or with-only", "arm")
        of_skill = grader.values.get("tool") == "Skill"
        weight = grader.values.get("weight", 1)
        if (
            not isinstance(weight, int | float)
            or isinstance(weight, bool)
            or weight < 0
        ):
            raise grader.error("must be a number", "weight")
        if weight == 0:
            group["required"] = False
        elif weight != 1 and not of_skill and arm != "with-only":
            group["weight"] = weight
        if of_skill and arm is None:
            indicators.append(group)
        else:
            groups.append(
                {"with_skill": group} if of_skill or arm == "with-only" else group
            )
    # There, whether a skill is opened is shown and does not count,
    # unless nothing else does.
    for group in indicators:
        groups.append({"with_skill": {**group, "required": False} if groups else group})
    return groups


def _group(
    grader: Document, skills: Sequence[str], left_out: LeftOut
) -> dict[str, Any] | None:
    kind = grader.values.get("type")
    if kind is None and grader.body:
        left_out.change("graders without a type are judged, as those of type llm")
        kind = "llm"
    match kind:
        case "regex":
            return _regex(grader)
        case "tool_used":
            return _tool_used(grader, skills, left_out)
        case "tool_order":
            calls = [_call(grader, key) for key in ("before", "after")]
            return {"tool_order": calls}
        case "file_exists":
            wanted = "absent" if grader.values.get("exists") is False else "exists"
            paths = list(islice(_alternatives(_text(grader, "path")), _MOST_PATHS + 1))
            if len(paths) > _MOST_PATHS:
                raise grader.error(f"stands for more than {_MOST_PATHS} paths", "path")
            choices = [{"files": {path: wanted}} for path in paths]
            if wanted == "absent" or len(paths) == 1:
                return {"files": dict.fromkeys(paths, wanted)}
            return {"any_of": choices}
        case "llm":
            criteria = grader.body or _text(grader, "criteria")
            files = _focus(grader, left_out)
            return {
                "judge": [criteria],
                "judge_votes": _VOTES,
                **({"judge_files": files} if files else {}),
            }
        case "baseline":
            left_out.add("graders of type baseline")
            return None
    problem = f"unknown type {kind!r}{guess(str(kind), _KINDS)}" if kind else "no type"
    raise grader.error(
        f"{problem}: write one of {', '.join(_KINDS)}", "type" if kind else ""
    )


def _regex(grader: Document) -> dict[str, Any]:
    flags = str(grader.values.get("flags") or "")
    written = grader.values.get("pattern", grader.body)
    if isinstance(written, int | float) and not isinstance(written, bool):
        written = str(written)  # YAML reads 42 as a number
    if not isinstance(written, str) or not written.strip():
        raise grader.error("no pattern")
    try:
        pattern = pattern_of(written, flags)
    except ValueError as error:
        raise grader.error(str(error), "flags") from None
    _require_pattern(grader, pattern, "pattern")
    match = str(grader.values.get("match") or "contains")
    count = re.fullmatch(r"count:\s*(\d{1,4})", match)
    if match not in ("contains", "not_contains") and not count:
        raise grader.error(
            f"{one_line(match, 60)!r} is unknown: write contains, not_contains or"
            " count:N",
            "match",
        )
    if count and int(count[1]) > 1:
        pattern = repeated(pattern, int(count[1]))
    unwanted = match == "not_contains" or bool(count and int(count[1]) == 0)
    check: dict[str, Any] = {"not_regex" if unwanted else "regex": pattern}
    target = grader.values.get("target", "last_message")
    if isinstance(target, dict):
        path = target.get("path")
        if target.get("source") != "file" or not isinstance(path, str):
            raise grader.error("must be {source: file, path: …}", "target")
        check = {"files": {path: check}}
    elif target in ("trace", "transcript"):
        check = {"transcript": check}
    elif target == "mock_calls":
        check = {"mcp_calls": check}
    elif target == "files":
        check = {"files_made": check}
    elif target not in _TARGETS:
        names = ", ".join(_TARGETS)
        raise grader.error(
            f"{target!r} is unknown: write {names} or {{source: file, …}}", "target"
        )
    return check if "i" in flags else {**check, "case_sensitive": True}


def _tool_used(
    grader: Document, skills: Sequence[str], left_out: LeftOut
) -> dict[str, Any] | None:
    call = _call(grader)
    limits = {key: grader.values[key] for key in ("min", "max") if key in grader.values}
    for key, limit in limits.items():
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            raise grader.error("must be a whole number", key)
    if call["tool"] != "Skill":
        return {"tools_used": {**call, **limits}}
    never = limits.get("max") == 0
    names = _named_skills(grader, skills)
    if names is None:
        return {"skill_activated": not never}
    if not names:
        left_out.add(
            f"tool_used of a skill that is not here ({grader.values['input_match']})"
        )
        return None
    if never or len(names) == 1:
        return {"skill_not_opened" if never else "skill_opened": names}
    return {"any_of": [{"skill_opened": name} for name in names]}


def _named_skills(grader: Document, skills: Sequence[str]) -> list[str] | None:
    """The skills whose calls the grader is about; None if it is about any."""
    written = grader.values.get("input_match")
    if written is None:
        return None
    inputs = ('{{"skill":"{0}"}}', '{{"skill":"plugin:{0}"}}', '{{"skill": "{0}"}}')
    try:
        pattern = pattern_of(str(written))
        named = [
            n
            for n in skills
            if any(_matches(pattern, text.format(n)) for text in inputs)
        ]
    except (ValueError, TimeoutError) as error:
        raise grader.error(f"invalid pattern: {error}", "input_match") from None
    # A pattern may also name the plugin: then what it says after the colon counts.
    named = named or [
        name for name in skills if re.search(rf":{re.escape(name)}(?![\w-])", written)
    ]
    return None if len(named) == len(skills) > 1 else named


def _matches(pattern: str, text: str) -> bool:
    """ValueError or TimeoutError if that can't be told:
    a pattern is a program of a stranger.
    """
    import regex

    if _is_large(pattern):
        raise ValueError("too long, or with a count such as {999}")
    try:
        return regex.compile(pattern).search(text, timeout=_SECONDS) is not None
    except regex.error as error:
        raise ValueError(str(error)) from None


def _is_large(pattern: str) -> bool:
    return len(pattern) > _LONGEST_PATTERN or _LARGE_COUNT.search(pattern) is not None


def _require_pattern(grader: Document, pattern: str, key: str) -> None:
    """Tell a mistake where it is; what is too large to be tried here,
    the check itself refuses.
    """
    try:
        if not _is_large(pattern):
            _matches(pattern, "")
    except (ValueError, TimeoutError) as error:
        raise grader.error(f"invalid pattern: {error}", key) from None


def _call(grader: Document, key: str = "") -> dict[str, Any]:
    """A tool, and perhaps a pattern for its arguments."""
    written = grader.values.get(key) if key else grader.values
    if isinstance(written, str) and written.strip():
        return {"tool": written}
    if not isinstance(written, dict) or not isinstance(written.get("tool"), str):
        raise grader.error("must name a tool", key or "tool")
    match = written.get("input_match")
    if match is None:
        return {"tool": written["tool"]}
    pattern = pattern_of(str(match))
    _require_pattern(grader, pattern, key or "input_match")
    return {"tool": written["tool"], "input_match": pattern}


def _focus(grader: Document, left_out: LeftOut) -> list[str]:
    """The files that a judge sees whole; it always sees the reply,
    and what was done in short.
    """
    focus = grader.values.get("focus")
    if isinstance(focus, dict) and isinstance(focus.get("path"), str):
        return [focus["path"]]
    if focus not in (None, "trace", "last_message", "files", "mock_calls"):
        left_out.add(f"focus {focus}")
    return []


def _text(grader: Document, key: str) -> str:
    value = grader.values.get(key)
    if not isinstance(value, str) or not value.strip():
        raise grader.error("missing", key)
    return value


def _alternatives(path: str) -> Iterator[str]:
    """A glob with {a,b} as several without."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        yield str(PurePosixPath(path))
        return
    head, tail = path[: braces.start()], path[braces.end() :]
    for part in braces[1].split(","):
        yield from _alternatives(f"{head}{part}{tail}")
