"""One HTML file that needs nothing but itself."""

from .markup import shell
from .report_page import html_report

__all__ = ["html_report", "shell"]
