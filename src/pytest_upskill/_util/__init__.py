"""What every other package may use: texts, files, JSON with line numbers, git."""
