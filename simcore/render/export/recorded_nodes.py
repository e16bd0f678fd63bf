"""The nodes of a recording as Chakra execution traces have them: of its replay, one for each piece of a rank,
and what waits for what in its graph (`simcore/sources/measured_graph.py`) as dependencies.

A rank goes on from piece to piece. A collective that holds it, a send and a receive stand in that line; one
that runs beside compute is launched by the piece before it and waited for by the piece behind its wait. Time
that a rank spends in communication by itself (the tail of a kernel behind the first of its collective, a
call without a partner) is a broadcast in a group of that rank: ASTRA-sim gives it its duration and sends
nothing. Host gaps are CPU nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from simcore.chakra.nodes import COLL, COLLECTIVES, COMP, RECV, SEND
from simcore.chakra.schema import attribute
from simcore.cluster import AskedCluster, choose_cluster
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.measured.matching import Call, name_of
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE, COPY, buffer_bytes, category_of_group
from simcore.ranks import RankSet
from simcore.render.export.format import Request
from simcore.render.export.nodes import (
    CPU,
    GPU,
    NodeList,
    TraceSet,
    between,
    exact,
    of_collective,
    of_transfer,
    one_slot,
)
from simcore.replay.timed import Timed
from simcore.sources.measured import ACCOUNTS, HOST, IDLE, WAIT, own_account
from simcore.sources.pieces import AWAIT, GAP, LAUNCH, MEET, TRANSFER
from simcore.sources.ties import NONE
from simcore.trace.contexts import Recording
from simcore.units import plural

_ALL_GATHER, _BROADCAST = 2, 5
_NETWORK = "switch:{ranks}:450:500"


def recorded_set(request: Request, recording: Recording) -> TraceSet:
    """The replay of a recording. Raises `UsageError` for a run without times."""
    run = recording.as_read.run
    if not run.timed:
        name = printable(run.path, 60)
        raise UsageError(f"FILE {name}: found an order without times, expected a run with times to export")
    written = _Written(recording.base)
    pieces, ranks = sum(map(len, written.ties.pieces)), len(run.ranks)
    cluster = choose_cluster(AskedCluster(dim=(_NETWORK.format(ranks=ranks),))).cluster(ranks)
    return TraceSet(
        f"{plural(ranks, run.unit)}, {plural(pieces, 'piece')}", pieces, written.files(), written.groups,
        cluster, request.results.diagnostics[len(run.diagnostics) :], tuple(_said(written)),
    )  # fmt: skip


def _said(written: _Written) -> Iterator[Diagnostic]:
    ties = written.ties
    path = ties.run.path
    yield Diagnostic(
        "note", "network-assumed",
        f"no trace says its network: network.yml is a switch of {plural(len(ties.pieces), 'NPU')} with "
        "450 GB/s and 500 ns, for you to correct; wltui takes the measured times as long as no network is "
        "named", path,
    )  # fmt: skip
    launched = sum(1 for piece in ties.pieces if LAUNCH in piece.kind)
    if launched:
        yield one_slot(plural(launched, "rank"), "collectives beside other work", path)
    numbers = [rank.number for rank in ties.run.ranks]
    if numbers != list(range(len(numbers))):
        message = (
            f"the run has the ranks {RankSet.of(sorted(numbers)).text()}: in the files they are 0 to "
            f"{len(numbers) - 1} in this order, as ASTRA-sim wants a file for each number"
        )
        yield Diagnostic("note", "ranks-renumbered", message, path)
    if written.untyped:
        message = (
            f"{plural(written.untyped, 'collective')} of several ranks "
            f"{'is' if written.untyped == 1 else 'are'} written as a broadcast, being none of all-reduce, "
            "all-gather, reduce-scatter and all-to-all, or of unknown size: in ASTRA-sim each member takes "
            "its duration, and nobody waits"
        )
        yield Diagnostic("note", "not-sent", message, path)


class _Written:
    """The nodes of all ranks. untyped: collectives that are written as broadcasts."""

    def __init__(self, results: Timed) -> None:
        self.graph, self.ties, self.taken = results.graph, results.ties, results.taken
        self.circles = frozenset(self.graph.circles)
        # A group of each rank alone comes first.
        self.groups: list[tuple[int, ...]] = [(rank,) for rank in range(len(self.ties.pieces))]
        self.untyped = 0
        self.sizes = [self.bytes_of(message.send, message.receive) for message in self.ties.matches.messages]
        self.sent = {
            sender: meeting for meeting, sender in enumerate(self.ties.senders) if sender is not None
        }
        numbers = self._group_numbers()
        self.collectives = [self._collective(number, group) for number, group in enumerate(numbers)]

    def files(self) -> Iterator[tuple[int, bytes, int]]:
        """Of each rank its number, its nodes, and how many pieces they are."""
        for rank, pieces in enumerate(self.ties.pieces):
            yield rank, _Rank(self, rank).run(), len(pieces)

    def _group_numbers(self) -> list[int]:
        """A group for each collective: those of one run one at a time, as far as they did so in the graph."""
        followers = {earlier: number for number, earlier in enumerate(self.ties.before) if earlier != NONE}
        group_numbers = [NONE] * len(self.ties.members)
        for number, earlier in enumerate(self.ties.before):
            if earlier != NONE:
                continue
            at = number
            ranks: tuple[int, ...] = ()
            while at != NONE:
                mine = tuple(sorted(rank for rank, _, _ in self.ties.members[at]))
                if mine != ranks:
                    ranks = mine
                    self.groups.append(ranks)
                group_numbers[at] = len(self.groups)
                at = followers.get(at, NONE)
        return group_numbers

    def _collective(self, number: int, group: int) -> tuple[int, bytes]:
        """(its duration, the attributes of its nodes, which are the same on all members)."""
        meeting = self.ties.matches.meetings[number]
        ns = self.taken[self.graph.meeting_duration(number)]
        call = meeting.calls[0]
        trace = self.ties.run.ranks[call.rank]
        word = name_of(trace, call)
        if call.sub >= 0:
            word = trace.subs.collective[call.sub] or word
        elif trace.device is not None:
            word = trace.device.collectives[call.op].operation
        low = re.sub("[^a-z]", "", word.lower())
        kind = next((number for number, name in COLLECTIVES.items() if name.lower() in low), _BROADCAST)
        size = self.bytes_of(*meeting.calls)
        members = len(meeting.calls)
        if members == 1 or not size or meeting.kind == MODEL_PARALLEL:
            kind = _BROADCAST
        self.untyped += kind == _BROADCAST and members > 1
        share = whole = size
        if kind == _ALL_GATHER:
            # A profiler's size is that of the whole buffer, a rank trace's that of what goes in.
            if trace.device is None:
                whole = size * members
            else:
                share = -(-size // members)
        category = "comm" if meeting.kind == MODEL_PARALLEL else category_of_group(meeting.kind)
        return ns, _of_collective(kind, share, whole, category, group) + exact(ns)

    def bytes_of(self, *calls: Call) -> int:
        """The most bytes that a line of these says; 0 where none does."""
        most = 0
        for rank, op, sub in calls:
            trace = self.ties.run.ranks[rank]
            columns, index = (trace.ops, op) if sub < 0 else (trace.subs, sub)
            most = max(most, buffer_bytes(columns.shape[index], columns.dtype[index]) or 0)
        return most


class _Rank(NodeList):
    """Writes the nodes of a rank, in the order of its pieces."""

    def __init__(self, written: _Written, rank: int) -> None:
        super().__init__()
        self.written = written
        self.graph, self.taken = written.graph, written.taken
        self.rank = rank
        self.trace = written.ties.run.ranks[rank]
        self.pieces = written.ties.pieces[rank]
        self.node_of: dict[int, int] = {}

    def run(self) -> bytes:
        """The file."""
        for piece, kind in enumerate(self.pieces.kind):
            broken = (self.rank, piece) in self.written.circles
            if kind == TRANSFER:
                self._transfer(piece, broken)
            elif kind in (MEET, LAUNCH, AWAIT):
                self._meeting(piece, kind, broken)
            else:
                self._own(piece, self._first(piece))
        if not len(self):
            self.add(b"nothing", COMP, 0, CPU + exact(0))
        return self.file()

    def _first(self, piece: int) -> int:
        return self.taken[self.graph.first_duration(self.rank, piece)]

    def _name(self, piece: int) -> bytes:
        if self.pieces.kind[piece] == GAP:
            return b"host gap"
        call = Call(self.rank, self.pieces.op[piece], self.pieces.sub[piece])
        batch = self.trace.ops.batch[call.op]
        text = name_of(self.trace, call) + (f" mb{batch}" if batch >= 0 else "")
        return text.encode("utf-8", "replace")

    def _own(self, piece: int, ns: int) -> None:
        """What a rank does by itself; of no time nothing."""
        if ns <= 0:
            return
        account = own_account(self.graph, self.rank, piece)
        word = ACCOUNTS[account].removeprefix("compute ").removeprefix("exposed ")
        name, kind = self._name(piece), COMP
        if word in COMPUTE:
            attributes = GPU + attribute("wltui_phase", word)
        elif account in (IDLE, WAIT) or word == COPY:
            phase = COPY if word == COPY else "idle"
            attributes = CPU + attribute("wltui_phase", phase)
        elif account == HOST:
            attributes = CPU
        else:
            kind, attributes = COLL, _of_collective(_BROADCAST, 0, 0, word, self.rank + 1)
        self.held = [self.add(name, kind, ns, attributes + exact(ns))]

    def _meeting(self, piece: int, kind: int, broken: bool) -> None:
        number = self.pieces.meeting[piece]
        if kind != AWAIT:
            collective = self.written.collectives[number]
            before = self.held
            if (self.rank, piece) in self.written.sent:
                # The receive waits for the send to begin alone.
                self._sent(piece, self.written.sent[self.rank, piece], SEND)
            if self.written.ties.senders[number] is not None:
                self.held = [self._sent(piece, number, RECV)]
            self.node_of[number] = self.add(self._name(piece), COLL, *collective)
            self.held = before
        if broken:
            self._own(piece, self._first(piece))
        elif kind != LAUNCH:
            node = self.node_of[number]
            self.held = [node] if kind == MEET else [*self.held, node]
            self._own(piece, self.taken[self.graph.after_duration(self.rank, piece)])

    def _transfer(self, piece: int, broken: bool) -> None:
        sent, received = self.pieces.sent[piece], self.pieces.received[piece]
        first = self._first(piece)
        if sent != NONE:
            ns = self.taken[self.graph.message_duration(sent)]
            node = self._message(piece, sent, SEND, ns)
            if not broken and ns <= first:
                # The rank is in its send until the message is there, and as much longer as was measured.
                self.held = [node]
                first -= ns
        if broken or sent != NONE or received == NONE:
            self._own(piece, first)
        if not broken and received != NONE:
            self.held = [self._message(piece, received, RECV, 0)]
            self._own(piece, self.taken[self.graph.after_duration(self.rank, piece)])

    def _message(self, piece: int, message: int, kind: int, ns: int) -> int:
        (source, _), (target, _) = self.written.ties.transfers[message]
        return self._transferred(piece, message, (source, target), self.written.sizes[message], kind, ns)

    def _sent(self, piece: int, meeting: int, kind: int) -> int:
        """One end of the message that a collective of one rank receives."""
        ties = self.written.ties
        sender, ((target, _, _), *_) = ties.senders[meeting], ties.members[meeting]
        call = ties.matches.meetings[meeting].sender
        assert sender is not None
        assert call is not None
        size = self.written.bytes_of(call)
        # Numbers of messages and of collectives do not meet.
        tag = len(self.written.sizes) + meeting
        return self._transferred(piece, tag, (sender[0], target), size, kind, 0)

    def _transferred(self, piece: int, tag: int, ends: tuple[int, int], size: int, kind: int, ns: int) -> int:
        values = of_transfer(size, tag, between(*ends))
        return self.add(self._name(piece), kind, ns, values if kind == RECV else values + exact(ns))


def _of_collective(kind: int, share: int, whole: int, category: str, group: int) -> bytes:
    said = attribute("wltui_kind", category) + attribute("pg_name", str(group))
    return of_collective(kind, share, whole) + said
