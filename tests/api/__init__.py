"""The front door from Python."""
