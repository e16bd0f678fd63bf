"""Why the step takes that long: the critical path, what it is made of, and what would shorten it."""
