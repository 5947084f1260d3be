"""A tool that a skill is to be about, told by its schema: FILE#NAME."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .._util.texts import guess
from ..errors import SettingsError, shown
from .secrets import masked

_LONGEST: Final = 2000  # characters of one description
_DEEPEST: Final = 4  # levels of parameters
_READ: Final = (
    'It is JSON as an MCP server lists its tools: {"tools": [{"name", "description", '
    '"inputSchema"}]}; the forms of OpenAI and Anthropic do as well.'
)


def read_tool(reference: str) -> str:
    """The tool's name, purpose and parameters as plain text. The name may be left out if the file
    has only one tool."""
    file, name = _parted(reference)
    where = f"--tool {reference}"
    tools = {_name(tool): tool for tool in _tools(_document(file, where)) if _name(tool)}
    if not tools:
        raise SettingsError(where, f"there is no tool in {shown(file)}", _READ)
    if not name and len(tools) > 1:
        raise SettingsError(
            where,
            f"{shown(file)} has {len(tools)} tools",
            f"Say which: {shown(file)}#{next(iter(tools))}, for example.",
        )
    if name and name not in tools:
        raise SettingsError(
            where,
            f"{shown(file)} has no tool {name!r}{guess(name, tools)}",
            f"It has: {', '.join(list(tools)[:20])}.",
        )
    return masked("\n".join(_told(tools[name] if name else next(iter(tools.values())))))


def _parted(reference: str) -> tuple[Path, str]:
    """A path may have a # in it as well."""
    if Path(reference).is_file():
        return Path(reference), ""
    file, _, name = reference.rpartition("#") if "#" in reference else (reference, "", "")
    return Path(file), name


def _document(file: Path, where: str) -> Any:
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise SettingsError(where, f"there is no file {shown(file)}", "Check the path.") from None
    except json.JSONDecodeError as error:
        problem = f"{shown(file)}:{error.lineno} is not JSON: {error.msg}"
        raise SettingsError(where, problem, _READ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(where, f"{shown(file)} can't be read: {error}", _READ) from None


def _tools(value: Any) -> Iterator[Mapping[str, Any]]:
    """The tools of a document: a list, one alone, or the answer of a server to tools/list."""
    if isinstance(value, list):
        for one in value:
            yield from _tools(one)
    elif isinstance(value, dict):
        for key in ("tools", "result", "functions"):
            if isinstance(value.get(key), list | dict):
                yield from _tools(value[key])
                return
        inner = value.get("function")
        yield inner if isinstance(inner, dict) else value


def _name(tool: Mapping[str, Any]) -> str:
    name = tool.get("name")
    return name if isinstance(name, str) else ""


def _told(tool: Mapping[str, Any]) -> Iterator[str]:
    yield f"tool: {_name(tool)}"
    if description := _text(tool.get("description")):
        yield f"description: {description}"
    schemas = (tool.get(key) for key in ("inputSchema", "input_schema", "parameters"))
    schema = next((schema for schema in schemas if isinstance(schema, dict)), {})
    parameters = list(_parameters(schema, 1))
    yield from (["parameters:", *parameters] if parameters else ["parameters: none"])
    for key in ("outputSchema", "output_schema"):
        if isinstance(tool.get(key), dict):
            yield "gives back:"
            yield from _parameters(tool[key], 1)


def _parameters(schema: Mapping[str, Any], level: int) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or level > _DEEPEST:
        return
    needed = required if isinstance(required, list) else []
    for name, one in properties.items():
        one = one if isinstance(one, dict) else {}
        about = [_kind(one), *(["required"] if name in needed else [])]
        about += [f"default {json.dumps(one['default'])}"] if "default" in one else []
        if isinstance(one.get("enum"), list):
            about.append("one of " + ", ".join(map(json.dumps, one["enum"][:30])))
        description = _text(one.get("description"))
        line = f"{'  ' * level}- {name} ({'; '.join(filter(None, about))})"
        yield f"{line}: {description}" if description else line
        items = one.get("items")
        yield from _parameters(items if isinstance(items, dict) else one, level + 1)


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    items = schema.get("items")
    of = f" of {_kind(items)}" if isinstance(items, dict) and _kind(items) else ""
    return " or ".join(str(one) for one in kinds if one) + of


def _text(value: Any) -> str:
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""
