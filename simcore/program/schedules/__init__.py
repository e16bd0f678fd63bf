"""Schedules: in which order a stage does its micro-batches. A new one is a file and a line here.

Dialect astra-sim-1 has the loops of its policies instead (`POLICY_LOOPS`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simcore.program.schedules.gpipe import gpipe
from simcore.program.schedules.interleaved import interleaved
from simcore.program.schedules.layer_loop import layer_loop
from simcore.program.schedules.one_f_one_b import one_f_one_b
from simcore.program.schedules.policy_loops import POLICY_LOOPS
from simcore.program.schedules.zb_h1 import zb_h1
from simcore.program.stage_builder import StageBuilder

__all__ = ["POLICY_LOOPS", "SCHEDULES", "Schedule"]


class Schedule(NamedTuple):
    """build: puts one stage's step together. pipelined: stages wait for each other.

    chunked: a stage holds several chunks (virtual stages). splits_backward: weight gradients are
    put off, apart from the input gradients: each are passes of their own.
    """

    build: Callable[[StageBuilder], None]
    pipelined: bool
    chunked: bool = False
    splits_backward: bool = False


SCHEDULES: dict[str, Schedule] = {
    "layer-loop": Schedule(layer_loop, pipelined=False),
    "gpipe": Schedule(gpipe, pipelined=True),
    "1f1b": Schedule(one_f_one_b, pipelined=True),
    "interleaved": Schedule(interleaved, pipelined=True, chunked=True),
    "zb-h1": Schedule(zb_h1, pipelined=True, splits_backward=True),
}
