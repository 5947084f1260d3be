"""Teacher and student: a strong model writes a skill and its cases, cheap ones use it."""
