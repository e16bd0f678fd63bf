"""The figures that a page states of every run, a row of a table each, whatever the run came from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from simcore.records import NamedTuple, Struct
from simcore.units import change_percent, duration, plural, signed_duration

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.contexts import StepWork
    from simcore.trace.layers import LayerUse
    from simcore.trace.track import Track


class Origin(Struct, frozen=True):
    """What a run is of: what was read, and what was made of it.

    format, policy: of the files. rows: of a workload, or operations; declared_rows: by its header. degrees:
    by name, None where one is not known. network: the model that the times are of, schedule: how they came
    to be. parameters: by field, with the values that the run took. pass_end_ns: of a layer-loop.
    step_end_ns: of each step of a pipeline that runs several.
    """

    format: str
    policy: str
    rows: int
    declared_rows: int | None
    microbatches: int
    degrees: Mapping[str, int | None]
    network: str
    schedule: str
    parameters: Mapping[str, Any]
    pass_end_ns: Sequence[int]
    spans: int
    ops_simulated: int
    step_end_ns: Sequence[int] = ()

    @property
    def steady_step_ns(self) -> int | None:
        """The end of the last step less the end of the one before; None of one step alone."""
        return self.step_end_ns[-1] - self.step_end_ns[-2] if self.step_end_ns else None


class Insight(NamedTuple):
    """A sentence on a run. rule: which one says it. ns: the figure that it is about, None of several."""

    rule: str
    text: str
    ns: int | None = None


class StreamUse(Struct, frozen=True):
    """One stream of a rank, in a step or a stretch of it, ns.

    busy_ns: something runs on it. overlapped_ns: while the rank computes, None where a trace does not say.
    exposed_ns: while compute waits for it.
    """

    stream: str
    busy_ns: int
    overlapped_ns: int | None
    exposed_ns: int

    @property
    def kind(self) -> str:
        """`compute`, the kind of group, or `pp`."""
        return "pp" if self.stream.startswith("pp") else self.stream


class TrackUse(NamedTuple):
    """What a step is for one rank of a track, ns; its accounts sum to the step.

    compute_ns: by phase. exposed_ns: by kind of group. host_ns: None where no host was watched.
    overlapped_ns: communication beside compute. peak_microbatches: held at once, peak_chunks:
    exactly, of a model. None: not known.
    """

    track: Track
    compute_ns: Mapping[str, int]
    exposed_ns: Mapping[str, int]
    wait_ns: int
    bubble_ns: int
    host_ns: int | None
    idle_ns: int
    overlapped_ns: int | None
    comm_ns: int
    peak_microbatches: int | None
    streams: Sequence[StreamUse]
    peak_chunks: int | None = None


class WaitFor(NamedTuple):
    """Each of the ranks `early` waits `ns` in a step for the ranks `late`. where: in which operation, or
    whose collectives; raw text of the file. said: that in words, "" where the name says it.
    """

    early: RankSet
    late: RankSet
    where: str
    ns: int
    summary: str = ""


class PathSegment(NamedTuple):
    """A segment of the critical path. layer: the row or operation, raw text of the file, None without one.
    phase, microbatch: None outside of them. reason: why it could not start earlier. node: of execution traces
    the id.
    """

    start_ns: int
    end_ns: int
    rank: int
    stream: str
    kind: str
    layer: str | None
    phase: str | None
    microbatch: int | None
    reason: str
    node: int | None = None


class RankEnd(NamedTuple):
    """When a rank ends, and its exposed time as ASTRA-sim has it: the end less its GPU compute."""

    rank: int
    end_ns: int
    exposed_ns: int


class GroupUse(NamedTuple):
    """Collectives of a group, summed over its ranks. bytes: as comm_size has them. own_ns: without
    waiting.
    """

    group: str
    ranks: str
    collectives: int
    bytes: int
    own_ns: int
    waits_ns: int


class NodeTables(NamedTuple):
    """What is known of execution traces alone. names, groups: the most first. exposed_words: what the exposed
    time of `ranks` is. in_cycles: ASTRA-sim prints both of a rank, as whole ns.
    """

    ranks: Sequence[RankEnd]
    names: Sequence[LayerUse]
    groups: Sequence[GroupUse]
    exposed_words: str
    in_cycles: bool = False


class SteppedRun(Protocol):
    """A step, or several: see `StepShape`."""

    @property
    def step_time_ns(self) -> int: ...
    @property
    def microbatches(self) -> int: ...
    @property
    def has_equal_microbatches(self) -> bool: ...
    @property
    def steps(self) -> int: ...
    @property
    def work(self) -> StepWork | None: ...
    @property
    def left_out(self) -> str: ...
    @property
    def measured(self) -> bool: ...


def microbatch_ns(run: SteppedRun) -> int | None:
    """What each micro-batch of a replica takes of the step, ns; None where the run has none."""
    count = run.microbatches * run.steps
    return run.step_time_ns // count if count else None


def throughput_words(run: SteppedRun) -> str:
    """`step / 16 micro-batches = 923.4 ms, 1.083 a second`, of each replica; "" where the run has none.

    The step over their number: several are on their way at a time. Of unequal ones their number alone.
    """
    each = microbatch_ns(run)
    if not each:
        return ""
    count = plural(run.microbatches, "micro-batch")
    if not run.has_equal_microbatches:
        return f"{run.microbatches} unequal micro-batches"
    if run.steps == 1 and each != run.step_time_ns:
        return f"step / {count} = {duration(each)}, {_format_rate(each)} a second"
    return f"{count}: {_format_average(run, each)}, {_format_rate(each)} a second"


def each_words(run: SteppedRun, unit: str = "") -> str:
    """`step / 16 = 923.4 ms`: what each micro-batch takes of the step, of several steps the mean of all; ""
    where the run has none, or unequal ones. unit: behind the number, where nothing else says what it counts.
    """
    each = microbatch_ns(run)
    # Of one alone the step time says it.
    if not each or each == run.step_time_ns or not run.has_equal_microbatches:
        return ""
    if run.steps > 1:
        return f"mean {duration(each)} a micro-batch"
    # A mean of 923.4 ms was taken for what one computes.
    return f"step / {run.microbatches}{unit} = {duration(each)}"


_BEHIND = ", step / "


def append_each(fact: str, run: SteppedRun) -> str:
    """A fact on the schedule of a run of one step with `each_words` behind it."""
    each = each_words(run) if run.steps == 1 else ""
    return f"{fact}, {each}" if each else fact


def remove_each(fact: str) -> str:
    """A fact of a headline without what `with_each` has put behind it."""
    return fact.partition(_BEHIND)[0]


class WorkComparison(NamedTuple):
    """Two runs by their work. a_ns: the step of A. alike_ns: what as much work takes of B's, ns. each_ns: a
    micro-batch of either; none where one of these is not as much work as another.
    """

    a_ns: int
    same_work_ns: int
    each_ns: tuple[int, int] | None

    @property
    def change_text(self) -> str:
        """`-27.1 %`: B against A."""
        return change_percent(self.a_ns, self.same_work_ns)

    @property
    def words(self) -> str:
        """`a micro-batch -229.0 ms (-24.8 %)`, of unequal ones what all of A's take."""
        before, after = self.each_ns or (self.a_ns, self.same_work_ns)
        of = "a micro-batch" if self.each_ns else "for the same work"
        return f"{of} {signed_duration(after - before)}" + (
            f" ({self.change_text})" if self.change_text else ""
        )


def compare_by_work(a: SteppedRun, b: SteppedRun) -> WorkComparison | None:
    """Two runs by their work where that decides which is faster, and not the step: where replicas have more
    micro-batches in the one than in the other, and the batch of all replicas is another one too. None of
    runs that have as much work, and of those that cannot be compared (`is_other_work`).
    """
    works = _unequal_works(a, b)
    if works is None or not _is_multiple(*works) or a.left_out != b.left_out:
        return None
    before, after = (sum(work.counts) for work in works)
    same_work_ns = find_same_work_ns(b.step_time_ns, *works)
    each = microbatch_ns(a), microbatch_ns(b)
    is_one_kind = len(works[0].counts) == 1
    is_of_each = a.microbatches * a.steps * after == b.microbatches * b.steps * before
    has_each = is_one_kind and is_of_each and each[0] and each[1]
    each_ns = (each[0] or 0, each[1] or 0) if has_each else None
    return WorkComparison(a.step_time_ns, same_work_ns or 0, each_ns)


def is_other_work(a: SteppedRun, b: SteppedRun) -> bool:
    """Whether the steps of two runs are of micro-batches that are neither the same nor a multiple of them, or
    one of them goes without lines of the file that the other has.
    """
    if a.left_out != b.left_out:
        return True
    works = _unequal_works(a, b)
    return works is not None and not _is_multiple(*works)


def find_same_work_ns(ns: int, work: StepWork, other: StepWork) -> int | None:
    """What as much as `work` takes of a step of `other`, ns; None where the one is no multiple of the other:
    of unequal micro-batches a part takes nobody knows what.
    """
    return ns * sum(work.counts) // sum(other.counts) if _is_multiple(work, other) else None


def _unequal_works(a: SteppedRun, b: SteppedRun) -> tuple[StepWork, StepWork] | None:
    """The work of two runs that have not as much; None also where it is not known."""
    if a.measured != b.measured:
        # What was measured need not be as much work as what was simulated.
        return None
    works = a.work, b.work
    if works[0] is None or works[1] is None or works[0].counts == works[1].counts:
        return None
    # With other replicas the same batch may be shared out in another way.
    batches = [sum(work.counts) * work.replicas for work in (works[0], works[1])]
    return (works[0], works[1]) if batches[0] != batches[1] else None


def _is_multiple(work: StepWork, other: StepWork) -> bool:
    """Whether it is the same micro-batches, more or less often."""
    before, after = sum(work.counts), sum(other.counts)
    if not before or not after or len(work.counts) != len(other.counts):
        return False
    return all(
        count * after == other_count * before
        for count, other_count in zip(work.counts, other.counts, strict=True)
    )


def _format_average(run: SteppedRun, each_ns: int) -> str:
    return duration(each_ns) if each_ns == run.step_time_ns else f"mean {duration(each_ns)}"


def _format_rate(each_ns: int) -> str:
    """How many a second, in four figures."""
    return f"{1e9 / each_ns:.4g}" if each_ns > 1e5 else f"{1e9 / each_ns:.0f}"


Item = TypeVar("Item", covariant=True)


class LazySequence(Sequence[Item], Generic[Item]):
    """`make` makes the item at an index from 0 to length - 1, each time it is asked for; none is kept."""

    def __init__(self, length: int) -> None:
        self._indices = range(length)

    @abstractmethod
    def make(self, index: int) -> Item:
        """The item at `index`."""

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self.make(row) for row in self._indices[index]]
        return self.make(self._indices[index])
