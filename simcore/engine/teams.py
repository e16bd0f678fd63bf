"""Rank classes of a stage that meet in collectives, walked together by the rules of `finish`.

Such classes run one script, so they come to the same collectives in the same order, and wait for the same
messages: a collective begins when the last of its members has come, which all of them are known to have when
the next step is looked at. What a part of a micro-batch does depends on how far the clocks of those are apart
that meet in it, and that repeats with most micro-batches: each such case is walked once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import add

from simcore.folding import Folding
from simcore.program.ops import (
    ADVANCE,
    AWAIT,
    BEGIN,
    JOIN,
    MARK,
    RUN,
    STREAM_OF_GROUP,
    STREAMS,
    AnyCost,
    PartCost,
)
from simcore.records import NamedTuple

# More cases of a part are walked again each time.
_MOST_CASES = 4096
Clocks = list[int]
# By position of a class in its team: the positions of each group of a stream with several members.
Groups = tuple[tuple[int, ...], ...]


class Team(NamedTuple):
    """Classes that run one script in step."""

    classes: tuple[int, ...]
    """The indices of the classes."""
    meetings: dict[int, Groups]
    """By stream the groups in which several of them meet."""

    def begin(self, stream: int, times: Clocks, free: Clocks) -> Clocks:
        """Returns when a collective begins, by class. times: when each has come to it; free: its stream."""
        return meet(self.meetings.get(stream, ()), [*map(max, times, free)])

    def split(self, streams: Sequence[int]) -> list[tuple[int, ...]]:
        """Returns the positions of classes that meet on these streams, directly or by way of others."""
        circles: list[tuple[int, ...]] = [(position,) for position in range(len(self.classes))]
        for stream in streams:
            for members in self.meetings.get(stream, ()):
                apart = [circle for circle in circles if not {*circle} & {*members}]
                touched = {*itertools.chain(*circles)} - {*itertools.chain(*apart)}
                circles = [*apart, tuple(sorted(touched))]
        return circles


def find_teams(folding: Folding) -> list[Team]:
    """Returns the classes of each stage as a team."""
    by_stage: dict[int, list[int]] = {}
    for class_id, rank_class in enumerate(folding.classes):
        by_stage.setdefault(rank_class.stage, []).append(class_id)
    teams = []
    for classes in by_stage.values():
        positions = {class_id: position for position, class_id in enumerate(classes)}
        meetings: dict[int, Groups] = {}
        for group in folding.group_classes:
            if len(group.members) > 1 and group.members[0] in positions:
                stream = STREAM_OF_GROUP[group.kind]
                members = tuple(positions[member] for member in group.members)
                meetings[stream] = (*meetings.get(stream, ()), members)
        teams.append(Team(tuple(classes), meetings))
    return teams


def meet(groups: Groups, begins: Clocks) -> Clocks:
    """Returns when the members of groups begin, each with the last of its group."""
    for members in groups:
        if len(members) == len(begins):
            return [max(begins)] * len(begins)
        last = max([begins[member] for member in members])
        for member in members:
            begins[member] = last
    return begins


class _Circle:
    """Classes of a team that meet in a part, and what they do in it."""

    def __init__(self, positions: tuple[int, ...], part: PartCost, team: Team, prices: _PricesOf) -> None:
        self.positions = positions
        # A stream that is free before compute comes is as one that is free then; of a mark that is not so.
        self._marks = [stream >= len(STREAMS) for stream in part.streams]
        self._groups: list[Groups] = []
        index_of = {position: index for index, position in enumerate(positions)}
        for stream in part.streams:
            inside = (members for members in team.meetings.get(stream, ()) if members[0] in index_of)
            self._groups.append(tuple(tuple(index_of[member] for member in members) for members in inside))
        nothing = [0] * len(positions)
        ns_by_cost: dict[int, Clocks] = {}
        self._steps: list[tuple[int, Clocks, int]] = []
        for code, cost, stream in part.steps:
            ns = nothing
            if code not in (JOIN, MARK, AWAIT):
                # The same object stands for a cost wherever a layer repeats it.
                if id(cost) not in ns_by_cost:
                    ns_by_cost[id(cost)] = prices(cost, positions)
                ns = ns_by_cost[id(cost)]
            self._steps.append((code, ns, stream))
        self._cases: dict[tuple[int, ...], tuple[Clocks, list[Clocks]]] = {}

    def run(self, times: Clocks, free: list[Clocks]) -> tuple[Clocks, list[Clocks]]:
        """Returns when compute of each class and each of its streams are over."""
        base = times[0]
        clocks = [time - base for time in times]
        key = tuple(
            [
                time - base
                for column, is_mark in zip((times, *free), (True, *self._marks), strict=True)
                for time in (column if is_mark else map(max, column, times))
            ]
        )
        case = self._cases.get(key)
        if case is None:
            count = len(clocks)
            columns = [[*key[first : first + count]] for first in range(count, len(key), count)]
            case = self._walk(clocks, columns)
            if len(self._cases) < _MOST_CASES:
                self._cases[key] = case
        after, free_after = case
        return [base + time for time in after], [[base + time for time in column] for column in free_after]

    def _walk(self, times: Clocks, free: list[Clocks]) -> tuple[Clocks, list[Clocks]]:
        ends: list[Clocks] = []
        advanced = [[0] * len(times) for _ in free]
        for code, ns, stream in self._steps:
            if code == RUN:
                times = [*map(add, times, ns)]
            elif code == JOIN:
                times = [*map(max, times, ends[stream])]
            elif code == ADVANCE:
                advanced[stream] = [*map(add, advanced[stream], ns)]
            elif code == AWAIT:
                times = [*map(max, times, map(add, free[stream], advanced[stream]))]
            else:
                begins = meet(self._groups[stream], [*map(max, times, free[stream])])
                if code == MARK:
                    free[stream + 1] = begins
                    continue
                over = free[stream] = [*map(add, begins, ns)]
                if code == BEGIN:
                    ends.append(over)
                else:
                    times = over
        return times, free


_PricesOf = Callable[[AnyCost, Sequence[int]], Clocks]


class TeamPart:
    """A part of a micro-batch as a team runs it."""

    def __init__(self, part: PartCost, team: Team, prices: _PricesOf) -> None:
        """prices: what a cost takes each of the classes at these positions, ns."""
        self._streams = part.streams
        self._circles = [_Circle(positions, part, team, prices) for positions in team.split(part.streams)]

    def run(self, times: Clocks, free: dict[int, Clocks]) -> Clocks:
        """Returns when compute of each class is over. free: when each stream is, which is set anew."""
        nothing = [0] * len(times)
        before = [free.get(stream, nothing) for stream in self._streams]
        if len(self._circles) == 1:
            after, columns = self._circles[0].run(times, before)
            free.update(zip(self._streams, columns, strict=True))
            return after
        after, columns = [*times], [[*column] for column in before]
        for circle in self._circles:
            positions = circle.positions
            own_after, own_columns = circle.run(
                [times[position] for position in positions],
                [[column[position] for position in positions] for column in before],
            )
            for index, position in enumerate(positions):
                after[position] = own_after[index]
                for column, own_column in zip(columns, own_columns, strict=True):
                    column[position] = own_column[index]
        free.update(zip(self._streams, columns, strict=True))
        return after
