"""Traces of agents: read, whatever made them, and condensed to what teaches.

Everything that leaves here by ``condensed`` is masked: no key, no password, no path of a home.
"""

from .condensing import Condensed, condensed
from .reading import read_trace
from .turns import Trace

__all__ = ["Condensed", "Trace", "condensed", "read_trace"]
