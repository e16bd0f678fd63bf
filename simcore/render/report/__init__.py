"""The report room: a run as a page of text, and as JSON. Computes nothing.

Import from its files: a command that prints one form does not pay for the other.
"""
