"""The engine room: runs a program, one actor per rank class, and gives each op start and end.

Knows ops, prices and rendezvous; nothing of files or of how a price came about.
Import from here: `run_engine`, `Times`.
"""

from simcore.engine.event_queue import Times, run_engine

__all__ = ["Times", "run_engine"]
