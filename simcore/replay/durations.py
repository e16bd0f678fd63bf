"""What everything of a run takes under some scales, waiting left out."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

from simcore.measured.matching import Call, Meeting, name_of
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE, COPY, category_of_group
from simcore.records import NamedTuple
from simcore.replay.parameters import Scales
from simcore.run.measured import MeasuredGraph
from simcore.run.pieces import AWAIT, GAP, MEET, TRANSFER

# What a scale is about: compute; the host's operations; communication; a host gap; communication without a
# partner, of which nobody knows how much is waiting: its name alone changes it; what nothing changes; and of
# devices the time before the step begins on a rank, and copies of memory, which wait for nobody.
_COMPUTE, _HOST, _COMM, _GAP, _NAMED, _FIXED, _BEGIN, _COPY = range(8)


# A duration that no scale is on, in `Durations.scales`.
_NO_KIND = 0


class FactorTime(NamedTuple):
    """Time that one factor goes for. of: see above. name: of the operation. category: of communication."""

    of: int
    name: str = ""
    category: str = ""


class Durations:
    """Of a graph, under any scales. The parts are found once; a question costs a look-up for each piece."""

    def __init__(self, graph: MeasuredGraph) -> None:
        self.graph = graph
        self.ties = ties = graph.ties
        self.numbers: dict[FactorTime, int] = {}
        self._circles = frozenset(graph.circles)
        ranks = range(len(ties.pieces))
        self.first_parts = [self._column(rank, graph.first_ns[rank], self._first) for rank in ranks]
        self.after_parts = [self._column(rank, graph.after_ns[rank], self._comm) for rank in ranks]
        self.meeting_parts = [self._number(self._meeting(meeting)) for meeting in ties.matches.meetings]
        self.message_parts = [
            self._number(FactorTime(_COMM, self._name(message.send), "pp"))
            for message in ties.matches.messages
        ]

    def scaled(self, scales: Scales) -> array[int]:
        """The durations under these scales, ns, as the passes of the graph take them."""
        graph, ties = self.graph, self.ties
        factors = [_factor(part, scales) for part in self.numbers]
        is_compute = [part.of == _COMPUTE for part in self.numbers]
        is_gap = [part.of in (_GAP, _BEGIN) for part in self.numbers]
        first = []
        for rank, (parts, ns) in enumerate(zip(self.first_parts, graph.first_ns, strict=True)):
            trace = ties.run.ranks[rank]
            own = scales.ranks.get(trace.number, 1.0) * scales.stages.get(trace.stage, 1.0)
            gaps = scales.rank_gaps.get(trace.number, 1.0)
            of_rank = [
                factor * own if compute else factor * gaps if gap else factor
                for factor, compute, gap in zip(factors, is_compute, is_gap, strict=True)
            ]
            first.append(_column(ns, parts, of_rank))
        return graph.durations(
            first,
            [_column(ns, parts, factors) for ns, parts in zip(graph.after_ns, self.after_parts, strict=True)],
            _column(ties.meeting_ns, self.meeting_parts, factors),
            _column(ties.message_ns, self.message_parts, factors),
        )

    def scales(self) -> tuple[array[int], dict[str, list[int]]]:
        """A kind of each duration, as the passes take them, and the kinds that each scale is on, by its name.

        A kind is a part of one rank, or of no rank alone: of a collective, of a message.
        """
        ranks, width = self.ties.run.ranks, len(self.numbers)
        shared = len(ranks) * width
        kind_of = array("i", (_NO_KIND,))
        for parts in (self.first_parts, self.after_parts):
            for rank, column in enumerate(parts):
                kind_of.extend(1 + rank * width + part for part in column)
        kind_of.extend(1 + shared + part for part in (*self.meeting_parts, *self.message_parts))
        kind_of.extend([_NO_KIND] * self.graph.graph.tracks)
        scales: dict[str, list[int]] = {name: [] for name in ("compute", "comm")}
        for rank in range(len(ranks) + 1):
            for number, part in enumerate(self.numbers):
                for name in _scale_names(part):
                    scales.setdefault(name, []).append(1 + rank * width + number)
        for rank, trace in enumerate(ranks):
            scales[f"rank {trace.number}"] = [
                1 + rank * width + number for number, part in enumerate(self.numbers) if part.of == _COMPUTE
            ]
        return kind_of, scales

    def _number(self, part: FactorTime) -> int:
        return self.numbers.setdefault(part, len(self.numbers))

    def _column(self, rank: int, ns: Sequence[int], part_of: _PartOf) -> array[int]:
        fixed = self._number(FactorTime(_FIXED))
        return array(
            "q", (self._number(part_of(rank, piece)) if length else fixed for piece, length in enumerate(ns))
        )

    def _name(self, call: Call) -> str:
        return name_of(self.ties.run.ranks[call.rank], call)

    def _meeting(self, meeting: Meeting) -> FactorTime:
        if meeting.kind == MODEL_PARALLEL:
            return FactorTime(_FIXED)
        call = meeting.calls[0]
        # Of a kernel without a partner nobody knows how much is waiting.
        of = _NAMED if len(meeting.calls) == 1 and call not in self.ties.matches.alone else _COMM
        return FactorTime(of, self._name(call), category_of_group(meeting.kind))

    def _first(self, rank: int, piece: int) -> FactorTime:
        """What a piece does by itself."""
        pieces, trace = self.ties.pieces[rank], self.ties.run.ranks[rank]
        kind, op, sub = pieces.kind[piece], pieces.op[piece], pieces.sub[piece]
        if kind == GAP:
            # Before its first operation a rank has no host gap: it has not begun.
            if trace.device is not None:
                return FactorTime(_BEGIN if pieces.end[piece] <= trace.first_ns else _GAP)
            return FactorTime(_GAP if piece else _FIXED)
        if (rank, piece) in self._circles:
            return FactorTime(_NAMED, self._name(Call(rank, op, sub)))
        if kind == TRANSFER:
            # Of a send and a receive in one this is the send; the piece is named by the receive.
            message = pieces.sent[piece]
            if message >= 0:
                return FactorTime(_COMM, self._name(self.ties.matches.messages[message].send), "pp")
            return self._comm(rank, piece)
        name = trace.ops.name[op]
        category = trace.ops.category(op)
        if sub >= 0 or category not in (*COMPUTE, "host"):
            call = Call(rank, op, sub)
            if sub < 0 and category == COPY:
                return FactorTime(_COPY, self._name(call), COPY)
            alone = call in self.ties.matches.alone
            if sub >= 0:
                category = category_of_group(trace.subs.group[sub])
            return FactorTime(_COMM if alone else _NAMED, self._name(call), category)
        return FactorTime(_HOST if category == "host" else _COMPUTE, name)

    def _comm(self, rank: int, piece: int) -> FactorTime:
        """Communication of a transfer, or of a collective with its members."""
        pieces = self.ties.pieces[rank]
        category = "pp"
        if pieces.kind[piece] in (MEET, AWAIT):
            category = category_of_group(self.ties.matches.meetings[pieces.meeting[piece]].kind)
        return FactorTime(_COMM, self._name(Call(rank, pieces.op[piece], pieces.sub[piece])), category)


def _scale_names(part: FactorTime) -> list[str]:
    """The scales that a part has, as gradients name them."""
    if part.of in (_FIXED, _GAP, _BEGIN):
        return ["host gaps"] if part.of == _GAP else []
    by_name = f"op {part.name}"
    if part.of == _COMM:
        return ["comm", f"comm {part.category}", by_name]
    named = {_COMPUTE: ["compute"], _HOST: ["host operations"], _COPY: ["copies"], _NAMED: []}
    return named[part.of] + [by_name]


class _PartOf(Protocol):
    def __call__(self, rank: int, piece: int, /) -> FactorTime: ...


def _factor(part: FactorTime, scales: Scales) -> float:
    by_name = scales.ops.get(part.name, 1.0)
    if part.of == _COMPUTE:
        return scales.compute * by_name
    if part.of == _HOST:
        return scales.host * by_name
    if part.of == _COMM:
        return scales.comm * scales.kinds.get(part.category, 1.0) * by_name
    if part.of == _COPY:
        return scales.kinds.get(COPY, 1.0) * by_name
    return {_GAP: scales.gaps, _NAMED: by_name}.get(part.of, 1.0)


def _column(ns: Sequence[int], parts: Sequence[int], factors: Sequence[float]) -> array[int]:
    """Each duration times the factor of its part, rounded half to even; 1 leaves large ints exact."""
    return array(
        "q",
        (
            length if not length or (factor := factors[part]) == 1.0 else round(length * factor)
            for length, part in zip(ns, parts, strict=True)
        ),
    )
