"""The figures of a measured run as every run has them: see `simcore/run/figures.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.parameters import as_dict
from simcore.ranks import RankSet
from simcore.replay.accounts import ACCOUNTS, FIRST_EXPOSED
from simcore.replay.critical_path import REASONS
from simcore.replay.device_use import device_use
from simcore.replay.op_use import op_uses
from simcore.replay.rank_use import compute_ns, exposed_ns, overlapped_ns, peak_microbatches, stream_times
from simcore.replay.run_words import facts, title
from simcore.replay.worst import piece_name
from simcore.run.figures import LayerUse, Origin, PathSegment, Said, StreamUse, TrackUse, WaitFor
from simcore.run.pieces import GAP

if TYPE_CHECKING:
    from simcore.measured.run import MeasuredRun
    from simcore.replay.results import MeasuredResults
    from simcore.run.track import Track

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

    def __init__(self, results: MeasuredResults) -> None:
        self.results = results

    @property
    def title(self) -> str:
        return title(self.results)

    @property
    def facts(self) -> list[tuple[str, str]]:
        return facts(self.results)

    @property
    def recorded(self) -> MeasuredResults:
        return self.results

    @property
    def has_slack(self) -> bool:
        return self.results.timed

    @property
    def said(self) -> list[Said]:
        return [Said("measured", line) for line in self.results.words]

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
        found: list[tuple[str, tuple[str, ...]]] = []
        for number, account in enumerate(ACCOUNTS):
            if any(one.total_ns[number] for one in self.results.accounts):
                name = account.removeprefix("compute " if number < FIRST_EXPOSED else "exposed ")
                found.append((_HEADINGS.get(name, name), (account,)))
        return found

    def _track_use(self, track: Track) -> TrackUse:
        rank, one = self.results.run.ranks[track.number], self.results.accounts[track.number]
        use = device_use(self.results, track.number)
        compute, exposed, overlapped = compute_ns(one), exposed_ns(one), overlapped_ns(rank, one)
        comm_ns = sum(exposed.values()) + (overlapped or 0)
        if use is not None:
            compute = {"kernel": 0} | compute
            exposed, overlapped, comm_ns = use.exposed_ns, use.overlapped_ns, use.comm_ns
        return TrackUse(
            track, compute, exposed, one.ns("wait"), one.ns("bubble"), one.ns("host"), one.ns("idle"),
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
        found: dict[str, list[StreamUse]] = {}
        for rank in self.results.all_ranks:
            for use in self._streams(rank):
                found.setdefault(use.stream, []).append(use)
        streams = []
        for name, uses in found.items():
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
            WaitFor(RankSet.of([one.early]), RankSet.of([one.late]), one.name, one.ns)
            for one in self.results.waiting
        ]

    def path_alike(self) -> Iterator[object]:
        """What a segment of the critical path is: time of one account, in the operations of one name."""
        for one in self.results.critical_path:
            yield one.account, piece_name(self.results, one.rank, one.piece)

    def path_segments(self, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        path, ranks = self.results.critical_path, self.results.measured.ranks
        for one in path if indices is None else (path[index] for index in indices):
            rank, pieces = ranks[one.rank], self.results.ties.pieces[one.rank]
            op = pieces.op[one.piece]
            is_gap = pieces.kind[one.piece] == GAP
            batch = rank.ops.batch[op]
            yield PathSegment(
                one.start, one.end, rank.number,
                one.kind.split(" ", 1)[1] if one.kind.startswith("exposed ") else "compute", one.kind,
                None if is_gap else piece_name(self.results, one.rank, one.piece),
                None if is_gap else rank.ops.state[op], None if is_gap or batch < 0 else batch,
                REASONS[one.reason].format(rank=ranks[one.of].number),
            )  # fmt: skip

    def path_words(self, index: int) -> tuple[str, str]:
        """`exposed pp` and recv_forward, `idle` and nothing."""
        one = self.results.critical_path[index]
        is_gap = self.results.ties.pieces[one.rank].kind[one.piece] == GAP
        return one.kind, "" if is_gap else piece_name(self.results, one.rank, one.piece)

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
