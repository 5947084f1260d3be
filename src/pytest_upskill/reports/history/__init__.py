"""Kept runs: tables, plots and a page."""
