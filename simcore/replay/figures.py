"""The figures of a measured run as every run has them: see `simcore/run/figures.py`.

What a rank takes of the step in the words of simulated runs; of a profiler trace as unions of its
operations' times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.measured.columns import MEASURED, PASSES, RankTrace
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY, LAUNCH, category_of_group, said_op
from simcore.parameters import as_dict
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.replay.critical_path import reason_words
from simcore.replay.operations import op_uses
from simcore.replay.run_words import facts, title
from simcore.replay.worst import piece_name
from simcore.run.accounts import Accounts, merged
from simcore.run.figures import LayerUse, Origin, PathSegment, Said, StreamUse, TrackUse, WaitFor
from simcore.run.pieces import GAP
from simcore.sources.measured import ACCOUNTS, FIRST_EXPOSED, WAIT

if TYPE_CHECKING:
    from simcore.measured.run import MeasuredRun
    from simcore.replay.timed import Timed
    from simcore.run.track import Track


# The trace's words for what simulated runs have too. A trace does not tell input and weight gradients and
# what is recomputed apart: `bwd` is all of a backward step. `other`: of groups without a name.
PHASES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt", "kernel": "kernel"}
KINDS = {"expert": "ep", "expert dp": "dp_ep", "comm": "other"}


def compute_ns(accounts: Accounts) -> dict[str, int]:
    """Compute by phase, ns."""
    return {PHASES[name]: ns for name, ns in accounts.compute_ns().items()}


def exposed_ns(accounts: Accounts) -> dict[str, int]:
    """Exposed communication by kind of group, ns."""
    return {KINDS.get(name, name): ns for name, ns in accounts.exposed_ns().items()}


def stream_times(rank: RankTrace, accounts: Accounts) -> list[StreamUse]:
    """The streams that a rank has, compute first. rank: with the times that the accounts are of.

    Where compute waits for it, communication is busy from when the last member has come.
    """
    stream_uses = [StreamUse("compute", accounts.busy_ns, 0, 0)]
    computed = accounts.computed()
    spans = _communication(rank)
    # Never said when it runs.
    unknown = LAUNCH in rank.ops.name
    for category, ns in accounts.exposed_ns().items():
        beside = sum(computed(end) - computed(start) for start, end in merged(spans.get(category, [])))
        if ns or beside:
            name = KINDS.get(category, category)
            stream_uses.append(StreamUse(name, ns + beside, None if unknown else beside, ns))
    return stream_uses


def overlapped_ns(rank: RankTrace, accounts: Accounts) -> int | None:
    """Communication beside compute, ns; None of a rank that launches some and never says when it runs."""
    if LAUNCH in rank.ops.name:
        return None
    computed = accounts.computed()
    spans = [span for of_kind in _communication(rank).values() for span in of_kind]
    return sum(computed(end) - computed(start) for start, end in merged(spans))


def _communication(rank: RankTrace) -> dict[str, list[tuple[int, int]]]:
    """(start, end) of the sub-operations by category: beside compute only those can run."""
    spans_of: dict[str, list[tuple[int, int]]] = {}
    subs = rank.subs
    for group, known, start, end in zip(subs.group, subs.known, subs.start, subs.end, strict=True):
        if known == MEASURED and end > start:
            spans_of.setdefault(category_of_group(group), []).append((start, end))
    return spans_of


def peak_microbatches(rank: RankTrace) -> int | None:
    """The most micro-batches that are forward and not yet backward; None where the trace names none."""
    held: dict[int, int] = {}
    most = 0
    ops = rank.ops
    for op in rank.passes:
        if ops.batch[op] < 0:
            continue
        forward = PASSES[ops.name[op]] == "forward"
        held[ops.batch[op]] = held.get(ops.batch[op], 0) + (1 if forward else -1)
        most = max(most, sum(count > 0 for count in held.values()))
    return most or None


_COMPUTE = frozenset(map(CATEGORIES.index, COMPUTE))
_COPY = CATEGORIES.index(COPY)
Spans = list[tuple[int, int]]


class DeviceUse(NamedTuple):
    """ns of one rank. comm_ns: the union of what communicates; overlapped_ns: of that beside compute.
    exposed_ns: by the name of the group as the trace has it, and `copy`; they sum to the rank's exposed
    accounts. streams: of each group.
    """

    comm_ns: int
    overlapped_ns: int
    exposed_ns: dict[str, int]
    streams: list[StreamUse]


class Unions(NamedTuple):
    """Disjoint spans, ascending: what computes, what communicates by group, what copies."""

    compute: Spans
    comm: dict[str, Spans]
    copies: Spans


def unions_of(rank: RankTrace) -> Unions:
    """The unions of a rank's operations by what they are."""
    ops = rank.ops
    compute: Spans = []
    copies: Spans = []
    comm: dict[str, Spans] = {}
    for op, (start, end) in enumerate(zip(ops.start, ops.end, strict=True)):
        kind = ops.stated[op]
        spans = (
            compute
            if kind in _COMPUTE
            else copies
            if kind == _COPY
            else comm.setdefault(ops.group[op] or "comm", [])
        )
        spans.append((start, end))
    return Unions(merged(compute), {name: merged(spans) for name, spans in comm.items()}, merged(copies))


def total(spans: Sequence[tuple[int, int]]) -> int:
    """How long disjoint spans are together."""
    return sum(end - start for start, end in spans)


def both(first: Spans, other: Spans) -> Spans:
    """What lies in both of two unions."""
    spans: Spans = []
    at = 0
    for start, end in first:
        while at < len(other) and other[at][1] <= start:
            at += 1
        index = at
        while index < len(other) and other[index][0] < end:
            spans.append((max(start, other[index][0]), min(end, other[index][1])))
            index += 1
    return spans


def device_use(results: Timed, rank: int) -> DeviceUse | None:
    """Of the `rank`-th rank, in the run that is shown; None of a run that no profiler recorded."""
    if not results.measured.of_devices:
        return None
    trace = results.run.ranks[rank]
    unions = unions_of(trace)
    comm = merged(span for spans in unions.comm.values() for span in spans)
    exposed = dict.fromkeys(unions.comm, 0) | {COPY: 0}
    accounts, pieces = results.accounts[rank], results.ties.pieces[rank]
    for segment, account in enumerate(accounts.account):
        if FIRST_EXPOSED <= account < WAIT:
            op = pieces.op[accounts.op[segment]]
            name = COPY if trace.ops.stated[op] == _COPY else trace.ops.group[op] or "comm"
            exposed[name] = exposed.get(name, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    streams = [
        StreamUse(name, total(spans), total(both(spans, unions.compute)), exposed[name])
        for name, spans in unions.comm.items()
    ]
    return DeviceUse(total(comm), total(both(comm, unions.compute)), exposed, streams)


_HEADINGS = {"expert dp": "exp. dp", "optimizer": "opt.", "embedding": "emb."}


def _policy(run: MeasuredRun) -> str:
    if run.of_devices:
        return "profiler"
    return "megatron" if run.unit == "rank" else "megatron-plan"


class MeasuredFigures:
    """See `Figures` in `simcore/analysis/run.py`. A ms of the files has two decimals: no more are measured.

    Each rank is a track of its own, each operation a layer; a trace describes no network.
    """

    resolution_ns = 10_000
    worst_link = None
    simai_beside = ("", ())
    nodes = None

    def __init__(self, results: Timed, sentences: Callable[[], list[str]]) -> None:
        """sentences: the run in words, which replays of it are made for."""
        self.results = results
        self._words = sentences

    @property
    def title(self) -> str:
        return title(self.results)

    @property
    def facts(self) -> list[tuple[str, str]]:
        return facts(self.results)

    @property
    def recorded(self) -> Timed:
        return self.results

    @property
    def has_slack(self) -> bool:
        return self.results.timed

    @property
    def said(self) -> list[Said]:
        return [Said("measured", line) for line in self._words()]

    @property
    def track_uses(self) -> list[TrackUse]:
        return [self._track_use(track) for track in sorted(self.results.tracks)] if self.results.timed else []

    @cached_property
    def origin(self) -> Origin:
        run, shown, degrees = self.results.measured, self.results.run, self.results.measured.degrees
        spans = run.ops + run.subs
        return Origin(
            run.format, _policy(run),
            run.ops, None, run.microbatches,
            {"tp": degrees.tp, "ep": degrees.exp, "dp": degrees.dp, "pp": degrees.pp, "world": degrees.world},
            "measured", "replayed" if shown.replayed else "measured",
            as_dict(self.results.parameters, "trace") | {"run": run.stamp, "replay": shown.replayed},
            [], spans, spans if shown.replayed else 0,
        )  # fmt: skip

    @cached_property
    def account_columns(self) -> list[tuple[str, tuple[str, ...]]]:
        columns: list[tuple[str, tuple[str, ...]]] = []
        for number, account in enumerate(ACCOUNTS):
            if any(accounts.total_ns[number] for accounts in self.results.accounts):
                name = account.removeprefix("compute " if number < FIRST_EXPOSED else "exposed ")
                columns.append((_HEADINGS.get(name, name), (account,)))
        return columns

    def _track_use(self, track: Track) -> TrackUse:
        rank, accounts = self.results.run.ranks[track.number], self.results.accounts[track.number]
        use = device_use(self.results, track.number)
        compute, exposed, overlapped = (
            compute_ns(accounts),
            exposed_ns(accounts),
            overlapped_ns(rank, accounts),
        )
        comm_ns = sum(exposed.values()) + (overlapped or 0)
        if use is not None:
            compute = {"kernel": 0} | compute
            exposed, overlapped, comm_ns = use.exposed_ns, use.overlapped_ns, use.comm_ns
        return TrackUse(
            track, compute, exposed, accounts.ns("wait"), accounts.ns("bubble"), accounts.ns("host"),
            accounts.ns("idle"),
            overlapped, comm_ns, peak_microbatches(rank),
            self._streams(track.number),
        )  # fmt: skip

    def _streams(self, rank: int) -> list[StreamUse]:
        """Of the `rank`-th rank, compute first; of a device by the names of its groups."""
        trace, accounts = self.results.run.ranks[rank], self.results.accounts[rank]
        use = device_use(self.results, rank)
        if use is None:
            return stream_times(trace, accounts)
        return [StreamUse("compute", accounts.busy_ns, 0, 0), *use.streams]

    @cached_property
    def mean_streams(self) -> list[tuple[StreamUse, int]]:
        if not self.results.timed:
            return []
        ranks = len(self.results.measured.ranks)
        uses_of: dict[str, list[StreamUse]] = {}
        for rank in self.results.all_ranks:
            for use in self._streams(rank):
                uses_of.setdefault(use.stream, []).append(use)
        streams = []
        for name, uses in uses_of.items():
            busy = round(sum(use.busy_ns for use in uses) / ranks)
            beside = [use.overlapped_ns for use in uses if use.overlapped_ns is not None]
            overlapped = round(sum(beside) / ranks) if len(beside) == len(uses) else None
            exposed = round(sum(use.exposed_ns for use in uses) / ranks)
            streams.append((StreamUse(name, busy, overlapped, exposed), max(use.busy_ns for use in uses)))
        return streams

    @cached_property
    def waits_for(self) -> list[WaitFor]:
        if not self.results.timed:
            return []
        return [
            WaitFor(
                RankSet.of([wait.early]), RankSet.of([wait.late]), wait.name, wait.ns, said_op(wait.name, 34)
            )
            for wait in self.results.waiting
        ]

    def path_alike(self) -> Iterator[object]:
        """What a segment of the critical path is: time of one account, in the operations of one name."""
        for piece_segment in self.results.critical_path:
            yield piece_segment.account, piece_name(self.results, piece_segment.rank, piece_segment.piece)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        path, ranks = self.results.critical_path, self.results.measured.ranks
        for segment in path if indices is None else (path[index] for index in indices):
            rank, pieces = ranks[segment.rank], self.results.ties.pieces[segment.rank]
            op = pieces.op[segment.piece]
            is_gap = pieces.kind[segment.piece] == GAP
            batch = rank.ops.batch[op]
            yield PathSegment(
                segment.start, segment.end, rank.number,
                segment.kind if ACCOUNTS[segment.account] != segment.kind else "compute", segment.kind,
                None if is_gap else piece_name(self.results, segment.rank, segment.piece),
                None if is_gap else rank.ops.state[op], None if is_gap or batch < 0 else batch,
                reason_words(segment, self.results.gaps[segment.rank], ranks[segment.of].number),
            )  # fmt: skip

    def path_words(self, index: int) -> tuple[str, str]:
        """`pp` and recv_forward, `idle` and nothing."""
        segment = self.results.critical_path[index]
        is_gap = self.results.ties.pieces[segment.rank].kind[segment.piece] == GAP
        return segment.kind, "" if is_gap else piece_name(self.results, segment.rank, segment.piece)

    def layers(self, grouped: bool) -> list[LayerUse]:
        if grouped or not self.results.timed:
            return []
        return [
            LayerUse(
                index, use.op if use.sub is None else use.sub, 1, None, None, None, use.op,
                use.compute_ns, use.exposed_ns, use.critical_ns, use.slack_ns,
            )
            for index, use in enumerate(op_uses(self.results))
        ]  # fmt: skip
