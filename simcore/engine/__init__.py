"""The engine room: runs a program, one actor per rank class, and gives each op start and end.

Knows ops, prices and rendezvous; nothing of files or of how a price came about.
Import from here: `Engine`, `Times`.
"""

from simcore.engine.event_queue import Engine, Times

__all__ = ["Engine", "Times"]
