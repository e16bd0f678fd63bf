"""Sentences on runs of traces, measured or executed, a file a subject; see `simcore/words/rules.py`."""
