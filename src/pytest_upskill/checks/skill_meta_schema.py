"""The JSON schema of skill_meta.json for editors, made from the forms that validate the file."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from ..skills.case_forms import MetaForm
from .check import Kind
from .parse import KINDS, GroupForm

_MODE: Final[JsonSchemaMode] = "validation"
_EXPECTED: Final = {"$ref": "#/$defs/Expected"}
_GROUPS: Final = {"type": "array", "items": _EXPECTED, "minItems": 1}
_NEEDS_EXPECTED: Final = {"anyOf": [{"required": ["expected"]}, {"required": ["validator"]}]}


class _Generator(GenerateJsonSchema):
    """Leaves out titles, which only repeat the keys; a value without a schema may be anything."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}


def schema_text() -> str:
    return json.dumps(schema_of_cases(), indent=2, ensure_ascii=False) + "\n"


def schema_of_cases(kinds: Mapping[str, Kind] = KINDS) -> dict[str, Any]:
    forms: dict[str, TypeAdapter[Any]] = {
        "file": TypeAdapter(MetaForm),
        "group": TypeAdapter(GroupForm),
        **{f"check {name}": kind.argument for name, kind in kinds.items()},
    }
    made, shared = TypeAdapter.json_schemas(
        [(name, _MODE, form) for name, form in forms.items()], schema_generator=_Generator
    )
    parts = shared["$defs"]
    file, group = parts.pop("MetaForm"), parts.pop("GroupForm")
    of_file = parts["FileForm"]["properties"]
    of_file |= {
        name: _or_nothing(made[f"check {name}", _MODE]) for name in kinds if name in of_file
    }
    parts["Expected"] = {
        "type": ["object", "array"],
        "description": "Checks, all of which must pass. A project may register more kinds than "
        "this schema knows.",
        "items": _EXPECTED,
        "properties": {
            **{name: _or_nothing(made[f"check {name}", _MODE]) for name in kinds},
            "python": {"type": ["string", "null"], "description": "checks.py:function"},
            **group["properties"],
            "all_of": _GROUPS,
            "any_of": _GROUPS,
            "not": _EXPECTED,
        },
    }
    parts["CaseForm"]["properties"]["expected"] = _EXPECTED
    parts["CaseForm"]["required"] = ["input"]  # expected too, unless the defaults have it
    parts["DefaultsForm"]["properties"]["expected"] = {"anyOf": [_EXPECTED, {"type": "null"}]}
    in_defaults = {"required": ["defaults"], "properties": {"defaults": _NEEDS_EXPECTED}}
    in_each = {"items": _NEEDS_EXPECTED}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **file,
        "title": "skill_meta.json",
        "type": ["object", "array"],
        "items": {"$ref": "#/$defs/CaseForm", **_NEEDS_EXPECTED},
        "if": in_defaults,
        "else": {"properties": {"cases": in_each, "tests": in_each}},
        "$defs": dict(sorted(parts.items())),
    }


def _or_nothing(argument: dict[str, Any]) -> dict[str, Any]:
    """A check's value: null is none, and one item stands for a list of it."""
    single = [argument["items"]] if "items" in argument else []
    return {"anyOf": [*single, argument, {"type": "null"}]}
