"""Markdown for pull requests and CI job summaries."""
