"""Tests in Python: ``@pytest.mark.skill("skills/x")`` and the fixture ``ask``."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(plugin="plugin:PythonTests")
