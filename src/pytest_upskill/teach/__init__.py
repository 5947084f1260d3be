"""From a task, a trace or a skill to a skill that was shown to help."""
