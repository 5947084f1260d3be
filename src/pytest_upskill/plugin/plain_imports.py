"""Import our own modules the ordinary way, without pytest's rewriting of asserts.

pytest rewrites every module of a distribution that has a plugin. That takes a fifth of a small
run, and where Python may not write, as in many containers, every run compiles every module again:
what pip compiled is of no use then. Our asserts need no explanations.

PYTEST_DONT_REWRITE
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

_OURS: Final = f"{__name__.partition('.')[0]}."


class PlainFinder:
    """Finds what is ours before pytest's finder does, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith(_OURS) else None


sys.meta_path.insert(0, PlainFinder)
