"""The terminal that the screen runs in: what is sent to it and when, and how it is restored at the end."""
