"""The page room: a run, or two on one axis, as one HTML file that asks nothing of any network."""
