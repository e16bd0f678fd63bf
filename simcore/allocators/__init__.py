"""Memory snapshots as a run: the timeline of allocators, its lanes and their words."""
