"""What makes traces: each file knows one kind of run, and the names of its spans."""
