"""A second simulator of ASTRA-sim 1.0's policies, as naive as can be: every rank a coroutine.

Written from the rules alone: it reads the text by tokens, knows the dimensions by their strides,
prices the ring in fractions, and at each instant tries all that waits, in order. It shares no
code with `simcore`. Ring algorithm on every dimension.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

TYPE_CELLS, TIME_CELLS = (3, 6, 9), (2, 5, 8)
FORWARD, INPUT, WEIGHT = range(3)


class Link(NamedTuple):
    """A physical dimension: kind `Ring`, `FullyConnected` or `Switch`, bytes per ns of a message."""

    kind: str
    size: int
    bandwidth: Fraction
    latency: int

    def hops(self, steps: int) -> int:
        if self.kind == "Switch":
            return 2
        return 1 if self.kind == "FullyConnected" else min(steps, self.size - steps)


class Part(NamedTuple):
    """A logical dimension: `size` NPUs that lie `inside` places apart on a physical one."""

    link: int
    size: int
    inside: int
    stride: int  # in rank numbers


@dataclass
class Setting:
    """What a run has beside the text. slow_links: (link, rank) -> factor on the bandwidth."""

    links: list[Link]
    endpoint_delay: int = 10
    memory: int = 500_000
    splits: int = 1
    active: int = 1
    passes: int = 1
    newest_first: bool = True
    slow_ranks: dict[int, int] = field(default_factory=dict)
    slow_links: dict[tuple[int, int], Fraction] = field(default_factory=dict)


@dataclass
class Text:
    """The tokens of a file, sorted."""

    policy: str
    rows: list[list[str]]
    model_group: int = 1
    checkpoints: list[int] = field(default_factory=list)
    initiates: list[int] = field(default_factory=list)
    bottom: int = -1


def read(content: str) -> Text:
    tokens = content.split()
    policy = tokens.pop(0)
    text = Text(policy, [])
    if policy.startswith("HYBRID_DLRM"):
        text.bottom = int(tokens.pop(0))
    while tokens[0].endswith(":"):
        key, count = tokens.pop(0), int(tokens.pop(0))
        if key == "model_parallel_NPU_group:":
            text.model_group = count
        elif key == "checkpoints:":
            text.checkpoints = [int(tokens.pop(0)) for _ in range(count)]
        else:
            text.initiates = [int(tokens.pop(0)) for _ in range(count)]
    width = 13 if policy == "HYBRID_CUSTOMIZED" else 12
    count = int(tokens.pop(0))
    text.rows = [tokens[row * width : (row + 1) * width] for row in range(count)]
    return text


@dataclass
class Collective:
    """One collective of one group, from the first member that issues it."""

    number: int
    members: tuple[int, ...]
    priority: int
    update: int
    chunks: list[list[tuple[int, int]]]  # of each chunk: (logical dimension, ns) of its phases
    missing: int = 0
    start: int = -1
    visible: int = -1
    left: int = 0


class Waiting(NamedTuple):
    priority: int
    arrival: int
    number: int
    chunk: int
    place: int
    collective: Any


class Reference:
    """One run. `spans` has (start, end) of every collective of each rank, in the order of issue."""

    def __init__(self, content: str, setting: Setting) -> None:
        self.text, self.setting = read(content), setting
        self.parts, self.model_parts = self._parts()
        self.world = 1
        for part in self.parts:
            self.world *= part.size
        self.now = 0
        self.sleeping: dict[int, int] = {}
        self.parked: dict[int, Collective] = {}
        self.waiting: list[Waiting] = []
        self.serving: list[tuple[int, Waiting]] = []
        self.collectives: dict[tuple[tuple[int, ...], int], Collective] = {}
        self.issued = [0] * self.world
        self.counter = [0] * self.world
        self.pass_ends: list[list[int]] = [[] for _ in range(self.world)]
        self.mine: list[list[Collective]] = [[] for _ in range(self.world)]
        self.finish = 0

    def _parts(self) -> tuple[list[Part], int]:
        """The logical dimensions, and how many of them the model group of a transformer has."""
        parts: list[Part] = []
        reach = 1
        model = 0
        group = self.text.model_group
        for index, link in enumerate(self.setting.links):
            if self.text.policy.startswith("HYBRID_TRANSFORMER") and reach < group < reach * link.size:
                inner = group // reach
                parts += [Part(index, inner, 1, reach), Part(index, link.size // inner, inner, group)]
                model = len(parts) - 1
            else:
                parts.append(Part(index, link.size, 1, reach))
                model = len(parts) if reach * link.size <= group else model
            reach *= link.size
        return parts, model

    def _scope(self, row: int, cell: int) -> list[int]:
        """The logical dimensions that a collective runs over."""
        every = list(range(len(self.parts)))
        policy = self.text.rows[row][12] if self.text.policy == "HYBRID_CUSTOMIZED" else self.text.policy
        model, data = {
            "DATA": ([], every), "MICRO": ([], every),
            "MODEL": (every, []), "DISTRIBUTED_INFERENCE": (every, []),
            "HYBRID_DATA_MODEL": (every[:1], every[1:]), "HYBRID_MODEL_DATA": (every[1:], every[:1]),
            "HYBRID_DLRM": (every if row == 0 else [], every),
            "HYBRID_DLRM_ENHANCED": (every if row == 0 else [], every),
        }.get(policy, (every[: self.model_parts], every[self.model_parts :]))  # fmt: skip
        return [part for part in (data if cell == WEIGHT else model) if self.parts[part].size > 1]

    def _members(self, rank: int, scope: list[int]) -> tuple[int, ...]:
        strides = [self.parts[part].stride for part in scope]
        sizes = [self.parts[part].size for part in scope]
        own = sum(rank // stride % size * stride for stride, size in zip(strides, sizes, strict=True))
        places = product(
            *[range(0, size * stride, stride) for stride, size in zip(strides, sizes, strict=True)]
        )
        return tuple(sorted(rank - own + sum(place) for place in places))

    # -- prices ----------------------------------------------------------------------

    def _phase_ns(self, part: Part, kind: str, size: int, members: tuple[int, ...]) -> int:
        """The ring, with its slowest walk."""
        link = self.setting.links[part.link]
        factors = [self.setting.slow_links.get((part.link, rank), Fraction(1)) for rank in members]
        slowest = min(factors)
        message = size if kind == "ALLGATHER" else size // part.size
        count = {"ALLREDUCE": 2 * (part.size - 1), "ALLTOALL": part.size * (part.size - 1) // 2}
        steps = count.get(kind, part.size - 1)
        places = [at * part.inside for at in range(part.size)]
        hops = [link.hops(abs(places[(at + 1) % part.size] - places[at])) for at in range(part.size)]
        times = [int(hop * link.latency + message / (link.bandwidth * slowest)) for hop in hops]
        walk = max(
            sum(times[(first + step) % part.size] for step in range(steps)) for first in range(part.size)
        )
        reduces = kind in ("ALLREDUCE", "REDUCESCATTER")
        reduction = 3 * (message // self.setting.memory) * (part.size - 1) if reduces else 0
        return walk + (steps + 1) * self.setting.endpoint_delay + reduction

    def _phases(
        self, kind: str, size: int, scope: list[int], members: tuple[int, ...]
    ) -> list[tuple[int, int]]:
        if kind == "ALLREDUCE":
            down = [(part, "REDUCESCATTER") for part in scope[:-1]]
            up = [(part, "ALLGATHER") for part in reversed(scope[:-1])]
            order = [*down, (scope[-1], kind), *up]
        else:
            order = [(part, kind) for part in (reversed(scope) if kind == "ALLGATHER" else scope)]
        found = []
        for part, one in order:
            found.append((part, self._phase_ns(self.parts[part], one, size, members)))
            if one == "REDUCESCATTER":
                size //= self.parts[part].size
            if one == "ALLGATHER":
                size *= self.parts[part].size
        return found

    # -- ranks -----------------------------------------------------------------------

    def _issue(self, rank: int, row: int, cell: int, preference: str) -> Collective | None:
        cells = self.text.rows[row]
        kind, size = cells[TYPE_CELLS[cell]], int(cells[TYPE_CELLS[cell] + 1])
        if kind == "NONE":
            return None
        priority = self.counter[rank]
        if preference == "highest":
            priority = 10**8
        elif preference == "newest" or (preference == "system" and self.setting.newest_first):
            self.counter[rank] += 1
        else:
            self.counter[rank] -= 1
        scope = self._scope(row, cell)
        if not scope or not size:
            return None
        members = self._members(rank, scope)
        self.issued[rank] += 1
        key = (members, self.issued[rank])
        if key not in self.collectives:
            piece = max(1, size // self.setting.splits)
            sizes = [min(piece, size - first) for first in range(0, size, piece)]
            chunks = [self._phases(kind, one, scope, members) for one in sizes]
            made = Collective(self.issued[rank], members, priority, int(cells[11]), chunks, len(members))
            made.left = len(chunks)
            self.collectives[key] = made
        collective = self.collectives[key]
        self.mine[rank].append(collective)
        collective.missing -= 1
        if not collective.missing:
            for chunk in range(len(collective.chunks)):
                self._wait_in_queue(collective, chunk, 0)
        return collective

    def _wait_in_queue(self, collective: Collective, chunk: int, place: int) -> None:
        self.waiting.append(
            Waiting(-collective.priority, self.now, collective.number, chunk, place, collective)
        )

    def _rank(self, rank: int) -> Generator[tuple[str, Any], None, None]:
        """The loop of a rank: yields ('sleep', ns) and ('wait', collective or None)."""
        text = self.text
        rows, policy = text.rows, text.policy
        is_dlrm, is_transformer = policy.startswith("HYBRID_DLRM"), policy.startswith("HYBRID_TRANSFORMER")
        reduced: list[Collective | None] = [None] * len(rows)

        def compute(row: int, cell: int) -> tuple[str, int]:
            return "sleep", int(rows[row][TIME_CELLS[cell]]) * self.setting.slow_ranks.get(rank, 1)

        for _ in range(self.setting.passes):
            if policy == "MICRO":
                self._issue(rank, 0, WEIGHT, "system")
                self.pass_ends[rank].append(self.now)
                continue
            embedding = gradient = None
            for row in range(len(rows)):
                yield "wait", reduced[row]
                yield compute(row, FORWARD)
                if is_dlrm:
                    if rows[row][3] == "ALLTOALL":
                        issued = self._issue(rank, row, FORWARD, "highest")
                        embedding = issued if row == 0 else embedding
                    elif row == text.bottom:
                        yield "wait", embedding
                elif policy != "DATA":
                    yield "wait", self._issue(rank, row, FORWARD, "system")
                if policy == "DISTRIBUTED_INFERENCE" and row == len(rows) - 1:
                    self.pass_ends[rank].append(self.now)
                yield "sleep", 1
            for row in reversed(range(len(rows) if policy != "DISTRIBUTED_INFERENCE" else 0)):
                if policy == "DATA" or is_dlrm:
                    yield compute(row, WEIGHT)
                    reduced[row] = self._issue(rank, row, WEIGHT, "system")
                    if row:
                        yield "sleep", 1
                        yield compute(row, INPUT)
                        if is_dlrm and row == text.bottom + 1:
                            gradient = self._issue(rank, 0, INPUT, "highest")
                    elif policy == "HYBRID_DLRM":
                        yield "wait", gradient
                else:
                    before = [checkpoint for checkpoint in text.checkpoints if checkpoint < row]
                    if row in text.initiates and before:
                        yield "sleep", 1
                        for again in range(max(before), row):
                            yield compute(again, FORWARD)
                            yield "wait", self._issue(rank, again, FORWARD, "system")
                            yield "sleep", 1
                    yield compute(row, INPUT)
                    mine = self._issue(rank, row, INPUT, "newest") if row or is_transformer else None
                    yield "sleep", 1
                    yield compute(row, WEIGHT)
                    if policy != "MODEL":
                        reduced[row] = self._issue(rank, row, WEIGHT, "oldest")
                    yield "wait", mine
                if row == 0:
                    self.pass_ends[rank].append(self.now)
                yield "sleep", 1

    # -- the run ---------------------------------------------------------------------

    def run(self) -> Reference:
        loops = {rank: self._rank(rank) for rank in range(self.world)}
        for rank in loops:
            self._go_on(rank, loops[rank])
        self._serve()
        while self.sleeping or self.serving:
            pending = [*self.sleeping.values(), *[end for end, _ in self.serving]]
            self.now = min(pending)
            for end, phase in sorted(self.serving, key=lambda one: one[1][:5]):
                if end == self.now:
                    self.serving.remove((end, phase))
                    self._end(phase)
            awake = [rank for rank, time in self.sleeping.items() if time == self.now]
            for rank in awake:
                del self.sleeping[rank]
                self._go_on(rank, loops[rank])
            self._serve()
        assert not self.parked
        assert not self.waiting
        return self

    def _go_on(self, rank: int, loop: Generator[tuple[str, Any], None, None]) -> None:
        for what, value in loop:
            if what == "sleep" and value:
                self.sleeping[rank] = self.now + value
                return
            if what == "wait" and value is not None:
                if value.visible < 0:
                    self.parked[rank] = value
                    return
                if value.visible > self.now:
                    self.sleeping[rank] = value.visible
                    return
        self.finish = max(self.finish, self.now)

    def _end(self, phase: Waiting) -> None:
        collective = phase.collective
        if phase.place + 1 < len(collective.chunks[phase.chunk]):
            self._wait_in_queue(collective, phase.chunk, phase.place + 1)
            return
        collective.left -= 1
        if not collective.left:
            collective.visible = self.now + collective.update
            self.finish = max(self.finish, collective.visible)
            for rank in [rank for rank, other in self.parked.items() if other is collective]:
                del self.parked[rank]
                self.sleeping[rank] = collective.visible

    def _serve(self) -> None:
        for phase in sorted(self.waiting, key=lambda one: one[:4]):
            part, ns = phase.collective.chunks[phase.chunk][phase.place]
            members = phase.collective.members
            if all(self._load(rank, part) < self.setting.active for rank in members):
                self.waiting.remove(phase)
                self.serving.append((self.now + ns, phase))
                if phase.collective.start < 0:
                    phase.collective.start = self.now

    def _load(self, rank: int, part: int) -> int:
        return sum(
            rank in phase.collective.members and phase.collective.chunks[phase.chunk][phase.place][0] == part
            for _, phase in self.serving
        )
