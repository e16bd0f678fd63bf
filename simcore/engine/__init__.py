"""The engine room: runs a program with one actor per rank class and gives each op its start and end.

The room knows ops, prices and rendezvous; it knows nothing of files or of how a price came about.
Import from here: `Engine`, `Times`.
"""

from simcore.engine.event_queue import Engine, Times

__all__ = ["Engine", "Times"]
