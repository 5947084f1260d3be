"""Arms, trials and the plan of a run; answers and records."""
