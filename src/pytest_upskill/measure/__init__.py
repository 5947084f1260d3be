"""From model names to an engine, and from cases to results."""
