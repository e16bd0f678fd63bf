"""Schedules: in which order a stage does its micro-batches. A new one is a file and a line here.

Dialect astra-sim-1 has the loops of its policies instead (`policy_loops.POLICY_LOOPS`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simcore.program.stage_builder import StageBuilder

__all__ = ["SCHEDULES", "Schedule"]


class Schedule(NamedTuple):
    """name: of a file here and of the function in it. pipelined: stages wait for each other.

    chunked: a stage holds several chunks (virtual stages). splits_backward: weight gradients are
    put off, apart from the input gradients. bubble_slots: with stages alike, a stage's bubble is the slots of
    P - 1 micro-batches (chunks of them), forward and backward, of those that its step has.
    """

    name: str
    pipelined: bool
    chunked: bool = False
    splits_backward: bool = False
    bubble_slots: bool = False

    def build(self, stage: StageBuilder) -> None:
        """Puts one stage's step together."""
        # Loaded here: `--help` names all schedules, and a run has one.
        getattr(import_module(f"{__name__}.{self.name}"), self.name)(stage)


SCHEDULES: dict[str, Schedule] = {
    "layer-loop": Schedule("layer_loop", pipelined=False),
    "gpipe": Schedule("gpipe", pipelined=True, bubble_slots=True),
    "1f1b": Schedule("one_f_one_b", pipelined=True, bubble_slots=True),
    "interleaved": Schedule("interleaved", pipelined=True, chunked=True, bubble_slots=True),
    "zb-h1": Schedule("zb_h1", pipelined=True, splits_backward=True),
}
