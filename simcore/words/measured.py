"""The figures of a measured run in the form that all runs have: see `simcore/trace/figures.py`.

The times of a rank are named as those of simulated runs; the streams of a profiler trace are unions of its
operations' times.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from simcore.kernel_names import short_name
from simcore.measured.columns import MEASURED, PASSES, RankTrace
from simcore.measured.vocabulary import COPY, LAUNCH, category_of_group, describe_op
from simcore.ranks import RankSet
from simcore.replay.operations import operation_lines
from simcore.replay.replayed_run import ReplayedRun
from simcore.sources.measured import measured_calls
from simcore.trace.accounts import Accounts, merge_spans
from simcore.trace.figures import Insight, Origin, StreamUse, WaitFor
from simcore.trace.findings import Finding
from simcore.trace.layers import LayerUse
from simcore.trace.named_work import NamedWork, named_work
from simcore.trace.run import Figures
from simcore.trace.streams import TrackStreams, compute_stream, track_streams
from simcore.trace.track import TimedPass, Track
from simcore.trace.waits import Stretch
from simcore.trace.worst import NAME, Contexts, LateRank, Operation, find_worst_findings
from simcore.words.measured_run import facts, headline, title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simcore.measured.run import MeasuredRun
    from simcore.replay.path_words import MeasuredPath
    from simcore.trace.gradients import Gradient


def find_streams(rank: RankTrace, accounts: Accounts) -> TrackStreams:
    """Returns the streams of a rank, compute first. rank: with the times that the accounts are of.

    Where compute waits for communication, it is busy from the arrival of the last member on.
    """
    streams, computed, spans = (
        [compute_stream(accounts)],
        accounts.computed_until(),
        _communication_spans(rank),
    )

    def overlapped_in(spans: Iterable[tuple[int, int]]) -> int:
        return sum(computed(end) - computed(start) for start, end in merge_spans(spans))

    # A launch does not say when the launched work runs.
    is_known = LAUNCH not in rank.ops.name
    for category, ns in accounts.exposed_ns().items():
        overlapped_ns = overlapped_in(spans.get(category, ()))
        if ns or overlapped_ns:
            name = MeasuredFigures.json_keys.get(category, category)
            streams.append(StreamUse(name, ns + overlapped_ns, overlapped_ns if is_known else None, ns))
    overlapped = overlapped_in(span for of_kind in spans.values() for span in of_kind) if is_known else None
    return TrackStreams(streams, accounts.all_exposed_ns + (overlapped or 0), overlapped)


def _communication_spans(rank: RankTrace) -> dict[str, list[tuple[int, int]]]:
    """Returns (start, end) of the sub-operations by category: only those can run while compute does."""
    spans_of: dict[str, list[tuple[int, int]]] = {}
    subs = rank.subs
    for group, time_source, start, end in zip(subs.group, subs.timing, subs.start, subs.end, strict=True):
        if time_source == MEASURED and end > start:
            spans_of.setdefault(category_of_group(group), []).append((start, end))
    return spans_of


def _policy_name(run: MeasuredRun) -> str:
    if run.of_devices:
        return "profiler"
    return "megatron" if run.unit == "rank" else "megatron-plan"


class MeasuredFigures(Figures[ReplayedRun]):
    """The figures of a measured run. A ms of the files has two decimals: nothing finer is measured.

    Each rank is a track of its own, each operation a layer; a trace describes no network.
    """

    resolution_ns = 10_000
    lines = "operations"
    path_groupings = ("kind", "op", "stage", "rank")
    headings: ClassVar[Mapping[str, str]] = {
        "expert dp": "exp. dp", "optimizer": "opt.", "embedding": "emb."
    }  # fmt: skip
    # The trace's names of accounts that simulated runs have, too. A trace does not tell input gradients,
    # weight gradients and recomputation apart: `bwd` is all of a backward step. `other`: of groups without a
    # name.
    json_keys: ClassVar[Mapping[str, str]] = {
        "forward": "fwd", "backward": "bwd", "optimizer": "opt", "expert": "ep", "expert dp": "dp_ep",
        "comm": "other",
    }  # fmt: skip

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
    def insights(self) -> list[Insight]:
        # Imported here: a comparison states no sentences.
        from simcore.words.measured_sentences import find_sentences

        return [Insight(sentence.rule, sentence.text) for sentence in find_sentences(self.run)]

    @cached_property
    def worst_findings(self) -> list[Finding]:
        from simcore.replay.stragglers import find_stragglers

        late = next(iter(find_stragglers(self.run)), None)
        return find_worst_findings(
            self.run,
            Contexts(
                late_rank=None if late is None else LateRank(late.rank, late.last, late.of, late.most_ns),
                find_last_start=self._find_last_start,
                describe_code=self._segment_name,
                operation=self._make_operation,
                cut_wait=self._find_longest_cut_wait(),
            ),
        )

    def _find_longest_cut_wait(self) -> Stretch | None:
        if not self.run.has_cut_waits:
            return None
        waits = (
            Stretch(rank, wait.start, wait.end, wait.segment)
            for rank in self.run.all_ranks
            for wait in self.run.waits_of(rank)
        )
        return max(waits, key=lambda wait: wait.ns, default=None)

    def _segment_name(self, rank: int, segment: int) -> str:
        return describe_op(self.path_source.name(rank, segment), NAME)

    def _find_last_start(self, rank: int) -> int:
        ops = self.run.run.ranks[rank].ops
        return max(zip(ops.end, ops.start, strict=True))[1]

    def _make_operation(self, rank: int, op: int) -> Operation:
        ops = self.run.run.ranks[rank].ops
        return Operation(short_name(ops.name[op], NAME), ops.start[op], ops.end[op])

    @property
    def gradients(self) -> Sequence[Gradient] | None:
        return self.run.gradients if self.run.timed else None

    @property
    def what_if_base_ns(self) -> int:
        """The step time of a replay without changes, ns."""
        return self.run.base.step_time_ns

    @cached_property
    def origin(self) -> Origin:
        run, shown_run, degrees = self.run.measured, self.run.run, self.run.measured.degrees
        spans = run.ops + run.subs
        return Origin(
            run.format, _policy_name(run),
            run.ops, None, run.microbatches,
            {"tp": degrees.tp, "ep": degrees.exp, "dp": degrees.dp, "pp": degrees.pp, "world": degrees.world},
            "measured", "replayed" if shown_run.replayed else "measured",
            self.run.parameters.as_dict("trace") | {"run": run.stamp, "replay": shown_run.replayed},
            [], spans, spans if shown_run.replayed else 0,
        )  # fmt: skip

    @property
    def ends(self) -> list[int]:
        """The end of each rank, ns, with what a profiler recorded after the last operation."""
        return [rank.last_ns for rank in self.run.run.ranks] if self.run.timed else []

    @cached_property
    def streams(self) -> list[TrackStreams]:
        """The streams of each rank, compute first; on a device they are named after its groups, the only ones
        that send.
        """
        if not self.run.timed:
            return []
        if not self._device_streams:
            return list(map(find_streams, self.run.run.ranks, self.run.accounts))
        return [
            device_streams._replace(streams=[
                compute_stream(accounts), *(use for use in device_streams.streams if use.stream != COPY)
            ])
            for device_streams, accounts in zip(self._device_streams, self.run.accounts, strict=True)
        ]  # fmt: skip

    @cached_property
    def _device_streams(self) -> list[TrackStreams]:
        """The streams on which each device sends and copies; empty for a run that no profiler recorded."""
        if not self.run.measured.of_devices:
            return []
        trace = self.run.trace
        return [
            track_streams(trace, rank, accounts, (COPY,)) for rank, accounts in enumerate(self.run.accounts)
        ]

    def exposed_ns(self, track_id: int) -> dict[str, int]:
        """Returns ns by kind; on a device by the name of the group as the trace has it, and `copy`."""
        if not self._device_streams:
            return super().exposed_ns(track_id)
        ns_of = {use.stream: use.exposed_ns for use in self._device_streams[track_id].streams}
        copied_ns = ns_of.pop(COPY, 0)
        return ns_of | {COPY: copied_ns}

    def peaks(self, track_id: int) -> tuple[int | None, None]:
        """Returns the most micro-batches between forward and backward; None where the trace names none."""
        in_flight: dict[int, int] = {}
        most = 0
        for one in self._find_passes(track_id):
            in_flight[one.microbatch] = in_flight.get(one.microbatch, 0) + (
                1 if one.direction == "forward" else -1
            )
            most = max(most, sum(count > 0 for count in in_flight.values()))
        return most or None, None

    @cached_property
    def waits_for(self) -> Sequence[WaitFor]:
        if not self.run.timed:
            return []
        return [
            WaitFor(
                RankSet.of([wait.early]),
                RankSet.of([wait.late]),
                wait.name,
                wait.ns,
                describe_op(wait.name, 34),
            )
            for wait in self.run.waiting
        ]

    def named_work(self, track: Track) -> NamedWork:
        rank = track.track_id
        calls = measured_calls(self.run.run.ranks[rank])
        return named_work(self.run.trace, rank, self.run.accounts[rank], calls)

    def passes(self, track: Track) -> list[TimedPass]:
        """Returns the passes that state their micro-batch, by their start."""
        return [*self._find_passes(track.track_id)]

    def _find_passes(self, track_id: int) -> Iterator[TimedPass]:
        rank = self.run.run.ranks[track_id]
        ops = rank.ops
        part_counts: dict[tuple[str, int], int] = {}
        for op in rank.passes:
            direction, batch = PASSES[ops.name[op]], ops.batch[op]
            if batch >= 0:
                part = part_counts.get((direction, batch), 0)
                part_counts[direction, batch] = part + 1
                yield TimedPass(direction, batch, part, ops.start[op], ops.end[op])

    def layers(self, grouped: bool) -> list[LayerUse]:
        if not self.run.timed:
            return []
        lines = [*operation_lines(self.run)]
        return sorted(lines, key=lambda line: -line.cost_ns) if grouped else lines
