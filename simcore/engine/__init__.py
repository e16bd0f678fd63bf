"""The engine room: runs a program, one actor per rank class, and gives each op start and end.

Knows ops, prices and rendezvous; nothing of files or of how a price came about.
Import from here: `run_engine`, `Times`, `Traffic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simcore.engine.event_queue import Engine, Times
from simcore.folding import Folding
from simcore.program import Program

if TYPE_CHECKING:
    from simcore.engine.shared_queue import Traffic


def run_engine(
    program: Program,
    folding: Folding,
    durations: Sequence[Sequence[int]],
    cancelled: Callable[[], bool] = lambda: False,
    traffic: Traffic | None = None,
) -> Times:
    """Run one step. durations[c][i]: ns of op i of rank class c, communication on an idle network.

    traffic: what communication puts on ports that others use too; without it nothing slows
    it down. Raises `Cancelled` when `cancelled()` becomes true, RuntimeError if the program waits
    for something that nobody does (a defect of a schedule, never of an input).
    """
    if traffic is None:
        return Engine(program, folding, durations, cancelled).run()
    # Imported here: the common run has no use for it.
    from simcore.engine.shared_queue import SharedEngine

    return SharedEngine(program, folding, durations, traffic, cancelled).run()


__all__ = ["Times", "run_engine"]
