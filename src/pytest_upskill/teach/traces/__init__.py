"""Traces of agents: read in many formats, and condensed to what teaches.

Secrets and home folders are masked in all that ``condensed`` returns.
"""

from .condensing import Condensed, condensed
from .reading import read_trace, teaching_turns

__all__ = ["Condensed", "condensed", "read_trace", "teaching_turns"]
