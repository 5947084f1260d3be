"""The report as one HTML file: a viewer, and the results as its data."""

from .page import run_page

__all__ = ["run_page"]
