"""``pytest-upskill matrix``: what skills do to each other, measured pair by pair."""

import argparse
from collections.abc import Sequence

from ...measure.matrix import matrix_studies
from ...measure.study import Study
from ...reports.terminal.layout import Look
from ...reports.terminal.study_lines import study_lines
from ...results.run import RunResults
from ..studying import Desk, add_study_arguments, run_studies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_study_arguments(parser, "matrix")


def run(given: argparse.Namespace) -> tuple[str, int]:
    return run_studies(given, _plan, _lines, status=_status)


def _plan(desk: Desk) -> Sequence[Study]:
    return matrix_studies(desk.sources, desk.subjects, desk.lab.looks)


def _lines(results: RunResults, look: Look) -> Sequence[str]:
    return study_lines(results, look)[1:]


def _status(results: RunResults) -> int:
    """1 if a pair is shown to hurt; ``run_studies`` sees to missing answers."""
    return int(any(matrix.found("hurts") for matrix in results.matrices))
