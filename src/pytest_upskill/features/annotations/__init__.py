"""What failed, as GitHub shows it at the lines of a pull request."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:Annotations")
