"""What is found in a run, whatever it came from: its critical path told in legs and summed in parts, the
places worth a look, what a span waited for, and the answers to what-if questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from simcore.parameters import Parameters
from simcore.records import NamedTuple, Struct, replace

if TYPE_CHECKING:
    from simcore.cluster import Dimension


class TrackInterval(NamedTuple):
    """A place in the timeline: the track `number` from start_ns to end_ns. stream: the stream whose lane
    shows it; None where the lane of the track does.
    """

    track_id: int
    start_ns: int
    end_ns: int
    stream: str | None = None


class Step(NamedTuple):
    """A span to go to. number: its track; stream: of the lane that shows it. words: what it is, and why it
    is a cause or an effect.
    """

    track_id: int
    stream: str | None
    start_ns: int
    rank: int
    words: str


class Dependency(Struct, frozen=True):
    """A span that another one waited for, or that waits for another, with the reason in words.

    number: its track; span: of that, NONE where time passes by itself. rank: which of its ranks. start_ns,
    end_ns: of the part that was waited for.
    """

    track_id: int
    span: int
    rank: int
    reason: str
    start_ns: int
    end_ns: int


class MergedSegment(Struct, frozen=True):
    """Segments first..last-1 of the critical path: one rank doing one thing of one micro-batch.

    number: the track of the rank. stage: None where it is not known. what: a pass, a kind of group, an
    operation as the file has it (raw text), or what passes between. microbatch: -1 outside of them. reason:
    why the leg could not begin earlier.
    """

    first: int
    last: int
    start_ns: int
    end_ns: int
    track_id: int
    rank: int
    stage: int | None
    what: str
    microbatch: int
    reason: str

    @property
    def ns(self) -> int:
        """How long it takes."""
        return self.end_ns - self.start_ns


class Finding(Struct, frozen=True):
    """A place of a run worth a look. what: `end`, `bubble` ... words: what there is to see, the figure
    before the names, which may be cut.

    number: the track; start_ns..end_ns: when; ns: the figure that makes it the worst. stream: as in `Spot`.
    """

    what: str
    words: str
    track_id: int
    start_ns: int
    end_ns: int
    ns: int
    stream: str | None = None

    @property
    def interval(self) -> TrackInterval:
        """Where it is seen."""
        return TrackInterval(self.track_id, self.start_ns, self.end_ns, self.stream)


# Less of a step is 0.0 %.
LEAST_SHARE = 0.0005


# What the clause of a meaning begins with that says why a change needs as much memory as now.
NO_MORE_MEMORY = "memory as now: "
# What stands behind a schedule, in a clause of a meaning, whose only use is the overlap that it allows.
FOR_OVERLAP = " since SimAI's layer-loop cannot overlap (your job may already)"


class WhatIf(Struct, frozen=True):
    """The step time, ns, with one thing changed; to be held against `what_if_base_ns` of the run.

    name: what is changed, raw text of the file may be in it. free_ns: it takes no time; None for a change
    that is made or not (another schedule, `balanced stages`, `rank 7 as fast as its peers`). better10_ns:
    it takes a tenth less; of a change that is made or not the step with it. worse10_ns: it takes a tenth
    more, of single ranks; else None. anomaly: what is cheaper makes the step longer. moves: of what gives
    work to some that it takes from others, so that the step may be longer, words for that, else "". unknown:
    why nobody knows these times, which are then those of the step as it is; "" where they are known.

    fixes: whether it is what the file asks for and does not have: other work than the run's, and no gain.
    parameters: those of the run with the change, as of `better10_ns`, which `t` opens. flags: of a change
    that a user can make the command line's words for it, "" of what is asked to see how much it matters.
    microbatches: where the change is of them, how many the step has then, and alike_ns: what as many of
    them as the run has take of it. meaning: what a change does whose name does not say it, clauses with
    `; ` between them. memory_bytes: what a rank of the fullest stage needs at least with the change, None
    where nobody knows.
    """

    name: str
    free_ns: int | None
    better10_ns: int
    worse10_ns: int | None = None
    anomaly: bool = False
    moves: str = ""
    unknown: str = ""
    parameters: Parameters | None = None
    flags: str = ""
    microbatches: int | None = None
    same_work_ns: int | None = None
    meaning: str = ""
    memory_bytes: int | None = None
    fixes: bool = False

    @property
    def list(self) -> str:
        """`change`: one that a user can make; `sensitivity`: how much a thing matters."""
        return "change" if self.flags else "sensitivity"

    @property
    def knob(self) -> str:
        """The name as tables have it: a change that moves work says from where to where."""
        return f"{self.name} ({self.moves})" if self.moves else self.name

    @property
    def gain_ns(self) -> int:
        """What is held against the step: the step with it, of more micro-batches what as much work takes."""
        return self.better10_ns if self.same_work_ns is None else self.same_work_ns

    @property
    def best_ns(self) -> int:
        """The least step time that this can bring."""
        return self.better10_ns if self.free_ns is None else min(self.free_ns, self.better10_ns)

    def is_notable(self, base_ns: int) -> bool:
        """Whether its row says more than 0.0 % of the step `base_ns`, or something else than a time."""
        is_stated = bool(self.flags or self.unknown or self.anomaly)
        return is_stated or abs(self.better10_ns - base_ns) >= LEAST_SHARE * base_ns


def drop_overlap_variants(rows: Sequence[WhatIf]) -> list[WhatIf]:
    """The rows without those changes that differ from one before them in what they overlap alone."""
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
    """(`dim 1 bandwidth`, `50 -> 55.6 GB/s`) of the knob `dimension 1 bandwidth` with 10 % less time; None of
    all else.
    """
    kind, _, property_text = name.partition(" ")
    index, _, property_name = property_text.partition(" ")
    if kind != "dimension" or not index.isdecimal() or int(index) >= len(dims):
        return None
    dimension = dims[int(index)]
    # 10 % less time: a bandwidth of 1 / 0.9.
    if property_name == "bandwidth":
        figure, _, unit = dimension.bandwidth_text().partition(" (")[0].partition(" ")
        return (
            f"dim {index} {property_name}",
            f"{_format_figure(float(figure))} -> {_format_figure(float(figure) / 0.9)} {unit}",
        )
    return (
        f"dim {index} {property_name}",
        f"{_format_figure(dimension.latency_ns)} -> {_format_figure(dimension.latency_ns * 0.9)} ns",
    )


def _format_figure(value: float) -> str:
    """Three figures, and all of a whole number of more."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


# (rank, what it does, micro-batch or -1, what keeps legs apart that are told alike)
MergeKey = tuple[int, str, int, int]


class Stretch(NamedTuple):
    """Segments first..last-1 of the path, of one key. is_placeholder: whether nothing of it is known."""

    first: int
    last: int
    key: MergeKey
    is_placeholder: bool


def merge_stretches(segments: Iterable[tuple[MergeKey, bool]]) -> list[Stretch]:
    """The legs of a path, whatever run it is of, in its order: neighbouring segments of one key are one leg.
    segments: (key, whether it is a placeholder) of each segment.

    Compute of which nothing is known (1 ns, 1 us) is what files write where nothing is modelled: it is no
    leg, but a part of what its rank does next.
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
    """Placeholders as a part of what their rank does next, the last ones of what it did before."""
    merged: list[Stretch] = []
    for stretch in parts:
        before = merged[-1] if merged else None
        if before is not None and before.key[0] == stretch.key[0]:
            if before.is_placeholder:
                # Behind that there may now be more of what came before the placeholder.
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
