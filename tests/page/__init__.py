"""Pages that a browser opens: what is on them, and how they behave there."""
