"""Schedules: in which order a stage does its micro-batches. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simcore.program.schedules.layer_loop import layer_loop
from simcore.program.schedules.one_f_one_b import one_f_one_b
from simcore.program.stage_builder import StageBuilder


class Schedule(NamedTuple):
    """build: puts one stage's step together. pipelined: stages wait for each other."""

    build: Callable[[StageBuilder], None]
    pipelined: bool


SCHEDULES: dict[str, Schedule] = {
    "layer-loop": Schedule(layer_loop, pipelined=False),
    "1f1b": Schedule(one_f_one_b, pipelined=True),
}
