"""Parameters as people write them: their values, the words that a flag takes, their file."""
