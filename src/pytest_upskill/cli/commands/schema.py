"""``pytest-upskill schema``: print the JSON schema of skill_meta.json, for editors."""

import argparse

from ...checks.skill_meta_schema import schema_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(given: argparse.Namespace) -> tuple[str, int]:  # noqa: ARG001
    return schema_text().rstrip("\n"), 0
