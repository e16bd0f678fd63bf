"""The picture of a schedule: what each stage does when, at unit times and without communication.

It is drawn elsewhere; as plain values it has each action with its times, and the figures of each stage.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters
from simcore.program import SCHEDULES
from simcore.program.ops import FWD
from simcore.program.order import Kind, Order, Shape
from simcore.program.schedule_choice import find_schedule
from simcore.records import NamedTuple
from simcore.simulation import Simulation, simulate
from simcore.workload import Cells, Header, Workload

# ns of a unit of one part of a stage: enough for times of three decimals.
_UNIT = 1000
# A picture of more would take a minute to make, and be unreadable.
MOST_ACTIONS = 400_000
# The default for schedules that take the number of chunks of a stage.
CHUNKS = 2


class UnitTimes(NamedTuple):
    """Units of forward, input gradient and weight gradient of a micro-batch on a whole stage."""

    forward: float = 1.0
    backward: float = 1.0
    weight: float = 1.0


class PictureOptions(NamedTuple):
    """The options of a picture."""

    schedule: str
    """The name of a schedule, or its file."""
    stages: int | None = None
    microbatches: int | None = None
    """Twice the stages by default."""
    chunks: int | None = None
    """Chunks of a stage, where the schedule takes their number."""
    times: UnitTimes = UnitTimes()
    steps: int = 1
    overlapped: bool = False
    """Whether forwards and backwards overlap."""
    size: float = 1.0
    """The size of its micro-batches, relative to those of other pictures."""


class Box(NamedTuple):
    """An action of a picture."""

    kind: Kind
    microbatch: int
    chunk: int
    step: int
    """The step of the run that it is in."""
    first: float
    """Its start, units."""
    last: float
    """Its end, units."""


class StageLane(NamedTuple):
    """A stage of a picture."""

    boxes: tuple[Box, ...]
    busy: float
    """The units that it works, from 0 to the end of the run."""
    bubble: float
    """The units that it waits."""
    in_flight: float
    """The most micro-batches that it holds."""
    chunks: int
    """The most chunks of micro-batches that it holds."""
    ends: tuple[float, ...]
    """The end of each step on this stage."""


class Picture(NamedTuple):
    """A schedule that ran."""

    name: str
    microbatches: int
    parts: int
    """The chunks into which a stage's layers are split."""
    copies: int
    """The stages of the model that each stage holds."""
    splits: bool
    """Whether weight gradients are separate actions."""
    lanes: tuple[StageLane, ...]
    length: float
    """Units until the last stage has finished."""
    steady: float | None
    """Units that a further step takes; None for a single step."""
    size: float

    @property
    def in_flight(self) -> float:
        """The most micro-batches that a stage holds, counted in those of size 1."""
        return max(lane.in_flight for lane in self.lanes) * self.size

    @property
    def bubble(self) -> float:
        """The share of the run in which a stage waits, the mean of all."""
        return sum(lane.bubble for lane in self.lanes) / len(self.lanes) / self.length if self.length else 0.0

    def words(self) -> str:
        """Returns the schedule and its shape in words."""
        words = f"{printable(self.name, 40)}: {len(self.lanes)} stages, {self.microbatches} micro-batches"
        words = words.replace(" 1 stages", " 1 stage").replace(" 1 micro-batches", " 1 micro-batch")
        if self.parts > 1:
            words += f", {self.parts} chunks a stage"
        if self.copies > 1:
            words += f", {self.copies} stages of the model on each"
        if self.size != 1.0:
            words += f" of size {_plain(self.size)}"
        return words


def picture_of(options: PictureOptions) -> Picture:
    """Returns the picture of a schedule, run alone.

    Raises `UsageError` or `InputError` for one that does not exist or does not fit.
    """
    order, shape = _choose_order(options)
    actions = sum(map(len, order.stages)) * options.steps
    if actions > MOST_ACTIONS:
        raise UsageError(f"{actions} actions: at most {MOST_ACTIONS} are drawn")
    parts = order.placement.parts
    simulation = _simulate(options, order, shape)
    unit = _UNIT * parts / options.size
    timeline, program = simulation.timeline, simulation.program
    lanes: list[StageLane] = []
    for class_id, rank_class in enumerate(timeline.classes):
        stage = program.stages[rank_class.stage]
        _, start, end = timeline.columns(class_id)
        boxes = []
        busy = 0
        for stretch in stage.stretches:
            # A forward that is paired with a backward has a row of each; the forward is the first.
            members = [
                op
                for op in range(stretch.first, stretch.last)
                if (stage.ops.phase[op] == FWD) == (stretch.action.kind == "F") and stage.ops.row[op] >= 0
            ]
            if not members:
                # The action takes no time.
                continue
            first_ns, last_ns = start[members[0]], end[members[-1]]
            busy += last_ns - first_ns
            kind, microbatch, chunk, _ = stretch.action
            boxes.append(Box(kind, microbatch, chunk, stretch.step, first_ns / unit, last_ns / unit))
        ends = tuple(ns / unit for ns in timeline.times.pass_ends[class_id])
        bubble = (simulation.step_time_ns - busy) / unit
        peak_chunks = stage.peak_chunks
        lanes.append(StageLane(tuple(boxes), busy / unit, bubble, peak_chunks / parts, peak_chunks, ends))
    steady = None
    if options.steps > 1:
        steady = max(lane.ends[-1] for lane in lanes) - max(lane.ends[-2] for lane in lanes)
    return Picture(
        os.path.basename(options.schedule) or options.schedule,
        order.microbatches,
        parts,
        order.placement.copies,
        any(box.kind in "IW" for lane in lanes for box in lane.boxes),
        tuple(lanes),
        simulation.step_time_ns / unit,
        steady,
        options.size,
    )


def find_equal_memory(options: PictureOptions, max_in_flight: float, batch: int) -> PictureOptions | None:
    """Returns the same batch in the largest micro-batches with which no stage holds more than
    `max_in_flight`.

    batch: in micro-batches of size 1. None where there are none: a schedule that holds all of them.
    """
    order, _ = _choose_order(options)
    for count in range(1, 8 * batch + 1):
        rules = SCHEDULES.get(options.schedule)
        if rules is None:
            # The number of micro-batches of a file is fixed.
            size = batch / order.microbatches
            return options._replace(size=size) if _max_in_flight(order) * size <= max_in_flight else None
        if rules.misfit(order.placement.stages, count):
            continue
        order_at_count, _ = _choose_order(options._replace(microbatches=count))
        if _max_in_flight(order_at_count) * batch / count <= max_in_flight + 1e-9:
            return options._replace(microbatches=count, size=batch / count)
    return None


def _max_in_flight(order: Order) -> float:
    """Returns the most micro-batches that a stage holds."""
    most = 0
    for actions in order.stages:
        in_flight = 0
        for action in actions:
            in_flight += (action.kind == "F") - (action.kind in "BW")
            most = max(most, in_flight)
    return most / order.placement.parts


def _choose_order(options: PictureOptions) -> tuple[Order, Shape]:
    rules, from_file = find_schedule(options.schedule)
    if not rules.pipelined:
        fitting = ", ".join(name for name, schedule in SCHEDULES.items() if schedule.pipelined)
        raise UsageError(f"{options.schedule} has no order of micro-batches: one of {fitting} is expected")
    if from_file is not None:
        placement = from_file.order.placement
        for option, value, in_file in (
            ("--stages", options.stages, placement.stages),
            ("--microbatches", options.microbatches, from_file.order.microbatches),
        ):
            if value not in (None, in_file):
                raise UsageError(f"{option} {value}: {printable(options.schedule, 60)} has {in_file}")
        return from_file.order, Shape(placement.stages, from_file.order.microbatches, placement.parts)
    stages = 4 if options.stages is None else options.stages
    microbatches = 2 * stages if options.microbatches is None else options.microbatches
    chunks = rules.chunks or options.chunks or CHUNKS
    misfit = rules.misfit(stages, microbatches)
    if misfit:
        raise UsageError(f"{options.schedule}: {misfit}")
    if stages * microbatches * chunks > MOST_ACTIONS:
        raise UsageError(f"{stages * microbatches * chunks} forwards: at most {MOST_ACTIONS} are drawn")
    shape = Shape(stages, microbatches, chunks, options.overlapped)
    if not rules.search_limit:
        return rules.order(shape), shape
    # Imported here: few schedules are searched.
    from simcore.program.schedules.zb_search import ActionTimes, equal_stages, search_order

    times = ActionTimes(*(round(units * _UNIT) for units in options.times))
    order = search_order(shape, rules.search_limit, equal_stages(stages, times), options.steps > 1)
    return order, shape


def _simulate(options: PictureOptions, order: Order, shape: Shape) -> Simulation:
    """Returns the run of a model with one layer for each part, whose communication is free."""
    parts, stages = order.placement.parts, order.placement.stages
    columns = []
    for units in options.times:
        none = [None] * parts
        ns = array("q", [round(units * _UNIT)] * parts)
        columns.append(Cells(compute_ns=ns, collective=[*none], group=[*none], bytes=array("q", [0] * parts)))
    workload = Workload(
        path="schedule",
        format="simai",
        policy="",
        dialect="simai",
        header=Header(tp=1, ep=1, pp=stages, all_gpus=stages, pp_comm=0),
        name=[f"layer_{index}" for index in range(parts)],
        line=array("q", range(1, parts + 1)),
        fwd=columns[0],
        ig=columns[1],
        wg=columns[2],
        process_ns=array("q", [0] * parts),
        declared_rows=parts,
    )
    needs_chunks = options.schedule in SCHEDULES and SCHEDULES[options.schedule].chunks is None
    parameters = Parameters(
        schedule=options.schedule,
        microbatches=None if options.schedule not in SCHEDULES else shape.microbatches,
        virtual_stages=parts if needs_chunks else None,
        steps=options.steps,
        overlap_fwd_bwd=options.overlapped,
        comm_scale=0.0,
    )
    return simulate(workload, parameters)


def _plain(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def pictures_json(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """Returns the pictures as plain values; times in units of a micro-batch on a whole stage."""
    return [
        {
            "schedule": picture.name,
            "stages": len(picture.lanes),
            "microbatches": picture.microbatches,
            "microbatch_size": picture.size,
            "chunks": picture.parts,
            "copies": picture.copies,
            "length": picture.length,
            "steady_step": picture.steady,
            "bubble": picture.bubble,
            "held": picture.in_flight,
            "lanes": [
                {
                    "stage": stage,
                    "busy": lane.busy,
                    "bubble": lane.bubble,
                    "held": lane.in_flight * picture.size,
                    "held_chunks": lane.chunks,
                    "step_ends": list(lane.ends),
                    "actions": [box._asdict() for box in lane.boxes],
                }
                for stage, lane in enumerate(picture.lanes)
            ],
        }
        for picture in pictures
    ]
