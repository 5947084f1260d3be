"""Real agents: how they are started, and where their skills go."""
