"""The analysis room: what a simulated timeline means, in the field's words."""
