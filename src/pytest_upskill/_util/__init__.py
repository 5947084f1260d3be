"""Helpers for every other package: texts, files, JSON with line numbers, git."""
