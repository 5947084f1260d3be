"""What studies found, in a terminal: below the summary of tests, or by itself."""

from ...results.run import RunResults
from ..curve import curve_lines
from .layout import Look
from .matrix_lines import neighbour_lines
from .part_lines import part_lines


def study_lines(results: RunResults, look: Look) -> list[str]:
    """A block for each study, with a blank line before it; nothing without one."""
    blocks = [neighbour_lines(one, look) for one in results.matrices]
    for one in results.parts:
        blocks += [part_lines(one, look), curve_lines(one, look)]
    return [line for block in filter(None, blocks) for line in ("", *block)]
