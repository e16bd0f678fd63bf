"""What follows from the graph of a measured run: where its time goes, and the step with other durations."""
