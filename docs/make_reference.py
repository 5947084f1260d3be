"""Write the tables of the reference from the code (`make reference`).

A page names what belongs between two comments, and the rest of it is written by hand:

    <!-- reference: options --skill --model -->
    <!-- end -->
"""

import argparse
import json
import re
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any, Final

from pytest_upskill.checks.skill_meta_schema import schema_of_cases
from pytest_upskill.cli.command_table import COMMANDS, make_parser
from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.results.run_file import results_schema

DOCS: Final = Path(__file__).parent
RESULTS_SCHEMA: Final = "results.schema.json"
_BLOCK: Final = re.compile(
    r"(?P<start><!-- reference: (?P<table>\w+)(?P<words>[^>]*?)-->\n).*?(?P<end><!-- end -->)", re.S
)
_CODE: Final = re.compile(r"--[a-z-]+|[\w./]+\.(?:json|md|yaml)\b")  # in a sentence of help
# In words, one and many: the types of JSON, and forms of the schema as docs/schema.md heads them.
_TYPES: Final = {
    "string": ("text", "texts"),
    "integer": ("whole number", "whole numbers"),
    "number": ("number", "numbers"),
    "boolean": ("true or false", "true or false"),
    "array": ("list", "lists"),
    "object": ("object", "objects"),
    "anything": ("anything", "anything"),
}
_FORMS: Final = {
    "CaseForm": ("A case", "cases"),
    "ContextForm": ("Context", ""),
    "FileOfSkill": ("A file of the skill", "files of the skill"),
    "MessageForm": ("A message", "messages"),
    "SandboxForm": ("Sandbox", ""),
    "DefaultsForm": ("Defaults", ""),
    "TriggerForm": ("A trigger", "triggers"),
    "TriggerListsForm": ("Lists of triggers", ""),
    "Expected": ("Expected", "groups of checks"),
    "CodeForm": ("Code", ""),
    "CommandForm": ("A command", "commands"),
    "FileForm": ("A file of the workspace", "files of the workspace"),
    "NumberForm": ("A number", "numbers"),
    "PathForm": ("A JSON path", "JSON paths"),
}
# The page about an option or a command.
_PAGES: Final = {
    "--skill": "skills.md#finding-skills",
    "--model": "models.md",
    "--skill-base-url": "models.md",
    "--skill-no-prompt-cache": "models.md#prompt-caching",
    "--skill-runs": "running.md#fewer-runs",
    "--skill-references": "running.md#skills-with-more-than-one-file",
    "--skill-against": "compare.md",
    "--skill-aa": "statistics.md#a-skill-against-itself",
    "--skill-agent": "agents.md#real-agents",
    "--skill-sandbox": "agents.md#what-the-sandbox-promises",
    "--skill-noise": "triggers.md#among-many-skills",
    "--skill-judge": "judge.md",
    "--skill-batch": "batches.md",
    "--skill-batch-fallback": "batches.md#what-can-fail",
    "--skill-score": "statistics.md#checks",
    "--skill-allow-code": "skills.md#code-in-a-skills-folder",
    "--skill-accept": "ci.md#accepted-results",
    "--skill-accept=lower": "ci.md#accepting-again",
    "skill_drift": "ci.md#when-the-model-got-worse",
    "--skill-json": "reports.md#files-for-machines",
    "--skill-html": "reports.md#the-html-page",
    "--skill-markdown": "reports.md#a-comment-on-the-pull-request",
    "--skill-transcripts": "agents.md#transcripts",
    "skill_prices": "models.md#prices",
    "skill_history_size": "history.md#size-and-location",
    "init": "commands.md#init",
    "generate": "generate.md",
    "cases": "generate.md#cases-and-refine",
    "refine": "generate.md#cases-and-refine",
    "ablate": "parts.md",
    "triggers": "triggers.md#write-queries",
    "describe": "triggers.md#a-better-description",
    "install": "install.md",
    "list": "commands.md#list",
    "matrix": "matrix.md",
    "eval": "commands.md#eval-and-benchmark",
    "benchmark": "commands.md#eval-and-benchmark",
    "runs": "history.md",
    "report": "commands.md#report",
    "plan": "commands.md#plan",
    "lint": "lint.md",
    "models": "models.md",
    "doctor": "agents.md#what-works-here",
    "answers": "running.md#stored-answers",
    "judge": "judge.md",
    "schema": "cases.md#editor-support",
}


class ReferenceError(Exception):
    """A page that does not fit the code."""


def options(words: list[str]) -> list[str]:
    """A table of some options, and of keys that only the ini file has."""
    known = {option.flag: option for option in OPTIONS.values()}
    lines = ["| option, ini key | meaning | default |", "|---|---|---|"]
    for word in words:
        if word not in known:
            raise ReferenceError(f"there is no option {word}")
        option = known[word]
        metavar = option.arguments().get("metavar")
        names = [f"{word} {metavar}" if metavar else word] if option.flags else []
        help, page = option.help_text().replace("%%", "%"), _PAGES.get(word)
        meaning, default = _split_default(f"{help[0].upper()}{help[1:]}.")
        see = f" See [{_title(page)}]({page})." if page else ""
        written = "<br>".join(f"`{name}`" for name in [*names, option.ini])
        lines.append(_cells(written, f"{meaning}{see}", default))
    return lines


def _split_default(text: str) -> tuple[str, str]:
    """The text of a help without its default, and the default."""
    text = _CODE.sub(r"`\g<0>`", text.replace("%%", "%"))
    default = re.search(r" \(default:? (?P<value>[^)]+)\)", text)
    if not default:
        return text, ""
    return text.replace(default[0], "").replace("?.", "?"), default["value"]


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _title(page: str) -> str:
    """The heading that a link leads to."""
    name, _, anchor = page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / name).read_text("utf-8"), re.M)
    for heading in headings:
        if not anchor or anchor_of(heading) == anchor:
            return str(heading)
    raise ReferenceError(f"docs/{name} has no heading for #{anchor}")


def anchor_of(heading: str) -> str:
    """The anchor that GitHub and the site give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def commands(_: list[str]) -> list[str]:
    """A table of the commands of ``pytest-upskill``."""
    lines = ["| command | purpose | JSON |", "|---|---|---|"]
    for command in COMMANDS:
        page = _PAGES.get(command.name, f"arguments.md#{command.name}")
        made = "`-- --skill-json FILE`" if command.runs_pytest else _json_of(command.name)
        lines.append(f"| [`{command.name}`]({page}) | {command.help} | {made} |")
    return lines


def _json_of(name: str) -> str:
    for action in _arguments_of(name):
        if "--json" in action.option_strings:
            return f"`--json {action.metavar}`" if action.nargs is None else "`--json`"
    return "always" if name == "schema" else ""


def arguments(_: list[str]) -> list[str]:
    """A section for each command, with what its help says."""
    lines = list[str]()
    for command in COMMANDS:
        parser, page = _parsers()[command.name], _PAGES.get(command.name)
        about = " ".join((parser.description or "").split())
        lines += [
            f"## {command.name}",
            "",
            about + (f" See [{_title(page)}]({page})." if page else ""),
        ]
        lines += ["", "```text", command.example, "```", ""]
        lines += ["| argument | meaning | default |", "|---|---|---|"]
        lines += [_argument(action) for action in _arguments_of(command.name)]
        lines += ["", f"Exit status: {command.status}.", ""]
    return lines[:-1]


def _argument(action: argparse.Action) -> str:
    """A row, with the words of the help."""
    value = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
    names = action.option_strings or [""]
    shown = ", ".join(f"`{f'{name} {value}'.strip()}`" for name in names)
    text = " ".join((action.help or "").replace("%(default)s", str(action.default)).split())
    return _cells(shown, *_split_default(text[:1].upper() + text[1:]))


def _arguments_of(name: str) -> list[argparse.Action]:
    hidden = (argparse.SUPPRESS,)
    return [
        action
        for action in _parsers()[name]._actions
        if action.help not in hidden and "--help" not in action.option_strings
    ]


@cache
def _parsers() -> dict[str, argparse.ArgumentParser]:
    (found,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(found.choices)


def statuses(_: list[str]) -> list[str]:
    """A table of the exit status of each command."""
    lines = ["| command | exit status |", "|---|---|"]
    return lines + [f"| `{command.name}` | {command.status} |" for command in COMMANDS]


def schema(words: list[str]) -> list[str]:
    """A table of the keys of one object of skill_meta.json."""
    form = _form(words[0])
    checks = schema_of_cases()["$defs"]["Expected"]["properties"]
    own = {
        key: value
        for key, value in form["properties"].items()
        if key not in checks or words[0] not in ("FileForm", "CommandForm")
    }
    return _keys(own, form.get("required", ()))


def keys(words: list[str]) -> list[str]:
    """The keys of an object, where another table explains them."""
    return [", ".join(f"`{key}`" for key in _form(words[0])["properties"]) + "."]


def _form(name: str) -> dict[str, Any]:
    whole = schema_of_cases()
    return whole if name == "file" else dict[str, Any](whole["$defs"][name])


def checks(words: list[str]) -> list[str]:
    """A table of some checks."""
    known = schema_of_cases()["$defs"]["Expected"]["properties"]
    if missing := [word for word in words if word not in known]:
        raise ReferenceError(f"there is no check {missing[0]}")
    return _keys({word: known[word] for word in words}, ())


def _keys(properties: dict[str, Any], required: Collection[str]) -> list[str]:
    lines = ["| key | value | meaning |", "|---|---|---|"]
    for key, form in properties.items():
        said, example, value = form.get("description", "").partition(" Example: ")
        text = _CODE.sub(r"`\g<0>`", said) + (f"{example}`{value}`" if example else "")
        needed = " Required." if key in required else ""
        lines.append(_cells(f"`{key}`", value_in_words(form), f"{text}{needed}".strip()))
    return lines


def value_in_words(form: dict[str, Any], many: bool = False) -> str:
    """What a JSON schema allows, in words."""
    if "$ref" in form:
        heading, several = _FORMS[form["$ref"].rpartition("/")[2]]
        shown = several if many else heading[0].lower() + heading[1:]
        return f"[{shown}](schema.md#{anchor_of(heading)})"
    if choices := form.get("anyOf") or form.get("oneOf"):
        values = dict.fromkeys(
            value_in_words(one, many) for one in choices if one != {"type": "null"}
        )
        return " or ".join(values)
    if "enum" in form or "const" in form:
        return " or ".join(f"`{json.dumps(one)}`" for one in form.get("enum", [form.get("const")]))
    kinds = form.get("type", "anything")
    if isinstance(kinds, list):
        return " or ".join(_TYPES[kind][many] for kind in kinds if kind != "null")
    if kinds == "array" and form.get("items"):
        return f"list of {value_in_words(form['items'], many=True)}"
    if kinds == "object" and isinstance(form.get("additionalProperties"), dict):
        return f"object of {value_in_words(form['additionalProperties'], many=True)}"
    return _TYPES[kinds][many]


_TABLES: Final[dict[str, Callable[[list[str]], list[str]]]] = {
    table.__name__: table
    for table in (options, commands, arguments, statuses, schema, keys, checks)
}


def with_tables(text: str) -> str:
    """A page with its tables as of the code."""

    def written(found: re.Match[str]) -> str:
        lines = _TABLES[found["table"]](found["words"].split())
        return "\n".join([found["start"], *lines, "", found["end"]])

    return _BLOCK.sub(written, text)


def words_of(text: str, table: str) -> list[str]:
    """What the page names for all tables of this kind."""
    return [
        word
        for found in _BLOCK.finditer(text)
        if found["table"] == table
        for word in found["words"].split()
    ]


def results_schema_text() -> str:
    """The JSON schema of --skill-json, for ``results.schema.json``."""
    return json.dumps(results_schema(), indent=1) + "\n"


def main() -> None:
    (DOCS / RESULTS_SCHEMA).write_text(results_schema_text(), "utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text("utf-8")
        if (new := with_tables(text)) != text:
            page.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
