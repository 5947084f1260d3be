"""What a feature sets up around the trials of a case."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

from ..trials.answer import Answer
from .sandboxes.sandbox import Sandbox

AddToAnswer = Callable[[Answer], Answer]


class TrialPart(ABC):
    """What stands around each trial of a case, the same in all arms: a frozen value."""

    path: ClassVar[str] = ""  # a folder inside that comes first on PATH

    @property
    @abstractmethod
    def digest(self) -> str:
        """A key of all of it that can shape an answer."""

    @abstractmethod
    def around(self, sandbox: Sandbox) -> AbstractAsyncContextManager[AddToAnswer]:
        """Prepare an open sandbox before its agent starts, and clean up once it ended.

        The block is given what then adds to the answer.
        """
