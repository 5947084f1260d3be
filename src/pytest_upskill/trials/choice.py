"""The choice of a skill by its description: how skills are listed to a model,
and what it chose.

Our own agent lists skills in this form. A model without an agent is asked
once, with the same list and one tool that loads a skill; one that takes
no tools replies with JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Final

from .._util.files import read_file
from .._util.json_forms import objects_in
from .._util.texts import one_line
from ..skills.folder import SKILL_NAMES
from ..skills.skill import SkillSummary, summary_of
from .answer import Answer, without_reasoning
from .arm import Arm, SkillCopy
from .transcript import Activity, Tool, ToolCall
from .written_calls import is_called

SKILLS_INTRO: Final = (
    "These skills are installed. If one fits the task by its description, load its"
    " instructions with the skill tool before you begin, and follow them."
)
_JSON_INTRO: Final = (
    "These skills are installed. If one fits the user's task by its description, its"
    " instructions are to be loaded before you begin. Don't begin yet: choose."
)
BY_JSON: Final = "chosen by JSON schema, as this model takes no tools"  # a finding
_TOOL: Final = "skill"
_QUOTES: Final = " \t\r\n\"'`."
_MOST_TEXT: Final = 100_000  # characters of a reply in which a choice is looked for


@dataclass(frozen=True)
class Listed:
    """A skill as a list shows it."""

    name: str
    description: str
    location: str = ""  # of its SKILL.md, if there is a way to read it


@dataclass(frozen=True)
class Choice:
    """Skills that a model chooses from, some of which are under test."""

    tested: tuple[str, ...]  # their names
    skills: tuple[Listed, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(skill.name for skill in self.skills)

    @property
    def none(self) -> str:
        """What stands for no skill in a reply by schema."""
        word = "none"
        while word in self.names:
            word = f"{word} of them"
        return word

    @property
    def schema(self) -> str:
        names = {"type": "string", "enum": [*self.names, self.none]}
        return _object({"skill": names})

    @property
    def by_tool(self) -> str:
        """The system text for a model that may call the tool."""
        return skill_list(self.skills)

    @property
    def by_schema(self) -> str:
        """The system text for a model that replies with JSON."""
        form = json.dumps({"skill": "NAME"})
        instruction = (
            f"Reply with {form} and nothing else. If no skill fits, the name is"
            f" {self.none!r}."
        )
        return f"{skill_list(self.skills, _JSON_INTRO)}\n\n{instruction}"

    def called_in(self, answer: Answer) -> Activity:
        """What a reply with the tool chose. A text that names a skill is no choice."""
        opened, findings = list[str](), list[str]()
        for call in answer.calls:
            if call.name != _TOOL and (named := self._skills_called(call.name)):
                opened += named
            elif call.name != _TOOL:
                findings.append(
                    f"called a tool that is not there: {one_line(call.name, 60)}"
                )
            elif name := self._named_in(call):
                opened.append(name)
            else:
                findings.append(
                    f"chose no skill that is there: {one_line(call.arguments, 100)}"
                )
        return self._activity(opened, findings, len(answer.calls))

    def written_in(self, answer: Answer) -> Activity | None:
        """What a reply with JSON chose, also with words around it;
        None if that can't be told.
        """
        text = without_reasoning(answer.text)[:_MOST_TEXT]
        values = (reply.get("skill") for reply, _ in objects_in(text))
        chosen = {value.strip() for value in values if isinstance(value, str)}
        bare = text.strip(_QUOTES)
        if not chosen and bare in (*self.names, self.none):
            chosen = {bare}
        if len(chosen) != 1:
            return None
        (name,) = chosen
        findings = [BY_JSON]
        if name not in (*self.names, self.none):
            findings.append(f"chose no skill that is there: {one_line(name, 100)}")
        return self._activity([name] if name in self.names else [], findings, 0)

    def _named_in(self, call: ToolCall) -> str:
        """The skill that a call names, whatever it calls the argument; else empty."""
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return ""
        values = (
            list(arguments.values()) if isinstance(arguments, dict) else [arguments]
        )
        named = [
            value for value in values if isinstance(value, str) and value in self.names
        ]
        return named[0] if len(named) == 1 else ""

    def _skills_called(self, tool: str) -> list[str]:
        """The skills that a model called as if they were tools."""
        return [name for name in self.names if is_called(name, tool)]

    def _activity(self, opened: list[str], findings: list[str], calls: int) -> Activity:
        once = tuple(dict.fromkeys(opened))
        notes = tuple(dict.fromkeys(findings))
        return Activity(
            1, calls, any(name in once for name in self.tested), once, findings=notes
        )


@lru_cache(maxsize=16)  # one for all queries of a skill
def choice_of(arm: Arm) -> Choice:
    """What a model without an agent chooses from: the skills of an arm."""
    summaries = (
        (skill.name, _summary(skill)) for skill in arm.skills if not skill.plugin
    )
    listed = (
        Listed(name, summary.description)
        for name, summary in summaries
        if not summary.users_only
    )
    return Choice(arm.tested, tuple(listed))


def _summary(skill: SkillCopy) -> SkillSummary:
    """Empty if the skill can't be read, as an agent would not know it either."""
    if skill.text:
        return summary_of(skill.text.encode())
    for name in SKILL_NAMES:
        try:
            return summary_of(read_file(Path(skill.folder, name)))
        except OSError:
            continue
    return SkillSummary("", "")


def skill_list(skills: Sequence[Listed], intro: str = SKILLS_INTRO) -> str:
    """Names, descriptions and locations, as agentskills.io's
    guide for clients writes them.
    """
    if not skills:
        return ""
    entries = "".join(map(_entry, skills))
    return f"{intro}\n\n<available_skills>\n{entries}</available_skills>"


def skill_tool(names: Sequence[str]) -> Tool:
    """The tool that loads a skill."""
    form = {"name": {"type": "string", "enum": list(names)}}
    return Tool(_TOOL, "Load the instructions of a skill.", _object(form))


def _entry(skill: Listed) -> str:
    location = (
        f"    <location>{_xml(skill.location)}</location>\n" if skill.location else ""
    )
    return (
        "  <skill>\n"
        f"    <name>{_xml(skill.name)}</name>\n"
        f"    <description>{_xml(skill.description)}</description>\n"
        f"{location}"
        "  </skill>\n"
    )


def _xml(text: str) -> str:
    return escape(text.strip(), quote=False)


def _object(properties: Mapping[str, object]) -> str:
    form = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return json.dumps(form)
