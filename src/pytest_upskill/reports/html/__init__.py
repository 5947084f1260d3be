"""The report as one HTML file without any other files."""

from .markup import shell
from .report_page import html_report

__all__ = ["html_report", "shell"]
