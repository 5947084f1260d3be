"""Who carries out a case: an agent on a model."""

from typing import Final, NamedTuple

CHAT: Final = "chat"  # no agent: one completion with the skill's text in the system text


class Subject(NamedTuple):
    """An agent on a model, both by the names that people gave."""

    agent: str
    model: str

    @property
    def label(self) -> str:
        """Its name in node ids, results and reports; a plain completion has that of its model."""
        return self.model if self.agent == CHAT else f"{self.agent}/{self.model}"

    @classmethod
    def of(cls, agent: str, label: str) -> "Subject":
        """The agent and model that a label stands for."""
        return cls(agent, label if agent == CHAT else label.removeprefix(f"{agent}/"))
