"""Parameters as people write them: their values, what a flag may be, their file."""
