"""A version of a skill's description: asked for, checked, and measured as a real skill."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._util.files import read_file, replace_file
from .._util.texts import one_line, visible
from ..errors import InputError, spelled
from ..lint.skill_rules import lint_skill_file
from ..skills.description import with_description
from ..skills.folder import read_text
from ..skills.skill import LONGEST_DESCRIPTION, Skill, load_skill
from ..skills.triggers import Trigger
from .drafts import copy_taught
from .query_scores import Scores, scores_of
from .replies import DESCRIPTION_SCHEMA, Loose, NotUsable, Request, ask_for, no_answer, read_reply
from .secrets import masked
from .teach_models import TeachModels
from .trigger_prompts import DESCRIBER

_MOST_QUERY: Final = 400  # characters that the teacher is shown
_MOST_OTHERS: Final = 20_000


class DescriptionForm(Loose):
    description: str


@dataclass(frozen=True)
class Wording:
    """A SKILL.md with a description; all versions differ in nothing else."""

    description: str
    text: str
    base: Skill
    scratch: Path

    def with_other(self, description: str) -> "Wording":
        text = with_description(self.text, description)
        if text is None:
            raise InputError(
                self.base.file,
                "the description can't be changed without changing more",
                "Fix what pytest-upskill lint finds in the frontmatter first.",
            )
        return Wording(description, text, self.base, self.scratch)

    @contextmanager
    def loaded(self) -> Iterator[Skill]:
        """The skill with this description, in a folder that is there as long."""
        folder = self.base.file.parent
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=self.scratch) as made:
            copy = Path(made, folder.absolute().name)
            copy.mkdir()
            copy_taught(folder, copy)
            file = copy / self.base.file.name
            replace_file(file, self.text.encode())
            yield load_skill(file)


def wording_of(skill: Skill, scratch: Path) -> Wording:
    """The skill as it is; InputError if its description can't be changed."""
    read_text(skill.file)  # a SkillError if it is no text, or lies elsewhere
    exact = read_file(skill.file).decode()  # with its own line ends
    now = Wording(skill.description.strip(), exact, skill, scratch)
    now.with_other("Do something else.")
    return now


def ask_for_description(
    models: TeachModels, prompt: str, current: Wording, session: int
) -> Wording:
    """Another description by the teacher; UnusableError if it is still not valid after a repair."""
    request = Request(models.teacher, DESCRIBER, masked(prompt), DESCRIPTION_SCHEMA, session)
    return ask_for(models, request, lambda text: read_description(text, current))


def read_description(text: str, current: Wording) -> Wording:
    """The description of a reply, never shortened; NotUsable says what is wrong with it."""
    said = " ".join(read_reply(text, DescriptionForm).description.split())
    if not said:
        raise NotUsable(["the description is empty"])
    if len(said) > LONGEST_DESCRIPTION:
        what = f"the description has {len(said):,} characters (limit {LONGEST_DESCRIPTION:,})"
        raise NotUsable([f"{what}: say it in fewer words"])
    if visible(said) != said or "<" in said or ">" in said:
        raise NotUsable(["the description has markup, or characters that can't be seen"])
    if masked(said) != said:
        raise NotUsable(["the description has something that looks like a secret or an address"])
    other = current.with_other(said)
    if problems := _new_errors(current, other):
        raise NotUsable(problems)
    return other


def _new_errors(current: Wording, other: Wording) -> list[str]:
    """What the linter minds about the new one and not about the current one."""
    before, after = (_errors(one) for one in (current, other))
    return [text for text in after if text not in before]


def _errors(wording: Wording) -> list[str]:
    with wording.loaded() as skill:
        found = [one for one in lint_skill_file(skill.file) if one.level == "error"]
    return [one_line(f"{one.message}. {spelled(one.hint)}", 300) for one in found]


def measure_queries(models: TeachModels, wording: Wording, triggers: Sequence[Trigger]) -> Scores:
    """All queries on all students; TeachError if one could not be decided."""
    with wording.loaded() as skill:
        decided = models.decide(skill, triggers)
        name = skill.name
    for _, record in decided:
        if record.outcome == "errored":
            raise no_answer(models, record.error or "no answer")
    return scores_of(decided, name)


def others_text(models: TeachModels, skill: Skill) -> str:
    """The skills that are installed beside it, as a list for the teacher."""
    lines = [f"- {one.name}: {one_line(one.description, 300)}" for one in models.others(skill)]
    return masked("\n".join(lines)[:_MOST_OTHERS])


def query_report(scores: Scores) -> str:
    """What students did with each query, the worst first: part of a prompt."""
    rows = list[tuple[float, str]]()
    students = list(scores.by_student.values())
    for number, (query, (should, right)) in enumerate(scores.by_query.items()):
        own = [rate for rates in students for rate in rates if rate.case == query]
        opened, runs = sum(one.opened for one in own), sum(one.runs for one in own)
        instead: dict[str, int] = {}
        for one in own:
            for name, times in one.instead.items():
                instead[name] = instead.get(name, 0) + times
        wish = "should open the skill" if should else "should not open the skill"
        others = "".join(f"; {name} was opened instead {times}x" for name, times in instead.items())
        text = one_line(own[0].query, _MOST_QUERY)
        rows.append(
            (right + number / 1e6, f"- {wish}; opened in {opened} of {runs}{others}: {text}")
        )
    return "\n".join(line for _, line in sorted(rows))
