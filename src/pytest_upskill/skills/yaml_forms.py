"""YAML that people write beside cases: validated, with the line of what is wrong."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from .._util.json_forms import FormError, Location, json_path, read_form
from .._util.texts import one_line
from ..errors import CasesError, shown
from .frontmatter import YAML_ERRORS, read_yaml


def read_yaml_form(
    form: TypeAdapter[Any],
    text: str,
    file: Path,
    *,
    before: int = 0,
    only_texts: bool = False,
) -> Any:
    """The data of a file, whose first ``before`` lines are not in the text;
    CasesError names the line.
    """
    try:
        node, data = read_yaml(text, only_texts=only_texts)
    except YAML_ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error) or "nested too deeply"
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        problem = f"invalid YAML: {one_line(str(reason), 200)}"
        raise CasesError(f"{shown(file)}:{before + line}", problem) from None
    try:
        return read_form(form, _json_value({} if data is None else data))
    except FormError as error:
        place, problem = error.problems[0]
        where = f"{shown(file)}:{before + _line_of(node, place)}"
        raise CasesError(where, f"{json_path(place)}: {problem}") from None


def _line_of(node: yaml.Node | None, place: Location) -> int:
    line = node.start_mark.line if node else 0
    for step in place:
        if isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if str(pair[0].value) == str(step)]
            key, node = pairs[-1] if pairs else (node, None)
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line
    return line + 1


def _json_value(value: Any) -> Any:
    """A value of YAML as JSON has it; a date is a text there."""
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    return value if isinstance(value, str | bool | int | float | None) else str(value)
