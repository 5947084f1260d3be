"""--skill-record: every answer that a run used, in a file to replay."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:Recording")
