"""Screen 7: the points of a sweep as a table next to their scatter plot, while they arrive and afterwards."""
