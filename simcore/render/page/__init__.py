"""The page room: a run, or two on one axis, as one HTML file that loads nothing from any network."""
