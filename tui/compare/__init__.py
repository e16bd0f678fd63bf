"""Two runs on one time axis: lanes in pairs, what differs, and why."""
