"""Runs are kept, and a new one is compared with them."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:History")
