"""Test Agent Skills with pytest: each case asked with and without SKILL.md, on every model."""

__version__ = "0.1.0"
