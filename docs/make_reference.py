"""Write the tables of the reference from the code (`make reference`).

A page names what belongs between two comments, and the rest of it is written by hand:

    <!-- reference: options --skill --model -->
    <!-- end -->
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pytest_upskill.cli.command_table import grouped_commands
from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.results.run_file import results_schema

DOCS: Final = Path(__file__).parent
RESULTS_SCHEMA: Final = "results.schema.json"
_BLOCK: Final = re.compile(
    r"(?P<start><!-- reference: (?P<table>\w+)(?P<words>[^>]*?)-->\n).*?(?P<end><!--"
    r" end -->)",
    re.S,
)
# In a sentence of help
_CODE: Final = re.compile(r"--[a-z-]+|[\w./]+\.(?:json|md|yaml)\b")
# The page about an option or a command.
_PAGES: Final = {
    "--skill": "skills.md#finding-skills",
    "--model": "models.md",
    "--skill-base-url": "models.md",
    "skill_prompt_cache": "models.md#prompt-caching",
    "--skill-references": "running.md#skills-with-more-than-one-file",
    "--skill-against": "compare.md",
    "--skill-aa": "statistics.md#a-skill-against-itself",
    "--skill-agent": "agents.md#real-agents",
    "--skill-login": "models.md#your-login",
    "--skill-sandbox": "agents.md#what-the-sandbox-promises",
    "--skill-noise": "triggers.md#among-many-skills",
    "--skill-judge": "judge.md",
    "skill_user_model": "agents.md#a-user-who-answers",
    "--skill-score": "statistics.md#checks",
    "--skill-allow-code": "skills.md#code-in-a-skills-folder",
    "--skill-accept": "ci.md#accepted-results",
    "--skill-accept=lower": "ci.md#accepting-again",
    "--skill-json": "reports.md#files-for-machines",
    "--skill-html": "reports.md#the-html-page",
    "--skill-markdown": "reports.md#a-comment-on-the-pull-request",
    "skill_prices": "models.md#prices",
    "skill_history_size": "compare.md#size-and-location",
    "try": "quickstart.md#try-it",
    "init": "commands.md#init",
    "generate": "generate.md",
    "cases": "generate.md#cases-and-refine",
    "refine": "generate.md#cases-and-refine",
    "ablate": "studies.md#which-parts-earn-their-tokens",
    "triggers": "triggers.md#write-queries",
    "describe": "triggers.md#a-better-description",
    "list": "commands.md#list",
    "matrix": "studies.md#what-skills-do-to-each-other",
    "drift": "studies.md#when-a-model-is-released",
    "route": "studies.md#which-skill-a-query-opens",
    "eval": "commands.md#eval-and-benchmark",
    "benchmark": "commands.md#eval-and-benchmark",
    "runs": "compare.md#results-over-time",
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
        first, *others = (f"`{name}`" for name in [*names, option.ini])
        linked = f"[{first}]({_existing(page)})" if page else first
        lines.append(_cells("<br>".join([linked, *others]), meaning, default))
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


def _existing(page: str) -> str:
    """The address of a page, if it has the heading that the address names."""
    name, _, anchor = page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / name).read_text("utf-8"), re.M)
    if anchor and anchor not in map(anchor_of, headings):
        raise ReferenceError(f"docs/{name} has no heading for #{anchor}")
    return page


def anchor_of(heading: str) -> str:
    """The anchor that GitHub and the site give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def commands(_: list[str]) -> list[str]:
    """A table for each group of commands: one line and one example for each."""
    lines = []
    for group, members in grouped_commands().items():
        lines += ["", f"| {group} | purpose | example |", "|---|---|---|"]
        for command in members:
            name = f"[`{command.name}`]({_existing(_PAGES[command.name])})"
            lines.append(_cells(name, command.help, f"`{command.example}`"))
    return lines[1:]


_TABLES: Final[dict[str, Callable[[list[str]], list[str]]]] = {
    "options": options,
    "commands": commands,
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
