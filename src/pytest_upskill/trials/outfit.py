"""What an agent has in the trials of a skill: the task of each arm of a case."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..settings import Settings
from ..skills.case import Case
from ..skills.skill import Skill
from .installing import installed
from .task import Installed, StartFile, Task

if TYPE_CHECKING:
    from .trial import Arm


@dataclass(frozen=True)
class Outfit:
    """An agent with the skills that it has in each arm; its tasks differ in nothing else."""

    agent: str
    version: str
    skills: "Mapping[Arm, tuple[Installed, ...]]"
    max_turns: int
    image: str

    @classmethod
    def of(
        cls,
        agent: str,
        version: str,
        skill: Skill,
        settings: Settings,
        others: tuple[Installed, ...] = (),
        without: tuple[str, ...] = (),
    ) -> "Outfit":
        """``others`` are in all arms; ``without`` are files of the skill's cases."""
        folder = skill.file.parent
        skills: dict[Arm, tuple[Installed, ...]] = {
            "baseline": others,
            "skill": (installed(skill.name, folder, None, without, tested=True), *others),
        }
        if skill.previous is not None:
            then = installed(skill.name, folder, settings.against, without, tested=True)
            skills["previous"] = (then, *others)
        return cls(agent, version, skills, settings.max_turns, settings.image or "")

    def task(self, arm: "Arm", case: Case) -> Task:
        return Task(
            self.agent,
            self.version,
            start_files(case),
            skills=self.skills[arm],
            max_turns=self.max_turns,
            image=self.image,
        )


def start_files(case: Case) -> tuple[StartFile, ...]:
    """The files of a case's workspace."""
    return tuple(StartFile(path, text.encode("utf-8", "replace")) for path, text in case.files)
