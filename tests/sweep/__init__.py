"""Sweeps: spaces, conditions, results, the front, and what runs them."""
