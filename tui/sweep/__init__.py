"""Screen 7: the points of a sweep as a table beside their scatter plot, while they come in and afterwards."""
