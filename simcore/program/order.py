"""The order of a step: what each stage does with which micro-batch, and where the parts of the model lie.

A schedule is such an order, whether it comes from a rule (`simcore/program/schedules/`) or from a file.
Knows no rows, no ops and no times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from simcore.records import NamedTuple, Struct, field

# Forward; backward; its input gradients alone; its weight gradients alone. PyTorch's letters.
Kind = Literal["F", "B", "I", "W"]
KINDS: tuple[Kind, ...] = ("F", "B", "I", "W")


class Action(NamedTuple):
    """What a stage does with a micro-batch in one of its chunks.

    paired: its rows and those of the action behind it take turns, where such pairs are overlapped.
    """

    kind: Kind
    microbatch: int
    chunk: int = 0
    paired: bool = False


class Shape(NamedTuple):
    """What an order is made for. chunks: of a stage. overlapped: forwards run beside backwards."""

    stages: int
    microbatches: int
    chunks: int = 1
    overlapped: bool = False


class ChunkPosition(NamedTuple):
    """A chunk of a stage."""

    stage: int
    chunk: int


class Placement(Struct, frozen=True):
    """On which chunk of which stage each part of the model lies.

    A route is the places that a micro-batch goes through; its positions count from 0, where the embedding
    is, to the loss. routes: all there are, of equal length. route_of: by micro-batch which it takes.
    Where no positions are more than stages, each chunk is a copy of a stage: it has all its layers.
    """

    stages: int
    routes: tuple[tuple[ChunkPosition, ...], ...]
    route_of: tuple[int, ...]
    _positions: dict[ChunkPosition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for route in self.routes:
            self._positions.update((chunk, position) for position, chunk in enumerate(route))

    @property
    def depth(self) -> int:
        """Positions of a route."""
        return len(self.routes[0])

    @property
    def parts(self) -> int:
        """Into how many parts the layers of a stage are cut."""
        return self.depth // self.stages

    @property
    def chunks(self) -> int:
        """Chunks of each stage, copies included."""
        return self.parts * len(self.routes)

    @property
    def copies(self) -> int:
        """How many stages' layers each stage holds: one, or both ways two."""
        return len(self.routes)

    def position(self, stage: int, chunk: int) -> int:
        """Where on its route a chunk lies."""
        return self._positions[ChunkPosition(stage, chunk)]

    def at(self, microbatch: int, position: int) -> ChunkPosition:
        """Where a micro-batch is at a position."""
        return self.routes[self.route_of[microbatch]][position]

    @property
    def is_loop(self) -> bool:
        """Whether position p lies on stage p mod P: activations go to the next stage, round and round."""
        return all(
            chunk.stage == position % self.stages
            for route in self.routes
            for position, chunk in enumerate(route)
        )


# A stage that is alone and has one micro-batch.
SINGLE_STAGE = Placement(1, ((ChunkPosition(0, 0),),), (0,))


class Order(Struct, frozen=True):
    """A whole step: of each stage its actions, in the order in which it does them."""

    placement: Placement
    stages: tuple[tuple[Action, ...], ...]

    @property
    def microbatches(self) -> int:
        return len(self.placement.route_of)

    def without_microbatches(self) -> Order:
        """The same stages with nothing to do."""
        placement = Placement(self.placement.stages, self.placement.routes, ())
        return Order(placement, ((),) * placement.stages)


def loop_placement(shape: Shape) -> Placement:
    """Position chunk * P + stage: round and round."""
    positions = [
        ChunkPosition(stage, chunk) for chunk in range(shape.chunks) for stage in range(shape.stages)
    ]
    return Placement(shape.stages, (tuple(positions),), (0,) * shape.microbatches)


def v_placement(shape: Shape) -> Placement:
    """Two chunks a stage, down the stages and up again: embedding and loss are on stage 0."""
    stages = range(shape.stages)
    positions = [
        *(ChunkPosition(stage, 0) for stage in stages),
        *(ChunkPosition(stage, 1) for stage in reversed(stages)),
    ]
    return Placement(shape.stages, (tuple(positions),), (0,) * shape.microbatches)


def bidirectional_placement(shape: Shape) -> Placement:
    """Each stage holds the stage of its number and, as chunk 1, that which is as far from the other end.

    The first half of the micro-batches goes down the stages, the other half up.
    """
    stages = range(shape.stages)
    down = tuple(ChunkPosition(stage, 0) for stage in stages)
    up = tuple(ChunkPosition(stage, 1) for stage in reversed(stages))
    half = shape.microbatches // 2
    return Placement(shape.stages, (down, up), (0,) * half + (1,) * (shape.microbatches - half))


PLACEMENTS = {"loop": loop_placement, "v": v_placement, "both-ways": bidirectional_placement}


def without_extra(actions: Iterable[Action], microbatches: int) -> Iterator[Action]:
    """The actions of the first micro-batches alone.

    What is left of an order that runs is one: leaving a micro-batch out takes nothing that another needs.
    """
    paired = None
    for action in actions:
        if paired is not None:
            # The first of a pair stands alone where the second is left out.
            yield paired if action.microbatch < microbatches else paired._replace(paired=False)
            paired = None
        if action.microbatch >= microbatches:
            continue
        if action.paired:
            paired = action
        else:
            yield action
