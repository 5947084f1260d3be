"""Reports of a run in files, and in the summary of a GitHub job."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:Reports")
