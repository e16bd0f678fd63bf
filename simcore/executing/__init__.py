"""Runs execution traces, by wltui's rules or ASTRA-sim 2.x's, and returns the results."""
