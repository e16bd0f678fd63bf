"""What is found in a run: merged segments of its critical path, findings worth a look, what a span waited
for, and the answers to what-if questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from simcore.parameters import Parameters
from simcore.records import NamedTuple, Struct, replace
from simcore.units import is_whole

if TYPE_CHECKING:
    from simcore.cluster import Dimension


class TrackInterval(NamedTuple):
    """An interval on a lane of the timeline."""

    track_id: int
    """The track."""
    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    stream: str | None = None
    """The stream whose lane shows it; None where the lane of the track does."""


class Step(NamedTuple):
    """A span to move the cursor to."""

    track_id: int
    """Its track."""
    stream: str | None
    """The stream of the lane that shows it."""
    start_ns: int
    """When it begins, ns."""
    rank: int
    """Its rank."""
    words: str
    """What it is, and why it is a cause or an effect."""


class Dependency(Struct, frozen=True):
    """A span that another one waited for, or that waits for another."""

    track_id: int
    """Its track."""
    span: int
    """The span of the track, NONE where time passes by itself."""
    rank: int
    """The rank of the track."""
    reason: str
    """The reason in words."""
    start_ns: int
    """When the part that was waited for begins, ns."""
    end_ns: int
    """When that part ends, ns."""


class MergedSegment(Struct, frozen=True):
    """Segments first..last-1 of the critical path: one rank doing one thing of one micro-batch."""

    first: int
    """The first segment."""
    last: int
    """The segment behind the last one."""
    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    track_id: int
    """The track of the rank."""
    rank: int
    """The rank."""
    stage: int | None
    """The stage, None where it is not known."""
    what: str
    """A pass, a kind of group, an operation as the file has it (raw text), or time that passes between them.
    """
    microbatch: int
    """The micro-batch, -1 outside of them."""
    reason: str
    """Why it could not begin earlier."""

    @property
    def ns(self) -> int:
        """How long it takes, ns."""
        return self.end_ns - self.start_ns


class Finding(Struct, frozen=True):
    """An interval of a run worth a look."""

    what: str
    """The rule that found it: `end`, `bubble` ..."""
    words: str
    """What there is to see: the figure before the names, which may be truncated."""
    track_id: int
    """The track."""
    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    ns: int
    """The figure that makes it the worst of its kind, ns."""
    stream: str | None = None
    """As in `TrackInterval`."""

    @property
    def interval(self) -> TrackInterval:
        """Where it is seen on the timeline."""
        return TrackInterval(self.track_id, self.start_ns, self.end_ns, self.stream)


# A smaller share of a step rounds to 0.0 %.
LEAST_SHARE = 0.0005


# The begin of the clause of a meaning that says why a change needs as much memory as now.
NO_MORE_MEMORY = "memory as now: "
# The clause of a meaning for a schedule whose only use is the overlap that it allows.
FOR_OVERLAP = " since SimAI's layer-loop cannot overlap (your job may already)"


class WhatIf(Struct, frozen=True):
    """The step time with one thing changed, to be compared with `what_if_base_ns` of the run.

    Times that are not known (`unknown`) are those of the step as it is.
    """

    name: str
    """What is changed; raw text of the file may be in it."""
    free_ns: int | None
    """The step when it takes no time, ns; None for a change that is made or not (another schedule, `balanced
    stages`, `rank 7 as fast as its peers`).
    """
    better10_ns: int
    """The step when it takes a tenth less, ns; for a change that is made or not, the step with it."""
    worse10_ns: int | None = None
    """The step when it takes a tenth more, ns; only for single ranks."""
    anomaly: bool = False
    """Whether the step gets longer although something takes less time."""
    moves: str = ""
    """From where to where a change moves work, so that the step may get longer, in words; "" for others."""
    unknown: str = ""
    """Why these times are not known, "" where they are."""
    parameters: Parameters | None = None
    """The parameters of the run with the change, as of `better10_ns`; `t` opens that run."""
    flags: str = ""
    """The words of the command line for a change that a user can make, "" for a sensitivity."""
    microbatches: int | None = None
    """How many micro-batches the step then has, where the change is in their number."""
    same_work_ns: int | None = None
    """The part of that step that as many micro-batches as the run's take, ns."""
    meaning: str = ""
    """What a change does whose name does not say it, in clauses with `; ` between them."""
    memory_bytes: int | None = None
    """What a rank of the fullest stage needs at least with the change; None where that is not known."""
    fixes: bool = False
    """Whether the file asks for it but does not have it: other work than the run's, and no gain."""

    @property
    def list(self) -> str:
        """The list it belongs to: `change`, which a user can make, or `sensitivity`."""
        return "change" if self.flags else "sensitivity"

    @property
    def knob(self) -> str:
        """The name in tables: a change that moves work says from where to where."""
        return f"{self.name} ({self.moves})" if self.moves else self.name

    @property
    def gain_ns(self) -> int:
        """The time to compare with the step: the step with the change, of more work the part for as much."""
        return self.better10_ns if self.same_work_ns is None else self.same_work_ns

    @property
    def best_ns(self) -> int:
        """The shortest step that this can bring, ns."""
        return self.better10_ns if self.free_ns is None else min(self.free_ns, self.better10_ns)

    def is_notable(self, base_ns: int) -> bool:
        """Returns whether its row says more than 0.0 % of the step `base_ns`, or something besides a time."""
        is_stated = bool(self.flags or self.unknown or self.anomaly)
        return is_stated or abs(self.better10_ns - base_ns) >= LEAST_SHARE * base_ns


def drop_overlap_variants(rows: Sequence[WhatIf]) -> list[WhatIf]:
    """Returns the rows without changes that differ from an earlier one only in what they overlap."""
    distinct, main_parameters = [], set()
    for row in rows:
        if row.list == "change" and row.parameters is not None:
            main = replace(
                row.parameters, overlap_fwd_bwd=False, overlap_grad_reduce=False, overlap_param_gather=False
            )
            if main in main_parameters:
                continue
            main_parameters.add(main)
        distinct.append(row)
    return distinct


def format_dimension_change(name: str, dims: Sequence[Dimension]) -> tuple[str, str] | None:
    """Returns (`dim 1 (dp, pp) bandwidth`, `50 -> 55.6 GB/s`) for the knob `dimension 1 bandwidth` with 10 %
    less time; None for all other names.
    """
    kind, _, property_text = name.partition(" ")
    index, _, property_name = property_text.partition(" ")
    if kind != "dimension" or not is_whole(index) or int(index) >= len(dims):
        return None
    dimension = dims[int(index)]
    words = f"{dimension.name(int(index))} {property_name}"
    # 10 % less time: a bandwidth of 1 / 0.9.
    if property_name == "bandwidth":
        figure, _, unit = dimension.bandwidth_text().partition(" (")[0].partition(" ")
        return words, f"{_format_figure(float(figure))} -> {_format_figure(float(figure) / 0.9)} {unit}"
    return words, f"{_format_figure(dimension.latency_ns)} -> {_format_figure(dimension.latency_ns * 0.9)} ns"


def _format_figure(value: float) -> str:
    """Returns a value in three figures, in whole units from 1000 on."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


# (rank, what it does, micro-batch or -1, separator of merged segments that are called the same)
MergeKey = tuple[int, str, int, int]


class Stretch(NamedTuple):
    """Successive segments of the path with one key."""

    first: int
    """The first segment."""
    last: int
    """The segment behind the last one."""
    key: MergeKey
    """Their key."""
    is_placeholder: bool
    """Whether they are compute of which nothing is known."""


def merge_stretches(segments: Iterable[tuple[MergeKey, bool]]) -> list[Stretch]:
    """Returns the merged segments of a path of any run, in its order: neighbours with one key are merged.

    segments: (key, whether it is a placeholder) of each segment. Compute of which nothing is known (1 ns, 1
    us) is what files write where nothing is modelled: it is merged into what its rank does next.
    """
    runs: list[Stretch] = []
    for index, (key, placeholder) in enumerate(segments):
        before = runs[-1] if runs else None
        if before is not None and (before.key, before.is_placeholder) == (key, placeholder):
            runs[-1] = before._replace(last=index + 1)
        else:
            runs.append(Stretch(index, index + 1, key, placeholder))
    return _merge_placeholders(runs)


def _merge_placeholders(parts: list[Stretch]) -> list[Stretch]:
    """Returns placeholders merged into what their rank does next, the last ones into what it did before."""
    merged: list[Stretch] = []
    for stretch in parts:
        before = merged[-1] if merged else None
        if before is not None and before.key[0] == stretch.key[0]:
            if before.is_placeholder:
                # What came before the placeholder may go on behind it: then all three are one.
                merged.pop()
                stretch = Stretch(before.first, stretch.last, stretch.key, stretch.is_placeholder)
                before = merged[-1] if merged else None
            if before is not None and not stretch.is_placeholder and before.key == stretch.key:
                stretch = merged.pop()._replace(last=stretch.last)
        merged.append(stretch)
    if len(merged) > 1 and merged[-1].is_placeholder and merged[-2].key[0] == merged[-1].key[0]:
        last = merged.pop()
        merged[-1] = merged[-1]._replace(last=last.last)
    return merged
