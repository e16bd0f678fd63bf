"""The figures of a measured run as every run has them: see `simcore/trace/figures.py`.

What a rank takes of the step in the words of simulated runs; of a profiler trace as unions of its
operations' times.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from simcore.measured.columns import MEASURED, PASSES, RankTrace
from simcore.measured.vocabulary import COPY, LAUNCH, category_of_group, said_op
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.replay.operations import op_uses
from simcore.sources.measured import measured_calls
from simcore.trace.accounts import Accounts, merged
from simcore.trace.figures import Origin, Said, StreamUse, TrackUse, WaitFor
from simcore.trace.findings import Place
from simcore.trace.named_work import NamedWork, named_work
from simcore.trace.run import Figures
from simcore.trace.streams import mean_use, track_streams
from simcore.trace.tables import LayerUse, SpentByLabel
from simcore.trace.track import TimedPass, Track
from simcore.words.measured_run import facts, headline, title

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simcore.measured.run import MeasuredRun
    from simcore.replay.path_words import MeasuredPath
    from simcore.replay.timed import Timed
    from simcore.trace.gradients import Gradient


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


class DeviceUse(NamedTuple):
    """ns of one rank. comm_ns: the union of what communicates; overlapped_ns: of that beside compute.
    exposed_ns: by the name of the group as the trace has it, and `copy`; they sum to the rank's exposed
    accounts. streams: of each group.
    """

    comm_ns: int
    overlapped_ns: int
    exposed_ns: dict[str, int]
    streams: list[StreamUse]


def device_use(results: Timed, rank: int) -> DeviceUse:
    """Of the `rank`-th rank of a profiler's run, in the run that is shown."""
    column, accounts = results.trace.column("stream"), results.accounts[rank]
    copies = column.labels.index(COPY)
    used = track_streams(results.trace, rank, accounts, column, [copies])
    exposed = SpentByLabel(results.trace, rank, accounts, column).exposed
    groups = [label for label in used.used if label != copies]
    streams = [StreamUse(column.labels[label], *used.used[label], exposed.get(label, 0)) for label in groups]
    by_name = {column.labels[label]: exposed.get(label, 0) for label in (*groups, copies)}
    return DeviceUse(used.comm_ns, used.overlapped_ns, by_name, streams)


def _policy(run: MeasuredRun) -> str:
    if run.of_devices:
        return "profiler"
    return "megatron" if run.unit == "rank" else "megatron-plan"


class MeasuredFigures(Figures["Timed"]):
    """Of a measured run. A ms of the files has two decimals: no more are measured.

    Each rank is a track of its own, each operation a layer; a trace describes no network.
    """

    resolution_ns = 10_000
    path_groupings = ("kind", "op", "stage", "rank")
    headings: ClassVar[dict[str, str]] = {"expert dp": "exp. dp", "optimizer": "opt.", "embedding": "emb."}

    @property
    def kind(self) -> str:
        return "replayed" if self.run.is_replayed or self.run.measured.replayed else "measured"

    @property
    def path_source(self) -> MeasuredPath:
        return self.run.path_source

    @property
    def title(self) -> str:
        return title(self.run)

    @property
    def facts(self) -> list[tuple[str, str]]:
        return facts(self.run)

    def headline(self, wide: bool) -> list[str]:
        return headline(self.run, wide)

    @property
    def words(self) -> list[str]:
        """The largest account first."""
        # Imported here: a comparison has no words.
        from simcore.words.measured_sentences import insight_lines

        return insight_lines(self.run)

    @property
    def said(self) -> list[Said]:
        return [Said("measured", line) for line in self.words]

    @cached_property
    def worst(self) -> list[Place]:
        """The last rank, the longest wait, bubble, operation, communication."""
        from simcore.replay.worst import worst_places

        return worst_places(self.run)

    @property
    def has_slack(self) -> bool:
        return self.run.timed

    @property
    def gradients(self) -> Sequence[Gradient] | None:
        return self.run.gradients if self.run.timed else None

    @property
    def what_if_base_ns(self) -> int:
        """That of a replay with nothing changed."""
        return self.run.base.step_time_ns

    @property
    def track_uses(self) -> list[TrackUse]:
        return [self._track_use(track) for track in sorted(self.run.tracks)] if self.run.timed else []

    @cached_property
    def of(self) -> Origin:
        run, shown, degrees = self.run.measured, self.run.run, self.run.measured.degrees
        spans = run.ops + run.subs
        return Origin(
            run.format, _policy(run),
            run.ops, None, run.microbatches,
            {"tp": degrees.tp, "ep": degrees.exp, "dp": degrees.dp, "pp": degrees.pp, "world": degrees.world},
            "measured", "replayed" if shown.replayed else "measured",
            self.run.parameters.as_dict("trace") | {"run": run.stamp, "replay": shown.replayed},
            [], spans, spans if shown.replayed else 0,
        )  # fmt: skip

    def _track_use(self, track: Track) -> TrackUse:
        rank, accounts = self.run.run.ranks[track.number], self.run.accounts[track.number]
        compute, exposed = compute_ns(accounts), exposed_ns(accounts)
        overlapped: int | None
        if self._device_uses:
            use = self._device_uses[track.number]
            exposed, overlapped, comm_ns = use.exposed_ns, use.overlapped_ns, use.comm_ns
        else:
            overlapped = overlapped_ns(rank, accounts)
            comm_ns = sum(exposed.values()) + (overlapped or 0)
        return TrackUse(
            track, compute, exposed, accounts.ns("wait"), accounts.ns("bubble"), accounts.ns("host"),
            accounts.ns("idle"),
            overlapped, comm_ns, peak_microbatches(rank),
            self._streams(track.number),
        )  # fmt: skip

    def _streams(self, rank: int) -> list[StreamUse]:
        """Of the `rank`-th rank, compute first; of a device by the names of its groups."""
        accounts = self.run.accounts[rank]
        if not self._device_uses:
            return stream_times(self.run.run.ranks[rank], accounts)
        return [StreamUse("compute", accounts.busy_ns, 0, 0), *self._device_uses[rank].streams]

    @cached_property
    def _device_uses(self) -> list[DeviceUse]:
        """Of each rank; none of a run that no profiler recorded."""
        if not self.run.measured.of_devices:
            return []
        return [device_use(self.run, rank) for rank in self.run.all_ranks]

    @cached_property
    def mean_streams(self) -> list[tuple[StreamUse, int]]:
        if not self.run.timed:
            return []
        return mean_use((self._streams(rank), 1) for rank in self.run.all_ranks)

    @cached_property
    def waits_for(self) -> Sequence[WaitFor]:
        if not self.run.timed:
            return []
        return [
            WaitFor(
                RankSet.of([wait.early]), RankSet.of([wait.late]), wait.name, wait.ns, said_op(wait.name, 34)
            )
            for wait in self.run.waiting
        ]

    def named_work(self, track: Track) -> NamedWork:
        rank = track.number
        calls = measured_calls(self.run.run.ranks[rank])
        return named_work(self.run.trace, rank, self.run.accounts[rank], calls)

    def passes(self, track: Track) -> list[TimedPass]:
        """Those that say their micro-batch, by their start."""
        rank = self.run.run.ranks[track.number]
        ops = rank.ops
        done: dict[tuple[str, int], int] = {}
        passes = []
        for op in rank.passes:
            direction, batch = PASSES[ops.name[op]], ops.batch[op]
            if batch < 0:
                continue
            part = done.get((direction, batch), 0)
            done[direction, batch] = part + 1
            passes.append(TimedPass(direction, batch, part, ops.start[op], ops.end[op]))
        return passes

    def layers(self, grouped: bool) -> list[LayerUse]:
        if grouped or not self.run.timed:
            return []
        return [
            LayerUse(index, op if sub is None else sub, 1, None, None, None, op, use)
            for index, ((op, sub), use) in enumerate(op_uses(self.run))
        ]
