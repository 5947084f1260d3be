"""The JSON schema of skill_meta.json for editors,
made from the forms that validate the file.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from ..registry import check_modules
from ..skills.case_forms import MetaForm
from .check import CheckKind
from .group import GroupForm
from .kinds import KINDS


class About(NamedTuple):
    """What editors say of a check: a sentence and an example.

    ``{it}`` is what is checked: the answer, the text of a file,
    or the output of a command.
    """

    text: str
    example: Any = None

    def schema(self, checked: str = "the answer") -> dict[str, Any]:
        """For the JSON schema: an editor shows the description and offers the
        example.
        """
        text = self.text.replace("{it}", checked)
        if self.example is None:
            return {"description": text}
        example = json.dumps(self.example, ensure_ascii=False)
        return {"description": f"{text} Example: {example}", "examples": [self.example]}


ABOUT: Final = {
    # text
    "contains": About(
        "All of these texts are in {it}. One text, or a list.", ["9.0", "sm_90"]
    ),
    "contains_any": About(
        "At least one of these texts is in {it}.", ["wick ember", "wick undo"]
    ),
    "not_contains": About("None of these texts is in {it}.", ["kubectl"]),
    "words": About(
        "Each of these stands in {it} as a whole word, not as a part of a longer one.",
        ["porch"],
    ),
    "equals": About(
        "This is the whole of {it}, but for blanks around it.", "wick kindle"
    ),
    "starts_with": About("How {it} begins, after any blanks.", "fix("),
    "ends_with": About("How {it} ends, before any blanks.", "done."),
    "regex": About(
        "Each pattern matches somewhere in {it}; write every backslash twice.",
        r"v\d+\.\d+",
    ),
    "not_regex": About("No pattern matches anywhere in {it}.", r"\bTODO\b"),
    "min_words": About("The fewest words that {it} may have.", 20),
    "max_words": About("The most words that {it} may have.", 100),
    "max_chars": About("The most characters that {it} may have.", 72),
    "max_output_tokens": About("The most tokens that the model may write.", 200),
    "max_seconds": About("The longest time that the answer may take.", 10),
    "refused": About(
        "Whether the model has to refuse. Without this check, a refusal fails.",
        example=True,
    ),
    "stop": About(
        "Why the model stopped: end, length, refusal, or the word of its server.", "end"
    ),
    # data
    "json": About(
        "True: there is valid JSON in {it}, in a fence or alone.", example=True
    ),
    "json_schema": About(
        "JSON in {it} that fits this JSON schema.",
        {"type": "object", "required": ["name"]},
    ),
    "json_path": About(
        "A value in the JSON of {it}: there at all, or equal to something.",
        {"path": "$.items[0].id", "equals": 7},
    ),
    "yaml": About("True: there is a YAML mapping or list in {it}.", example=True),
    "toml": About("True: there is TOML with at least one key in {it}.", example=True),
    "number": About(
        "This number is in {it}, exactly or within a tolerance.",
        {"value": 1200, "tolerance": 5},
    ),
    "csv_columns": About("CSV in {it} whose header has these columns.", ["id", "name"]),
    # code
    "code": About(
        "A block of this language is in the answer, and what has to be in it.",
        {"language": "python", "parses": True, "imports": "numpy"},
    ),
    "parses": About(
        "Every block of this language parses: python, json, toml, yaml or shell."
        " Nothing is run.",
        "shell",
    ),
    "defines": About(
        "Functions, classes, methods or constants that the Python of the answer"
        " defines.",
        ["Gate.open", "LIMIT"],
    ),
    "imports": About("Modules, or names of modules, that it imports.", ["torch.nn"]),
    "calls": About(
        "What it calls, as written or by its full name; .sum is a method of anything.",
        ["numpy.zeros", ".sum"],
    ),
    "python": About(
        "A function in the skill's folder that decides; a run has to allow code.",
        "checks.py:is_haiku",
    ),
    # what an agent did
    "files": About(
        "What an agent left in its workspace, by path: exists, absent, or checks of the"
        " file.",
        {"report.md": {"contains": "Total"}, "tmp.txt": "absent"},
    ),
    "unchanged": About(
        "Files of the start that an agent has to leave as they are.", ["data.csv"]
    ),
    "command": About(
        "A command that succeeds in a copy of the workspace, after the agent; or"
        " several.",
        {"run": "pytest -q", "contains": "3 passed"},
    ),
    "verifier": About(
        "A script that runs after the agent and writes a reward from 0 to 1, as in"
        " Harbor's tasks.",
        {"run": "tests/test.sh", "timeout": 900},
    ),
    "tools_used": About(
        "Tools that an agent has to call, each at least once, or as often as an object"
        " says.",
        ["write", {"tool": "bash", "input_match": "pytest", "max": 3}],
    ),
    "tools_not_used": About("Tools that an agent must not call.", ["web_search"]),
    "tool_order": About(
        "Tools that an agent calls in this order, with any others between.",
        ["read", "write"],
    ),
    "commands_run": About(
        "Patterns, each matched by a shell command of an agent.", "pytest( -q)?"
    ),
    "commands_not_run": About(
        "Patterns that no shell command of an agent matches.", r"\brm -rf\b"
    ),
    "max_turns": About("The most replies of the model until an agent is done.", 5),
    "max_tool_calls": About("The most calls of tools until an agent is done.", 8),
    "skill_activated": About("Whether an agent has to open the skill.", example=True),
    "transcript": About(
        "Checks of what was said, called and replied until an agent was done.",
        {"not_regex": "rm -rf"},
    ),
    "files_made": About(
        "Checks of the paths of files that an agent made, one on each line.",
        {"regex": r"\.tsx?$"},
    ),
    "skill_opened": About(
        "Skills that an agent has to open, by their names.", ["forms"]
    ),
    "skill_not_opened": About("Skills that an agent must not open.", ["invoices"]),
    "references_read": About(
        "Files of the skill that an agent has to read.", ["references/forms.md"]
    ),
    "scripts_run": About(
        "Scripts of the skill that an agent has to run.", ["scripts/fill.py"]
    ),
    # a judge, and groups
    "judge": About(
        "Criteria, each ruled on by the judge model of the run.",
        ["It names the command and says how to undo it."],
    ),
    "all_of": About(
        "Groups of checks that all have to pass.",
        [{"contains": "a"}, {"contains": "b"}],
    ),
    "any_of": About(
        "Groups of checks, one of which has to pass.",
        [{"contains": "a"}, {"words": "b"}],
    ),
    "not": About(
        "A group of checks that must not pass as a whole.", {"contains": ["a", "b"]}
    ),
    "with_skill": About(
        "Checks of answers with the skill alone: they can fail the case, but no lift"
        " compares them. A case that has no others is asked with the skill alone.",
        {"skill_activated": True},
    ),
}

for _module in check_modules():
    for _name, _about in _module.ABOUT.items():
        ABOUT[_name] = About(*_about)


_MODE: Final[JsonSchemaMode] = "validation"
_EXPECTED: Final = {"$ref": "#/$defs/Expected"}
_GROUPS: Final = {"type": "array", "items": _EXPECTED, "minItems": 1}
# What may be written instead of an object, for short.
_SHORT: Final[Mapping[str, dict[str, Any]]] = {
    "code": {"type": "string", "minLength": 1},
    "json_path": {"type": "string"},
    "number": {"type": "number"},
}
_NEEDS_EXPECTED: Final = {
    "anyOf": [{"required": ["expected"]}, {"required": ["validator"]}]
}


class _Generator(GenerateJsonSchema):
    """Leaves out titles, which only repeat the keys;
    a value without a schema may be anything.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def handle_invalid_for_json_schema(
        self,
        schema: Any,  # noqa: ARG002
        error_info: str,  # noqa: ARG002
    ) -> JsonSchemaValue:
        return {}


def schema_text() -> str:
    return json.dumps(schema_of_cases(), indent=2, ensure_ascii=False) + "\n"


def schema_of_cases(kinds: Mapping[str, CheckKind] = KINDS) -> dict[str, Any]:
    forms: dict[str, TypeAdapter[Any]] = {
        "file": TypeAdapter(MetaForm),
        "group": TypeAdapter(GroupForm),
        **{f"check {name}": kind.argument for name, kind in kinds.items()},
    }
    schemas, shared = TypeAdapter.json_schemas(
        [(name, _MODE, form) for name, form in forms.items()],
        schema_generator=_Generator,
    )
    parts = shared["$defs"]
    file, group = parts.pop("MetaForm"), parts.pop("GroupForm")

    def check(name: str, checked: str = "the answer") -> dict[str, Any]:
        about = ABOUT[name].schema(checked) if name in ABOUT else {}
        return {
            **_or_nothing(schemas[f"check {name}", _MODE], _SHORT.get(name)),
            **about,
        }

    conditions = {"FileForm": "the file", "CommandForm": "its output"}
    for form, checked in {**conditions, "TranscriptForm": "the transcript"}.items():
        properties = parts[form]["properties"]
        properties |= {
            name: check(name, checked) for name in kinds if name in properties
        }
    of_code = parts["CodeForm"]["properties"]
    of_code |= {name: check(name) for name in ("defines", "imports", "calls")}
    parts["Expected"] = {
        "type": ["object", "array"],
        "description": (
            "Checks, all of which must pass. A project may register more kinds than "
            "this schema knows."
        ),
        "items": _EXPECTED,
        "properties": {
            **{name: check(name) for name in kinds},
            "python": {"type": ["string", "null"], **ABOUT["python"].schema()},
            **group["properties"],
            "all_of": {**_GROUPS, **ABOUT["all_of"].schema()},
            "any_of": {**_GROUPS, **ABOUT["any_of"].schema()},
            "not": {**_EXPECTED, **ABOUT["not"].schema()},
            "with_skill": {**_EXPECTED, **ABOUT["with_skill"].schema()},
        },
    }
    parts["CaseForm"]["properties"]["expected"] |= _EXPECTED
    # Also expected, unless the defaults have it.
    parts["CaseForm"] |= {"anyOf": [{"required": ["input"]}, {"required": ["invoke"]}]}
    del parts["CaseForm"]["required"]
    of_defaults = parts["DefaultsForm"]["properties"]["expected"]
    of_defaults |= {"anyOf": [_EXPECTED, {"type": "null"}]}

    def described(key: str, condition: dict[str, Any]) -> dict[str, Any]:
        """A condition on a key of the file, with the description of the key."""
        return {
            key: {"description": file["properties"][key]["description"], **condition}
        }

    in_defaults = {
        "required": ["defaults"],
        "properties": described("defaults", _NEEDS_EXPECTED),
    }
    in_each = {"items": _NEEDS_EXPECTED}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **file,
        "title": "skill_meta.json",
        "type": ["object", "array"],
        "items": {"$ref": "#/$defs/CaseForm", **_NEEDS_EXPECTED},
        "if": in_defaults,
        "else": {
            "properties": {**described("cases", in_each), **described("tests", in_each)}
        },
        "$defs": dict(sorted(parts.items())),
    }


def _or_nothing(
    argument: dict[str, Any], short: dict[str, Any] | None
) -> dict[str, Any]:
    """A check's value: null is none, and one item stands for a list of it."""
    single = [short] if short else []
    if items := argument.get("items"):
        argument = (
            {**argument, "items": {"anyOf": [short, items]}} if short else argument
        )
        single.append(items)
    return {"anyOf": [*single, argument, {"type": "null"}]}
