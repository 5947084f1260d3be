"""What studies found, in a terminal: below the summary of tests, or by itself."""

from ...results.run import RunResults
from .layout import Look
from .matrix_lines import neighbour_lines


def study_lines(results: RunResults, look: Look) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    blocks = [neighbour_lines(one, look) for one in results.matrices]
    return [line for block in blocks for line in ("", *block)]
