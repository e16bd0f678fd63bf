"""The terminal that the screen runs in: what is sent to it and when, how it is left."""
