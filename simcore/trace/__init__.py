"""Traces: what ran on which track and when, whatever it came from, and what follows from that alone."""
