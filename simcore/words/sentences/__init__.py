"""The catalogue of sentences on runs, a file a subject: see `simcore/words/rules.py`."""
