"""Reports: pure functions, values in, text out."""
