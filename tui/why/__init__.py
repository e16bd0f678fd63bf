"""Why the step takes that long: the critical path, its parts, and what would shorten it."""
