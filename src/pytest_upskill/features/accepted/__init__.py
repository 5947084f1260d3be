"""Accepted results: what a model reached with a skill, which later runs must reach."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(
    plugin="plugin:Accepted",
    compare="comparison:compare",
    kept="file:kept_results",
)
