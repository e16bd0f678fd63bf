"""Words of the critical path of a measured or replayed run: its parts and merged segments, and why each
segment began.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import add, getitem
from typing import Protocol

from simcore.records import NamedTuple, replace
from simcore.replay.idle import QUEUED, HostGap, gap_in, host_words, was_queued
from simcore.replay.segment_names import IDLE_NAME, SegmentedRun, segment_name
from simcore.sources.measured import ACCOUNTS, IDLE
from simcore.sources.rendezvous import Rendezvous
from simcore.sources.segments import GAP
from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource, stage_words, sum_lengths
from simcore.trace.figures import PathSegment
from simcore.trace.reasons import Facts, make_graph_facts
from simcore.trace.spans import NONE, Trace
from simcore.trace.trace_graph import Neighbours, TraceGraph

# Of each account, as the path calls it.
_KINDS = tuple(account.removeprefix("exposed ") for account in ACCOUNTS)


class _GapSource(SegmentedRun, Protocol):
    """A run with times. gaps: of each rank, where its trace says what its host did in them."""

    @property
    def trace(self) -> Trace: ...

    @property
    def gaps(self) -> Sequence[Sequence[HostGap]]: ...


class _Part(NamedTuple):
    """What segments of a path have in common."""

    track: int
    account: int
    label: int
    """In the column of operations, NONE where none runs."""


class MeasuredPath(PathSource):
    """The critical path of a measured run, in words."""

    def __init__(self, results: _GapSource) -> None:
        self._results, self._rendezvous = results, results.rendezvous
        self._ranks = results.measured.ranks
        # By rank the account of each segment.
        self._accounts = [spans.category for spans in results.trace.spans]
        self._summed: tuple[CriticalPath, dict[_Part, int]] | None = None

    def stage(self, track: int) -> int | None:
        return self._ranks[track].stage

    def account(self, track: int, span: int) -> int:
        """Returns which of ACCOUNTS its time goes to."""
        return self._accounts[track][span]

    def kind(self, track: int, span: int) -> str:
        """Returns what the time goes to: `compute forward`, `pp`, `idle`. On the path communication has its
        own name, without the `exposed` of its account.
        """
        return _KINDS[self.account(track, span)]

    def name(self, track: int, span: int) -> str:
        """Returns the operation or sub-operation, raw text of the file; `idle` where there is none."""
        return segment_name(self._results, track, span)

    def parts(self, path: CriticalPath, by: str) -> Iterable[str]:
        if by == "kind":
            return map(_KINDS.__getitem__, _of_segments(self._accounts, path))
        if by == "op":
            names, of_label = self._names
            labels = self._results.trace.column("operation").of
            return map([names[name] for name in of_label].__getitem__, _of_segments(labels, path))
        return super().parts(path, by)

    def sum_parts(self, path: CriticalPath, by: str) -> dict[str, int]:
        names, of_label = self._names
        words: dict[str, Callable[[_Part], str]] = {
            "kind": lambda part: _KINDS[part.account],
            "op": lambda part: names[of_label[part.label]],
            "stage": lambda part: stage_words(self.stage(part.track)),
            "rank": lambda part: f"rank {self._ranks[part.track].rank}",
        }
        sums = self._sums(path)
        return sum_lengths(map(words[by], sums), sums.values())

    def sum_labels(self, path: CriticalPath) -> list[dict[int, int]]:
        """Returns by track the ns of each label of the column of operations."""
        by_track: list[dict[int, int]] = [{} for _ in self._ranks]
        for part, ns in self._sums(path).items():
            if part.label != NONE:
                of_track = by_track[part.track]
                of_track[part.label] = of_track.get(part.label, 0) + ns
        return by_track

    def _sums(self, path: CriticalPath) -> dict[_Part, int]:
        """Returns the ns of each part of a path, summed once: a report groups them four times."""
        if self._summed is None or self._summed[0] is not path:
            labels, accounts = len(self._names[1]), len(ACCOUNTS)
            codes = _of_segments(self._codes, path)
            if len(self._accounts) > 1:
                codes = map(add, codes, map((labels * accounts).__mul__, path.track))
            parts: dict[_Part, int] = {}
            for code, ns in sum_lengths(codes, path.lengths).items():
                # NONE is the code before the first label.
                account, label = divmod(code + 1, labels)
                parts[_Part(account // accounts, account % accounts, label - 1)] = ns
            self._summed = path, parts
        return self._summed[1]

    def kind_keys(self, path: CriticalPath) -> Iterable[object]:
        names, of_label = self._names
        # By code: NONE is the code before the first label.
        keys = [
            len(names) * account + of_label[label - 1]
            for account in range(len(ACCOUNTS))
            for label in range(len(of_label))
        ]
        return map([*keys[1:], keys[0]].__getitem__, _of_segments(self._codes, path))

    @cached_property
    def _codes(self) -> list[array[int]]:
        """By track and segment its account and label in one number."""
        labels = len(self._names[1])
        first = [labels * account for account in range(len(ACCOUNTS))]
        columns = zip(self._accounts, self._results.trace.column("operation").of, strict=True)
        return [array("i", map(add, map(first.__getitem__, accounts), of)) for accounts, of in columns]

    @cached_property
    def _names(self) -> tuple[list[str], list[int]]:
        """(All names of operations and sub-operations, by label the index of its name)."""
        names: dict[str, int] = {}
        labels = self._results.trace.column("operation").labels
        # NONE is the last index.
        of_label = [op if sub is None else sub for op, sub in labels] + [IDLE_NAME]
        name_ids = [names.setdefault(name, len(names)) for name in of_label]
        return [*names], name_ids

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        """Returns the operation's name, raw text of the file; IDLE_NAME where there is none."""
        if is_gap(self._rendezvous, track, span):
            # A gap belongs to no operation; what lies inside an operation is a part of it.
            return MergeFacts(IDLE_NAME, -1)
        op, ops = self._rendezvous.segments[track].op[span], self._ranks[track].ops
        return MergeFacts(ops.name[op], ops.batch[op], op)

    # -- why ---------------------------------------------------------------------------

    def wait_facts(self, path: CriticalPath, index: int) -> Facts:
        track, span = path.track[index], path.span[index]
        facts = segment_facts(path.of, self._rendezvous, path.neighbours(index))
        if self.account(track, span) != IDLE:
            return facts
        gap = gap_in(self._results.gaps[track], path.edge[index], path.edge[index + 1])
        if gap is None:
            return replace(facts, idles=True, is_queued=self._is_queued(track, span))
        return replace(facts, idles=True, call=host_words(gap), is_queued=gap.cause == QUEUED)

    def _is_queued(self, track: int, span: int) -> bool | None:
        """Returns whether the kernel behind a measured gap was queued for most of it; None where the trace
        does not say.
        """
        segments = self._rendezvous.segments[track]
        after, last = span + 1, span - 1
        if after >= len(segments.op) or segments.kind[after] == GAP:
            return None
        while last >= 0 and segments.kind[last] == GAP:
            last -= 1
        return was_queued(self._ranks[track], segments.op[last], segments.op[after]) if last >= 0 else None

    # -- segment by segment ------------------------------------------------------------

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        track, span = path.track[index], path.span[index]
        ops, op = self._ranks[track].ops, self._rendezvous.segments[track].op[span]
        idles, batch, account = (
            is_gap(self._rendezvous, track, span),
            ops.batch[op],
            self.account(track, span),
        )
        kind = self.kind(track, span)
        return PathSegment(
            path.edge[index], path.edge[index + 1], path.rank[index],
            kind if ACCOUNTS[account] != kind else "compute", kind,
            None if idles else self.name(track, span), None if idles else ops.state[op],
            None if idles or batch < 0 else batch, self.reason(path, index),
        )  # fmt: skip


def _of_segments(columns: Sequence[Sequence[int]], path: CriticalPath) -> Iterator[int]:
    """Returns of each segment of a path the entry of its span. columns: by track and span."""
    if len(columns) == 1:
        return map(columns[0].__getitem__, path.span)
    return map(getitem, map(columns.__getitem__, path.track), path.span)


def segment_facts(of: TraceGraph, rendezvous: Rendezvous, pair: Neighbours) -> Facts:
    """Returns what is known of what a segment waited for."""
    facts = make_graph_facts(of, pair)
    was_idle = pair.cause is not None and is_gap(rendezvous, *of.span_of_cause(pair.cause))
    return replace(facts, was_idle=True) if was_idle else facts


def is_gap(rendezvous: Rendezvous, track: int, segment: int) -> bool:
    """Returns whether a segment of a rank belongs to no operation."""
    return rendezvous.segments[track].kind[segment] == GAP
