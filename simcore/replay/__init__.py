"""What the graph of a measured run says: where its time goes, and what it would be with other durations."""
