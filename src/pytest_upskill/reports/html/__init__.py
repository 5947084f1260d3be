"""One HTML file that needs nothing but itself."""

from .page import html_report
from .shell import shell

__all__ = ["html_report", "shell"]
