"""The nodes of a recording in Chakra execution traces: those of its replay, one for each segment of a rank.

Their dependencies are those of its graph (`simcore/sources/measured_graph.py`). A rank goes from segment to
segment. A collective that blocks it, a send and a receive are in that sequence; a collective that overlaps
compute is launched by the segment before it and awaited by the segment after its wait. Time that a rank
spends in communication on its own (the tail of a kernel after the first of its collective, a call without a
partner) is a broadcast in a group of that rank: ASTRA-sim gives it its duration and sends nothing. Host gaps
are CPU nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simcore.chakra.nodes import COLL, COLLECTIVES, COMP, RECV, SEND
from simcore.chakra.schema import attribute
from simcore.cluster import ClusterParameters, choose_cluster
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.measured.matching import Call, name_of
from simcore.measured.rank_positions import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE, COPY, buffer_bytes, category_of_group
from simcore.ranks import RankSet
from simcore.render.export.format import Request
from simcore.render.export.nodes import (
    CPU,
    GPU,
    NodeList,
    TraceSet,
    collective_attributes,
    endpoint_attributes,
    exact_duration,
    one_slot_note,
    transfer_attributes,
)
from simcore.replay.replayed_run import ReplayedRun
from simcore.sources.measured import ACCOUNTS, HOST, IDLE, WAIT, own_account
from simcore.sources.rendezvous import NONE
from simcore.sources.segments import AWAIT, GAP, LAUNCH, MEET, TRANSFER
from simcore.trace.contexts import Recording
from simcore.units import plural

_ALL_GATHER, _BROADCAST = 2, 5
_NETWORK = "switch:{ranks}:450:500"


def recorded_set(request: Request, recording: Recording) -> TraceSet:
    """Returns the replay of a recording. Raises `UsageError` for a run without times."""
    run = recording.as_read.run
    if not run.timed:
        name = printable(run.path, 60)
        raise UsageError(f"FILE {name}: found an order without times, expected a run with times to export")
    writer = _RankNodes(recording.base)
    segment_count, ranks = sum(map(len, writer.rendezvous.segments)), len(run.ranks)
    cluster = choose_cluster(ClusterParameters(dim=(_NETWORK.format(ranks=ranks),))).cluster(ranks)
    return TraceSet(
        f"{plural(ranks, run.unit)}, {plural(segment_count, 'piece')}",
        segment_count,
        writer.files(),
        writer.groups,
        cluster,
        request.results.diagnostics[len(run.diagnostics) :],
        tuple(_export_notes(writer)),
    )


def _export_notes(writer: _RankNodes) -> Iterator[Diagnostic]:
    rendezvous = writer.rendezvous
    path = rendezvous.run.path
    yield Diagnostic(
        "note",
        "network-assumed",
        "no trace says its network: network.yml is a switch of "
        f"{plural(len(rendezvous.segments), 'NPU')} with "
        "450 GB/s and 500 ns, for you to correct; wltui takes the measured times as long as no network is "
        "named",
        path,
    )
    launching_ranks = sum(1 for segments in rendezvous.segments if LAUNCH in segments.kind)
    if launching_ranks:
        yield one_slot_note(plural(launching_ranks, "rank"), "collectives beside other work", path)
    rank_ids = [rank.rank for rank in rendezvous.run.ranks]
    if rank_ids != list(range(len(rank_ids))):
        message = (
            f"the run has the ranks {RankSet.of(sorted(rank_ids)).text()}: in the files they are 0 to "
            f"{len(rank_ids) - 1} in this order, as ASTRA-sim wants a file for each number"
        )
        yield Diagnostic("note", "ranks-renumbered", message, path)
    if writer.untyped:
        message = (
            f"{plural(writer.untyped, 'collective')} of several ranks "
            f"{'is' if writer.untyped == 1 else 'are'} written as a broadcast, being none of all-reduce, "
            "all-gather, reduce-scatter and all-to-all, or of unknown size: in ASTRA-sim each member takes "
            "its duration, and nobody waits"
        )
        yield Diagnostic("note", "not-sent", message, path)


class _RankNodes:
    """The nodes of all ranks. untyped: how many collectives are written as broadcasts."""

    def __init__(self, results: ReplayedRun) -> None:
        self.graph, self.rendezvous, self.durations = results.graph, results.rendezvous, results.durations_ns
        self.circles = frozenset(self.graph.circles)
        # The groups of each rank alone come first.
        self.groups: list[tuple[int, ...]] = [(rank,) for rank in range(len(self.rendezvous.segments))]
        self.untyped = 0
        self.sizes = [
            self.max_bytes(message.send, message.receive) for message in self.rendezvous.matches.messages
        ]
        self.meeting_by_sender = {
            sender: meeting for meeting, sender in enumerate(self.rendezvous.senders) if sender is not None
        }
        group_ids = self._group_ids()
        self.collectives = [
            self._collective_node(collective, group) for collective, group in enumerate(group_ids)
        ]

    def files(self) -> Iterator[tuple[int, bytes, int]]:
        """Yields the number of each rank, its nodes, and how many segments they are."""
        for rank, segments in enumerate(self.rendezvous.segments):
            yield rank, _Rank(self, rank).encode_file(), len(segments)

    def _group_ids(self) -> list[int]:
        """Returns a group for each collective.

        Those of one group run one at a time, as they do in the graph.
        """
        followers = {
            earlier: meeting for meeting, earlier in enumerate(self.rendezvous.before) if earlier != NONE
        }
        group_ids = [NONE] * len(self.rendezvous.members)
        for meeting, earlier in enumerate(self.rendezvous.before):
            if earlier != NONE:
                continue
            follower = meeting
            ranks: tuple[int, ...] = ()
            while follower != NONE:
                member_ranks = tuple(sorted(rank for rank, _, _ in self.rendezvous.members[follower]))
                if member_ranks != ranks:
                    ranks = member_ranks
                    self.groups.append(ranks)
                group_ids[follower] = len(self.groups)
                follower = followers.get(follower, NONE)
        return group_ids

    def _collective_node(self, meeting_index: int, group: int) -> tuple[int, bytes]:
        """Returns (its duration, the attributes of its nodes, which are the same on all members)."""
        meeting = self.rendezvous.matches.meetings[meeting_index]
        ns = self.durations[self.graph.meeting_duration(meeting_index)]
        call = meeting.calls[0]
        trace = self.rendezvous.run.ranks[call.rank]
        word = name_of(trace, call)
        if call.sub >= 0:
            word = trace.subs.collective[call.sub] or word
        elif trace.device is not None:
            word = trace.device.collectives[call.op].operation
        normalized = re.sub("[^a-z]", "", word.lower())
        kind = next((code for code, name in COLLECTIVES.items() if name.lower() in normalized), _BROADCAST)
        size = self.max_bytes(*meeting.calls)
        members = len(meeting.calls)
        if members == 1 or not size or meeting.kind == MODEL_PARALLEL:
            kind = _BROADCAST
        self.untyped += kind == _BROADCAST and members > 1
        share = whole_bytes = size
        if kind == _ALL_GATHER:
            # The size in a profiler's trace is that of the whole buffer, in a rank trace that of the input.
            if trace.device is None:
                whole_bytes = size * members
            else:
                share = -(-size // members)
        category = "comm" if meeting.kind == MODEL_PARALLEL else category_of_group(meeting.kind)
        return ns, _group_collective(kind, share, whole_bytes, category, group) + exact_duration(ns)

    def max_bytes(self, *calls: Call) -> int:
        """Returns the most bytes that a line of these calls states; 0 where none does."""
        most = 0
        for rank, op, sub in calls:
            trace = self.rendezvous.run.ranks[rank]
            columns, index = (trace.ops, op) if sub < 0 else (trace.subs, sub)
            most = max(most, buffer_bytes(columns.shape[index], columns.dtype[index]) or 0)
        return most


class _Rank(NodeList):
    """Writes the nodes of a rank, in the order of its segments."""

    def __init__(self, writer: _RankNodes, rank: int) -> None:
        super().__init__()
        self.writer = writer
        self.graph, self.durations = writer.graph, writer.durations
        self.rank = rank
        self.trace = writer.rendezvous.run.ranks[rank]
        self.segments = writer.rendezvous.segments[rank]
        self.node_of: dict[int, int] = {}

    def encode_file(self) -> bytes:
        """Returns the file."""
        for segment, kind in enumerate(self.segments.kind):
            broken = (self.rank, segment) in self.writer.circles
            if kind == TRANSFER:
                self._add_transfer(segment, broken)
            elif kind in (MEET, LAUNCH, AWAIT):
                self._add_meeting(segment, kind, broken)
            else:
                self._add_own_time(segment, self._first_duration(segment))
        if not len(self):
            self.add(b"nothing", COMP, 0, CPU + exact_duration(0))
        return self.encode()

    def _first_duration(self, segment: int) -> int:
        return self.durations[self.graph.first_duration(self.rank, segment)]

    def _name(self, segment: int) -> bytes:
        if self.segments.kind[segment] == GAP:
            return b"host gap"
        call = Call(self.rank, self.segments.op[segment], self.segments.sub[segment])
        batch = self.trace.ops.batch[call.op]
        text = name_of(self.trace, call) + (f" mb{batch}" if batch >= 0 else "")
        return text.encode("utf-8", "replace")

    def _add_own_time(self, segment: int, ns: int) -> None:
        """Adds what a rank does on its own; nothing for no time."""
        if ns <= 0:
            return
        account = own_account(self.graph, self.rank, segment)
        word = ACCOUNTS[account].removeprefix("compute ").removeprefix("exposed ")
        name, kind = self._name(segment), COMP
        if word in COMPUTE:
            attributes = GPU + attribute("wltui_phase", word)
        elif account in (IDLE, WAIT) or word == COPY:
            phase = COPY if word == COPY else "idle"
            attributes = CPU + attribute("wltui_phase", phase)
        elif account == HOST:
            attributes = CPU
        else:
            kind, attributes = COLL, _group_collective(_BROADCAST, 0, 0, word, self.rank + 1)
        self.predecessors = [self.add(name, kind, ns, attributes + exact_duration(ns))]

    def _add_meeting(self, segment: int, kind: int, broken: bool) -> None:
        meeting = self.segments.meeting[segment]
        if kind != AWAIT:
            collective = self.writer.collectives[meeting]
            before = self.predecessors
            if (self.rank, segment) in self.writer.meeting_by_sender:
                # The receive waits only for the start of the send.
                self._add_sender_message(segment, self.writer.meeting_by_sender[self.rank, segment], SEND)
            if self.writer.rendezvous.senders[meeting] is not None:
                self.predecessors = [self._add_sender_message(segment, meeting, RECV)]
            self.node_of[meeting] = self.add(self._name(segment), COLL, *collective)
            self.predecessors = before
        if broken:
            self._add_own_time(segment, self._first_duration(segment))
        elif kind != LAUNCH:
            node = self.node_of[meeting]
            self.predecessors = [node] if kind == MEET else [*self.predecessors, node]
            self._add_own_time(segment, self.durations[self.graph.after_duration(self.rank, segment)])

    def _add_transfer(self, segment: int, broken: bool) -> None:
        sent_message, received_message = self.segments.message[segment], self.segments.received[segment]
        first = self._first_duration(segment)
        if sent_message != NONE:
            ns = self.durations[self.graph.message_duration(sent_message)]
            node = self._add_message(segment, sent_message, SEND, ns)
            if not broken and ns <= first:
                # The rank is in its send until the message arrives, and then for the rest of the measured
                # time.
                self.predecessors = [node]
                first -= ns
        if broken or sent_message != NONE or received_message == NONE:
            self._add_own_time(segment, first)
        if not broken and received_message != NONE:
            self.predecessors = [self._add_message(segment, received_message, RECV, 0)]
            self._add_own_time(segment, self.durations[self.graph.after_duration(self.rank, segment)])

    def _add_message(self, segment: int, message: int, kind: int, ns: int) -> int:
        (source, _), (target, _) = self.writer.rendezvous.transfers[message]
        return self._add_transfer_node(
            segment, message, (source, target), self.writer.sizes[message], kind, ns
        )

    def _add_sender_message(self, segment: int, meeting: int, kind: int) -> int:
        """Adds one end of the message that a collective of one rank receives, and returns its id."""
        rendezvous = self.writer.rendezvous
        sender, ((target, _, _), *_) = rendezvous.senders[meeting], rendezvous.members[meeting]
        call = rendezvous.matches.meetings[meeting].sender
        assert sender is not None
        assert call is not None
        size = self.writer.max_bytes(call)
        # Tags of messages and of collectives must differ.
        tag = len(self.writer.sizes) + meeting
        return self._add_transfer_node(segment, tag, (sender[0], target), size, kind, 0)

    def _add_transfer_node(
        self, segment: int, tag: int, ends: tuple[int, int], size: int, kind: int, ns: int
    ) -> int:
        values = transfer_attributes(size, tag, endpoint_attributes(*ends))
        return self.add(
            self._name(segment), kind, ns, values if kind == RECV else values + exact_duration(ns)
        )


def _group_collective(kind: int, share: int, whole_bytes: int, category: str, group: int) -> bytes:
    group_attributes = attribute("wltui_kind", category) + attribute("pg_name", str(group))
    return collective_attributes(kind, share, whole_bytes) + group_attributes
