"""The order of a step: what each stage does with which micro-batch, and where the parts of the model are.

A schedule is such an order, whether it comes from a rule (`simcore/program/schedules/`) or from a file.
Knows no rows, no ops and no times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from simcore.records import NamedTuple, Struct, field

# Forward; backward; only its input gradients; only its weight gradients. The letters are PyTorch's.
Kind = Literal["F", "B", "I", "W"]
KINDS: tuple[Kind, ...] = ("F", "B", "I", "W")


class Action(NamedTuple):
    """What a stage does with a micro-batch in one of its chunks."""

    kind: Kind
    """Forward, backward, or one part of backward."""
    microbatch: int
    """From 0."""
    chunk: int = 0
    """The index of the chunk in its stage."""
    paired: bool = False
    """Whether its rows and those of the next action take turns, where such pairs are overlapped."""


class Shape(NamedTuple):
    """What an order is made for."""

    stages: int
    """How many stages there are."""
    microbatches: int
    """How many micro-batches a step has."""
    chunks: int = 1
    """How many chunks a stage has."""
    overlapped: bool = False
    """Whether forwards overlap with backwards."""


class ChunkPosition(NamedTuple):
    """A chunk of a stage."""

    stage: int
    chunk: int


class Placement(Struct, frozen=True):
    """The chunk and stage that each part of the model is on.

    A route is the chunks that a micro-batch goes through; its positions count from 0, where the embedding is,
    to the loss. Where there are no more positions than stages, each chunk is a copy of a stage: it has all
    its layers.
    """

    stages: int
    """How many stages there are."""
    routes: tuple[tuple[ChunkPosition, ...], ...]
    """All routes, of equal length."""
    route_of: tuple[int, ...]
    """By micro-batch the index of its route."""
    _positions: dict[ChunkPosition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for route in self.routes:
            self._positions.update((chunk, position) for position, chunk in enumerate(route))

    @property
    def depth(self) -> int:
        """The number of positions of a route."""
        return len(self.routes[0])

    @property
    def parts(self) -> int:
        """The number of parts that the layers of a stage are split into."""
        return self.depth // self.stages

    @property
    def chunks(self) -> int:
        """The number of chunks of each stage, copies included."""
        return self.parts * len(self.routes)

    @property
    def copies(self) -> int:
        """How many stages' layers each stage has: one, or two where micro-batches go both ways."""
        return len(self.routes)

    def position(self, stage: int, chunk: int) -> int:
        """Returns the position of a chunk on its route."""
        return self._positions[ChunkPosition(stage, chunk)]

    def at(self, microbatch: int, position: int) -> ChunkPosition:
        """Returns the chunk that a micro-batch is on at a position."""
        return self.routes[self.route_of[microbatch]][position]

    @property
    def is_loop(self) -> bool:
        """Whether position p is on stage p mod P: activations go to the next stage, round and round."""
        return all(
            chunk.stage == position % self.stages
            for route in self.routes
            for position, chunk in enumerate(route)
        )


# A single stage with one micro-batch.
SINGLE_STAGE = Placement(1, ((ChunkPosition(0, 0),),), (0,))


class Order(Struct, frozen=True):
    """The order of a whole step: the actions of each stage, in the order in which it does them."""

    placement: Placement
    stages: tuple[tuple[Action, ...], ...]

    @property
    def microbatches(self) -> int:
        return len(self.placement.route_of)

    def without_microbatches(self) -> Order:
        """Returns the same stages without actions."""
        placement = Placement(self.placement.stages, self.placement.routes, ())
        return Order(placement, ((),) * placement.stages)


def loop_placement(shape: Shape) -> Placement:
    """Returns the placement with chunk c of stage s at position c * P + s: round and round."""
    positions = [
        ChunkPosition(stage, chunk) for chunk in range(shape.chunks) for stage in range(shape.stages)
    ]
    return Placement(shape.stages, (tuple(positions),), (0,) * shape.microbatches)


def v_placement(shape: Shape) -> Placement:
    """Returns the placement of two chunks a stage, down the stages and up again: embedding and loss are on
    stage 0.
    """
    stages = range(shape.stages)
    positions = [
        *(ChunkPosition(stage, 0) for stage in stages),
        *(ChunkPosition(stage, 1) for stage in reversed(stages)),
    ]
    return Placement(shape.stages, (tuple(positions),), (0,) * shape.microbatches)


def bidirectional_placement(shape: Shape) -> Placement:
    """Returns the placement in which stage s has part s and, as chunk 1, part P - 1 - s.

    The first half of the micro-batches goes down the stages, the other half up.
    """
    stages = range(shape.stages)
    down = tuple(ChunkPosition(stage, 0) for stage in stages)
    up = tuple(ChunkPosition(stage, 1) for stage in reversed(stages))
    half = shape.microbatches // 2
    return Placement(shape.stages, (down, up), (0,) * half + (1,) * (shape.microbatches - half))


PLACEMENTS = {"loop": loop_placement, "v": v_placement, "both-ways": bidirectional_placement}


def without_extra(actions: Iterable[Action], microbatches: int) -> Iterator[Action]:
    """Returns the actions of the first micro-batches.

    The result of an order that can run is such an order: no action needs another micro-batch.
    """
    paired = None
    for action in actions:
        if paired is not None:
            # The first of a pair is not paired where the second is left out.
            yield paired if action.microbatch < microbatches else paired._replace(paired=False)
            paired = None
        if action.microbatch >= microbatches:
            continue
        if action.paired:
            paired = action
        else:
            yield action
