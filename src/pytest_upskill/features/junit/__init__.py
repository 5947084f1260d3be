"""Numbers of skills as properties in the file of --junitxml."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:JUnit")
