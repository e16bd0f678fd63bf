"""Digests of what wltui prints, one a part, so that a change of the program shows which figures it moves.

See README.md here. `cases.py` says what is run, `running.py` runs it, `parts.py` takes an output apart,
`kept.py` reads, writes and compares the files; `python -m tests.digests` writes them anew.
"""
