"""Commands that a skill drives: a stand-in answers, by ``evals/commands/NAME.yaml``."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(part="reading:CommandFiles", checks="checks")
