"""Runs over time: tables, plots and a page."""
