"""What makes traces: each file knows one kind of run, and what its spans are called there."""
