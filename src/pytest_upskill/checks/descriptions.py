"""What editors say of each check: a sentence and an example.

``{it}`` is what is looked at: the answer, or the text of a file, or the output of a command.
"""

import json
from typing import Any, Final, NamedTuple


class About(NamedTuple):
    """A sentence on a check, and a value that it may have."""

    text: str
    example: Any = None

    def schema(self, it: str = "the answer") -> dict[str, Any]:
        """For the JSON schema: an editor shows the description and offers the example."""
        text = self.text.replace("{it}", it)
        if self.example is None:
            return {"description": text}
        shown = json.dumps(self.example, ensure_ascii=False)
        return {"description": f"{text} Example: {shown}", "examples": [self.example]}


ABOUT: Final = {
    # text
    "contains": About("All of these texts are in {it}. One text, or a list.", ["9.0", "sm_90"]),
    "contains_any": About("At least one of these texts is in {it}.", ["wick ember", "wick undo"]),
    "not_contains": About("None of these texts is in {it}.", ["kubectl"]),
    "words": About(
        "Each of these stands in {it} as a whole word, not as a part of a longer one.", ["porch"]
    ),
    "equals": About("This is the whole of {it}, but for blanks around it.", "wick kindle"),
    "starts_with": About("How {it} begins, after any blanks.", "fix("),
    "ends_with": About("How {it} ends, before any blanks.", "done."),
    "regex": About(
        "Each pattern matches somewhere in {it}; write every backslash twice.", r"v\d+\.\d+"
    ),
    "not_regex": About("No pattern matches anywhere in {it}.", r"\bTODO\b"),
    "min_words": About("The fewest words that {it} may have.", 20),
    "max_words": About("The most words that {it} may have.", 100),
    "max_chars": About("The most characters that {it} may have.", 72),
    "max_output_tokens": About("The most tokens that the model may write.", 200),
    "max_seconds": About("The longest time that the answer may take.", 10),
    "refused": About(
        "Whether the model has to refuse. Without this check, a refusal fails.", example=True
    ),
    "stop": About("Why the model stopped: end, length, refusal, or the word of its server.", "end"),
    # data
    "json": About("True: there is valid JSON in {it}, in a fence or alone.", example=True),
    "json_schema": About(
        "JSON in {it} that fits this JSON schema.", {"type": "object", "required": ["name"]}
    ),
    "json_path": About(
        "A value in the JSON of {it}: there at all, or equal to something.",
        {"path": "$.items[0].id", "equals": 7},
    ),
    "yaml": About("True: there is a YAML mapping or list in {it}.", example=True),
    "toml": About("True: there is TOML with at least one key in {it}.", example=True),
    "number": About(
        "This number is in {it}, exactly or within a tolerance.", {"value": 1200, "tolerance": 5}
    ),
    "csv_columns": About("CSV in {it} whose header has these columns.", ["id", "name"]),
    # code
    "code": About(
        "A block of this language is in the answer, and what has to be in it.",
        {"language": "python", "parses": True, "imports": "numpy"},
    ),
    "parses": About(
        "Every block of this language parses: python, json, toml, yaml or shell. Nothing is run.",
        "shell",
    ),
    "defines": About(
        "Functions, classes, methods or constants that the Python of the answer defines.",
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
        "What an agent left in its workspace, by path: exists, absent, or checks of the file.",
        {"report.md": {"contains": "Total"}, "tmp.txt": "absent"},
    ),
    "unchanged": About("Files of the start that an agent has to leave as they are.", ["data.csv"]),
    "command": About(
        "A command that succeeds in a copy of the workspace, after the agent; or several.",
        {"run": "pytest -q", "contains": "3 passed"},
    ),
    "tools_used": About("Tools that an agent has to call, each at least once.", ["bash", "write"]),
    "tools_not_used": About("Tools that an agent must not call.", ["web_search"]),
    "tool_order": About(
        "Tools that an agent calls in this order, with any others between.", ["read", "write"]
    ),
    "commands_run": About("Patterns, each matched by a shell command of an agent.", "pytest( -q)?"),
    "commands_not_run": About("Patterns that no shell command of an agent matches.", r"\brm -rf\b"),
    "max_turns": About("The most replies of the model until an agent is done.", 5),
    "max_tool_calls": About("The most calls of tools until an agent is done.", 8),
    "skill_activated": About("Whether an agent has to open the skill.", example=True),
    "references_read": About(
        "Files of the skill that an agent has to read.", ["references/forms.md"]
    ),
    "scripts_run": About("Scripts of the skill that an agent has to run.", ["scripts/fill.py"]),
    # a judge, and groups
    "judge": About(
        "Criteria, each ruled on by the judge model of the run.",
        ["It names the command and says how to undo it."],
    ),
    "all_of": About(
        "Groups of checks that all have to pass.", [{"contains": "a"}, {"contains": "b"}]
    ),
    "any_of": About(
        "Groups of checks, one of which has to pass.", [{"contains": "a"}, {"words": "b"}]
    ),
    "not": About("A group of checks that must not pass as a whole.", {"contains": ["a", "b"]}),
}
