"""MCP servers that mocks stand in for: ``evals/mocks/SERVER/TOOL.md``."""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(part="mocks:McpMocks", checks="checks")
