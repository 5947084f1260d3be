"""Real agents, one file each: how they are started, and where their skills go."""
