"""Accepted results: what a model reached with a skill, which later runs must reach."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(
    plugin="plugin:AcceptedResults",
    compare="results:compare",
    kept="results:read_results",
)
