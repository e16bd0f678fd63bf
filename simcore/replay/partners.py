"""Communication without a partner: which rank the partner would be, and why it is not there."""

from __future__ import annotations

import itertools
from functools import cached_property

from simcore.diagnostics import Diagnostic, printable
from simcore.kernel_names import short_name
from simcore.measured.matching import OPTIMIZER, Call, Matches, name_of, times_of
from simcore.measured.rank_positions import MODEL_PARALLEL, GroupKey, RankPosition
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import POINT_TO_POINT, RECEIVES, category_of_group
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.sources.measured_graph import MeasuredGraph
from simcore.units import plural

_LISTED = 6
# A world may be huge: at most so many missing ranks are checked for those of a group.
_MOST_CHECKED = 4096
# How many stages away the partner of a transfer is.
_STAGES = {"send_forward": 1, "recv_forward": -1, "send_backward": -1, "recv_backward": 1}


def unmatched_note(run: MeasuredRun, matches: Matches, replayed: bool) -> list[Diagnostic]:
    """Returns what happens to communication without a partner, in a replay or in the measured run."""
    calls = matches.unmatched
    if not calls or not (replayed or run.concurrent):
        return []
    names = list(dict.fromkeys(name_of(run.ranks[call.rank], call) for call in calls))
    listed = ", ".join(short_name(name, 40) for name in names[:_LISTED])
    have, them, their = ("has", "it", "its") if len(calls) == 1 else ("have", "them", "their")
    message = (
        f"{plural(len(calls), 'communication call')} {have} no partner that waited for {them} ({listed}"
        f"{', ...' if len(names) > _LISTED else ''}): "
    )
    if replayed:
        message += f"{their} measured time is kept"
        brief = f"{plural(len(calls), 'call')} without a partner, time kept"
        return [Diagnostic("note", "replay-unmatched", message, run.path, brief=brief)]
    message += f"all of {their} time counts as communication, waiting included"
    brief = f"{plural(len(calls), 'call')} without a partner"
    return [Diagnostic("note", "no-partner", message, run.path, brief=brief)]


def circles_note(graph: MeasuredGraph) -> list[Diagnostic]:
    """Returns what happens to ranks that wait for each other in circles."""
    if not graph.circles:
        return []
    run, listed = graph.rendezvous.run, []
    for rank, segment in graph.circles[:_LISTED]:
        segments, trace = graph.rendezvous.segments[rank], run.ranks[rank]
        name = name_of(trace, Call(rank, segments.op[segment], segments.sub[segment]))
        listed.append(f"rank {trace.rank} in {printable(name, 40)}")
    many = len(graph.circles) > 1
    message = (
        f"ranks wait for each other in {'circles' if many else 'a circle'}, which no real run does: "
        f"{', '.join(listed)}{', ...' if len(graph.circles) > _LISTED else ''} "
        f"{'wait' if many else 'waits'} for nobody and keeps its measured time"
    )
    return [Diagnostic("warning", "circular-waits", message, run.path)]


class Partners(Struct, frozen=True, dict=True):
    """Why calls of a run have no partner. unmatched: those calls."""

    run: MeasuredRun
    matches: Matches
    unmatched: frozenset[Call]

    def words(self, call: Call) -> str:
        """Returns `its sender, rank 2, is missing`; "" for a call that has its partners or needs none."""
        if call not in self.unmatched:
            return ""
        trace, position = self.run.ranks[call.rank], self.matches.positions.positions[call.rank]
        name = trace.ops.name[call.op]
        if call.sub < 0 and name in POINT_TO_POINT:
            return self._transfer_words(name, position)
        kind = trace.subs.group[call.sub] if call.sub >= 0 else trace.ops.group[call.op]
        if call.sub < 0 and name == OPTIMIZER:
            kind = MODEL_PARALLEL
        return self._collective_words(kind or "", position)

    def waiting(self) -> tuple[int, int, int]:
        """Returns the communication without a partner: how many receives and collectives, the id of the rank
        where they last longest, and their ns there, as measured.
        """
        count, longest = 0, (0, 0)
        lasting: dict[int, int] = {}
        for call in self.unmatched:
            trace = self.run.ranks[call.rank]
            if call.sub >= 0 or trace.ops.name[call.op] not in _STAGES or trace.ops.name[call.op] in RECEIVES:
                start, end = times_of(trace, call)
                count += 1
                lasting[trace.rank] = lasting.get(trace.rank, 0) + end - start
        if lasting:
            longest = max(lasting.items(), key=lambda pair: (pair[1], -pair[0]))
        return count, *longest

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The categories of the communication without a partner."""
        kinds = set()
        for call in self.unmatched:
            trace = self.run.ranks[call.rank]
            if call.sub >= 0:
                kinds.add(category_of_group(trace.subs.group[call.sub]))
            else:
                kinds.add(trace.ops.category(call.op))
        return frozenset(kinds)

    def missing_words(self) -> str:
        """Returns `rank 2 is missing`; "" where none is."""
        return _are_missing(self.run.missing) if len(self.run.missing) else ""

    def _transfer_words(self, name: str, position: RankPosition | None) -> str:
        receives = name in RECEIVES
        whose = "its sender" if receives else "its receiver"
        if position is not None:
            there = self.matches.positions.neighbour(position, _STAGES[name])
            for rank, other in zip(self.run.ranks, self.matches.positions.positions, strict=True):
                if other is not None and (other.stage, other.seat) == there:
                    late = "sent nothing for it in time" if receives else "did not wait for it"
                    return f"{whose}, rank {rank.rank}, {late}"
            degrees = self.matches.positions.degrees
            if degrees.tp is not None and degrees.dp is not None:
                rank_id = there[0] * degrees.tp * degrees.dp + there[1]
                if rank_id in self.run.missing:
                    return f"{whose}, rank {rank_id}, is missing"
        return f"{whose} is not known{self._and_missing()}"

    def _collective_words(self, kind: str, position: RankPosition | None) -> str:
        positions = self.matches.positions
        group = None if position is None else positions.group(kind, position)
        if group is None:
            return f"its group is not known{self._and_missing()}"
        absent = [
            rank
            for rank in itertools.islice(self.run.missing, _MOST_CHECKED)
            if self._is_in(rank, kind, group[0])
        ]
        return (
            f"of its group {_are_missing(RankSet.of(absent))}" if absent else "its group did not wait for it"
        )

    def _is_in(self, rank: int, kind: str, group: GroupKey) -> bool:
        degrees = self.matches.positions.degrees
        position = degrees.position(rank)
        if position is None:
            return False
        tp, dp, stage = position
        group_key = self.matches.positions.group(
            kind, RankPosition(stage, dp * (degrees.tp or 1) + tp, tp, dp)
        )
        return group_key is not None and group_key[0] == group

    def _and_missing(self) -> str:
        missing = self.missing_words()
        return f"; {missing}" if missing else ""


def _are_missing(ranks: RankSet) -> str:
    return f"rank {ranks.text()} is missing" if len(ranks) == 1 else f"ranks {ranks.text()} are missing"
