"""The terminal that the screen runs in: what it can show, what is sent to it and when, how it is left."""
