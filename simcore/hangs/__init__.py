"""A hung job as a run: the timeline of its flight recorder dumps, its lanes and their words."""
