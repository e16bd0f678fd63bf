"""Schedules: in which order a stage does its micro-batches. A new one is a file and a line here.

Dialect astra-sim-1 has the loops of its policies instead (`policy_loops.POLICY_LOOPS`).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from simcore.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simcore.program.order import Action, Order, Placement, Shape

__all__ = ["FROM_FILE", "FULL_GAIN", "INFERENCE", "SCHEDULES", "Schedule", "is_schedule_file"]

# What a caveat begins with that is worked out anew where a schedule is combined with other changes.
FULL_GAIN = "full gain from"


class Schedule(NamedTuple):
    """name: of the function, "" without. file: that it stands in, "" where that has its name. pipelined:
    stages wait for each other.

    placement: where the chunks lie, of `simcore.program.order.PLACEMENTS`. chunks: into how many the
    layers of a stage are cut (virtual stages), None where that is to be said. multiple: what the
    micro-batches are a multiple of. even_stages: whether an odd number of stages cannot be.
    splits_backward: weight gradients are put off, apart from the input gradients. bubble_slots: with
    stages alike, a stage's bubble is the slots of P - 1 micro-batches (chunks of them), forward and
    backward, of those that its step has. pairs: a forward and a backward can take turns, row by row
    (--overlap-fwd-bwd). tried: whether a what-if tries it in place of another. full: (a, b), from a P + b
    micro-batches on its bubble is what it is made for; (0, 0) for any number. search_limit: its order depends
    on the times of a run (`zb_search`), and a stage holds at most so many times P micro-batches; 0 where the
    shape decides the order. does: what its name does not say, in a clause.
    """

    name: str
    pipelined: bool = True
    placement: str = "loop"
    chunks: int | None = 1
    multiple: Literal["", "stages", "two"] = ""
    even_stages: bool = False
    splits_backward: bool = False
    bubble_slots: bool = False
    pairs: bool = False
    is_candidate: bool = False
    full_gain: tuple[int, int] = (0, 0)
    search_limit: int = 0
    file: str = ""
    does: str = ""

    def full_gain_microbatches(self, stages: int) -> int:
        """From how many micro-batches on its bubble is no longer."""
        times, more = self.full_gain
        return times * stages + more

    def too_few(self, stages: int, microbatches: int) -> str:
        """`full gain from 4 micro-batches on, here 2`; "" of enough."""
        least = self.full_gain_microbatches(stages)
        if microbatches >= least:
            return ""
        return f"{FULL_GAIN} {least} micro-batches on, here {microbatches}"

    def order(self, shape: Shape) -> Order:
        """The order of a step, of a search at equal times. `shape` is one that fits: see `misfit`."""
        from simcore.program.order import Order

        stages = range(shape.stages)
        return Order(
            self.chunk_placement(shape), tuple(tuple(self.actions(shape, stage)) for stage in stages)
        )

    def chunk_placement(self, shape: Shape) -> Placement:
        """Where the chunks lie."""
        # Loaded here and below: `--help` names all schedules, and a run has one.
        from simcore.program.order import PLACEMENTS

        return PLACEMENTS[self.placement](shape)

    def actions(self, shape: Shape, stage: int) -> Iterable[Action]:
        """What a stage does, in its order."""
        function = getattr(import_module(f"{__name__}.{self.file or self.name}"), self.name)
        actions: Iterable[Action] = function(shape, stage)
        return actions

    def misfit(self, stages: int, microbatches: int) -> str | None:
        """What cannot be about so many stages and micro-batches, and what would fit; None if they fit."""
        if self.even_stages and stages % 2:
            return f"{stages} stages are an odd number: {stages - 1 or 2} or {stages + 1} would fit"
        unit = {"stages": stages, "two": 2}.get(self.multiple, 1)
        if microbatches % unit:
            below = microbatches - microbatches % unit
            near = f"{below} or {below + unit}" if below else str(unit)
            what = f"{stages} stages" if self.multiple == "stages" else "2"
            return f"{microbatches} micro-batches are not a multiple of {what}: {near} would fit"
        return None


SCHEDULES: dict[str, Schedule] = {
    "layer-loop": Schedule("", pipelined=False),
    "gpipe": Schedule(
        "gpipe", bubble_slots=True, is_candidate=True, does="gpipe runs all forwards, then all backwards"
    ),
    "1f1b": Schedule("one_f_one_b", bubble_slots=True, is_candidate=True),
    "interleaved": Schedule(
        "interleaved", chunks=None, multiple="stages", bubble_slots=True, pairs=True, is_candidate=True
    ),
    "zb-h1": Schedule(
        "zb_h1",
        splits_backward=True,
        is_candidate=True,
        full_gain=(1, 0),
        file="zb_h",
        does="zb-h1 puts weight gradients off into the bubble",
    ),
    "zb-h2": Schedule(
        "zb_h2",
        splits_backward=True,
        is_candidate=True,
        full_gain=(2, -1),
        file="zb_h",
        does="zb-h2 begins up to twice as many micro-batches as 1f1b and puts weight gradients off, to the "
        "end of the step where there are few",
    ),
    "zb-1p": Schedule("zb_1p", splits_backward=True, full_gain=(1, 0), search_limit=1, file="zb_search"),
    "zb-2p": Schedule("zb_2p", splits_backward=True, full_gain=(2, -1), search_limit=2, file="zb_search"),
    "zb-v": Schedule(
        "zb_v",
        placement="v",
        chunks=2,
        splits_backward=True,
        is_candidate=True,
        full_gain=(2, -1),
        does="zb-v gives a stage two chunks, laid out as a V, and puts weight gradients off into the bubble",
    ),
    "v-half": Schedule(
        "v_half",
        placement="v",
        chunks=2,
        splits_backward=True,
        is_candidate=True,
        file="building_block",
        does="v-half gives a stage two chunks, laid out as a V, so as to hold fewer micro-batches",
    ),
    "v-min": Schedule("v_min", placement="v", chunks=2, splits_backward=True, file="building_block"),
    "dualpipe": Schedule(
        "dualpipe", placement="both-ways", multiple="two", even_stages=True, splits_backward=True, pairs=True
    ),
    "dualpipev": Schedule(
        "dualpipev",
        placement="v",
        chunks=2,
        splits_backward=True,
        pairs=True,
        full_gain=(2, 0),
        file="dualpipe",
    ),
    "looped-bfs": Schedule("looped_bfs", chunks=None, full_gain=(1, 0)),
    "breadth-first": Schedule("breadth_first", chunks=None, full_gain=(1, 0)),
}

# The schedule `FORWARD_ONLY`, which no training step can have.
INFERENCE = Schedule("forward_only")
# A schedule of one's own: the file has its order and its shape.
FROM_FILE = Schedule("", chunks=None, pairs=True)


def is_schedule_file(name: str) -> bool:
    """Whether the word of `--schedule` is a file: one that is there, or a path, or a name with a suffix."""
    if name in SCHEDULES or "\0" in name:
        return False
    return os.sep in name or "." in name or os.path.isfile(name)
