"""What wltui states of chosen runs, kept, so that a change of the program shows which figures it moves.

See README.md here. `cases.py` says what is run, `facts.py` takes the facts of it by part, `golden.py` keeps
them as JSON that one reads, `kept.py` as digests; `python -m tests.digests` writes both anew.
"""
