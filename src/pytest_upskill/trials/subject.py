"""Who carries out a case: an agent on a model."""

from typing import Final, NamedTuple

from ..skills.kinds import kinds_by_agent

# No agent: one completion with the skill's text in the system text
CHAT: Final = "chat"

_WITH_PLUGINS: Final = ("claude",)


def takes_plugins(agent: str) -> bool:
    """Whether an agent installs a plugin as a whole; others have its skills only."""
    return agent.partition("@")[0] in _WITH_PLUGINS


def asks_model(agent: str) -> bool:
    """Whether an agent asks a model; one of a kind of cases does not."""
    return agent not in kinds_by_agent()


def works_on_model(agent: str) -> bool:
    """Whether it is an agent that asks a model: no plain completion."""
    return agent != CHAT and asks_model(agent)


class Subject(NamedTuple):
    """An agent on a model, both by the names that people gave."""

    agent: str
    model: str

    @property
    def label(self) -> str:
        """Its name in node ids, results and reports; a plain
        completion has that of its model.
        """
        if not asks_model(self.agent):
            return self.agent
        return self.model if self.agent == CHAT else f"{self.agent}/{self.model}"


class SkillOnSubject(NamedTuple):
    """A skill on an agent and model: what a verdict is about."""

    skill: str
    subject: Subject

    def __str__(self) -> str:
        return f"{self.skill} on {self.subject.label}"


class WithSubject:
    """A value that has an agent and its model as fields."""

    __slots__ = ()
    agent: str
    model: str

    @property
    def subject(self) -> Subject:
        return Subject(self.agent, self.model)

    @property
    def label(self) -> str:
        return self.subject.label


class WithPair(WithSubject):
    """A value that also has a skill as a field."""

    __slots__ = ()
    skill: str

    @property
    def pair(self) -> SkillOnSubject:
        return SkillOnSubject(self.skill, self.subject)
