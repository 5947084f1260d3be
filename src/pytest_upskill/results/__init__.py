"""What came of a run: summaries, verdicts, accepted results, comparisons, files,
history.
"""
