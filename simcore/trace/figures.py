"""The figures that a page states of every run, one record for each row of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, overload

from simcore.records import NamedTuple, Struct
from simcore.trace.findings import LEAST_SHARE
from simcore.units import change_percent, duration, plural, signed_duration

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.contexts import StepWork
    from simcore.trace.layers import LayerUse
    from simcore.trace.track import Track


class Origin(Struct, frozen=True):
    """The source of a run: what was read, and what was made of it."""

    format: str
    """The format of the files."""
    policy: str
    """The policy that the files state."""
    rows: int
    """The rows of a workload, or the operations."""
    declared_rows: int | None
    """The rows that the header declares."""
    microbatches: int
    """The micro-batches."""
    degrees: Mapping[str, int | None]
    """Degrees by name, None where one is not known."""
    network: str
    """The network model of the times."""
    schedule: str
    """How the times came to be: the schedule."""
    parameters: Mapping[str, Any]
    """The parameters by field, with the values that the run took."""
    pass_end_ns: Sequence[int]
    """The end of each pass of a layer-loop, ns."""
    spans: int
    """How many spans there are."""
    ops_simulated: int
    """How many ops were simulated."""
    step_end_ns: Sequence[int] = ()
    """The end of each step of a pipeline that runs several, ns."""

    @property
    def steady_step_ns(self) -> int | None:
        """The end of the last step less the end of the one before, ns; None of a single step."""
        return self.step_end_ns[-1] - self.step_end_ns[-2] if self.step_end_ns else None


class MemberProgress(NamedTuple):
    """How far a rank has come in a group, None where that is not known."""

    rank: int
    enqueued: int | None
    """The number of the last collective that it began."""
    started: int | None
    """That of the last one that ran."""
    completed: int | None
    """That of the last one that ended."""
    role: str
    """`culprit`, `stuck`, `waits`, `held up`, `no dump`, or "" where it has nothing open."""
    track_id: int | None
    """Its track, None without a dump."""


class GroupProgress(NamedTuple):
    """How far the members of a group have come, those behind in front."""

    group: str
    """Its description, raw text of the file."""
    short: str
    """The same in few letters."""
    ranks: str
    """Its ranks, in words."""
    members: Sequence[MemberProgress]
    stream: str
    """The stream of its lanes."""


class CollectiveStates(NamedTuple):
    """A collective of a group, and which ranks have it in which state; or a send or receive of a rank."""

    group: GroupProgress
    sequence: int
    """Its number in the group; of a message among those of its rank there."""
    is_message: bool
    operation: str
    """Raw text of the file."""
    states: Mapping[str, str]
    """State -> its ranks, in words; those that have not come first."""
    late_count: int
    """How many ranks have not come."""
    size: str
    """Its sizes and dtypes, raw text of the file."""
    since: str
    """When its first member came, a time of the day."""
    since_ns: int
    """The same, ns from the begin of the axis."""
    problem: str
    """What does not match, "" where nothing is known."""
    track_id: int
    """The track of its first member."""
    end_ns: int
    """When it ended there, ns from the begin of the axis; the end of the axis where it has not."""
    call_site: str
    """Where it was called in Python, raw text of the file; "" where that is not recorded."""

    @property
    def problem_text(self) -> str:
        """What does not match, in words."""
        return self.problem if self.is_message or not self.problem else f"{self.problem} differs"

    @property
    def is_open(self) -> bool:
        """Whether a rank has it and has not ended it."""
        return any(state in self.states for state in ("scheduled", "started", "state unknown"))


class HangWait(NamedTuple):
    """A rank that waits for another one."""

    rank: int
    for_rank: int
    behind: str
    """The culprits that the other one waits for itself, in words; "" where it is one."""
    group: GroupProgress
    sequence: int
    """The number of the collective, or of the message."""
    operation: str
    """Raw text of the file."""
    since: str
    """When the rank that waits came, a time of the day."""
    track_id: int
    """The track of the rank that waits."""
    start_ns: int
    """When it came, ns from the begin of the axis."""
    end_ns: int
    """The end of its entry, ns from the begin of the axis."""


class HangTables(NamedTuple):
    """What is found in the dumps of a job."""

    headline: str
    """Who is waited for, in few words."""
    groups: Sequence[GroupProgress]
    """Those with something open first, the one that the culprits are missing in before all."""
    find_collectives: Callable[[bool], Sequence[CollectiveStates]]
    """Returns the collectives that have not ended or do not match; with True all of the rings."""
    find_waits: Callable[[], Sequence[HangWait]]
    """Returns who waits for whom: those that wait for a culprit first, then the oldest."""
    values: Mapping[str, Any]
    """The verdict as JSON."""


class HeldMemory(NamedTuple):
    """What allocations of one stack hold at the peak of a device."""

    bytes: int
    allocations: int
    """How many there are."""
    site: str
    """Where in the program, raw text of the file; "" where that is not known."""
    frames: Sequence[tuple[str, str, int]]
    """(function, file, line), the innermost first, raw text of the file."""
    stream: str | None
    """The stream of the lane of the largest of them, None where it has none."""
    start_ns: int
    """When the largest of them was allocated, ns from the begin of the axis."""
    is_before: bool
    """Whether they were there before the events, so that nothing says where they are from."""

    @property
    def words(self) -> str:
        """Where in the program, raw text of the file, or why that is not known."""
        return self.site or ("before the events" if self.is_before else "no stack recorded")


class FailedRequest(NamedTuple):
    """A request for memory that could not be met, bytes."""

    time_ns: int
    """When, ns from the begin of the axis."""
    size: int
    """What was asked for."""
    free: int
    """What was free on the device, as its driver says."""
    allocated: int
    reserved: int
    site: str
    """As in `HeldMemory`."""
    frames: Sequence[tuple[str, str, int]]

    @property
    def unused(self) -> int:
        """What the allocator had reserved and not allocated."""
        return max(self.reserved - self.allocated, 0)


class DeviceMemory(NamedTuple):
    """What the allocator of a device held, bytes as they were asked for."""

    track_id: int
    name: str
    """`device 0`, `rank 3`."""
    rank: int | None
    """The rank of its snapshot, None of a single file."""
    device: int
    """Its number in the process."""
    segments: int
    """How many the allocator has at the end."""
    events: int
    """How many were recorded."""
    peak_ns: int
    """When most is allocated, ns from the begin of the axis."""
    peak_allocated: int
    peak_reserved: int
    """What is reserved then."""
    most_reserved: int
    """The most that is reserved at any time."""
    end_allocated: int
    """What is allocated when the snapshot is taken."""
    end_reserved: int
    rounding: int
    """What the allocator rounded up of that."""
    largest_free: int
    """The largest block that nothing is in then."""
    annotation: str | None
    """The mark of the program that the peak is in, raw text of the file."""
    holders: Sequence[HeldMemory]
    """What is allocated at the peak, by stack, the most first."""
    failures: Sequence[FailedRequest]

    @property
    def unused(self) -> int:
        """What is reserved and not allocated at the peak: fragmentation, and what was freed and is kept."""
        return max(self.peak_reserved - self.peak_allocated, 0)


class SnapshotTables(NamedTuple):
    """What is found in memory snapshots."""

    headline: str
    """The highest peak, in few words."""
    devices: Sequence[DeviceMemory]
    """By rank and number."""
    find_levels: Callable[[int, Sequence[int]], tuple[Sequence[int], Sequence[int]]]
    """Returns the most bytes (allocated, reserved) of a track between neighbouring times, ns."""
    values: Mapping[str, Any]
    """The same as JSON."""

    @property
    def highest(self) -> DeviceMemory:
        """The device with the highest peak."""
        return max(self.devices, key=lambda one: one.peak_allocated)


class Insight(NamedTuple):
    """A sentence about a run."""

    rule: str
    """The rule that says it."""
    text: str
    """The sentence."""
    ns: int | None = None
    """The figure that it is about, None of several figures."""


class StreamUse(Struct, frozen=True):
    """One stream of a rank, in a step or a stretch of it."""

    stream: str
    """Its name."""
    busy_ns: int
    """How long something runs on it, ns."""
    overlapped_ns: int | None
    """How much of that the rank computes, ns; None where a trace does not give it."""
    exposed_ns: int
    """How long compute waits for it, ns."""

    @property
    def kind(self) -> str:
        """`compute`, the kind of group, or `pp`."""
        return "pp" if self.stream.startswith("pp") else self.stream


class TrackUse(NamedTuple):
    """The step of one rank of a track; its accounts sum to the step."""

    track: Track
    """The track."""
    compute_ns: Mapping[str, int]
    """Compute by phase, ns."""
    exposed_ns: Mapping[str, int]
    """Exposed communication by kind of group, ns."""
    wait_ns: int
    """The account `wait`, ns."""
    bubble_ns: int
    """The account `bubble`, ns."""
    host_ns: int | None
    """The account `host`, ns; None where no host was recorded."""
    idle_ns: int
    """The account `idle`, ns."""
    overlapped_ns: int | None
    """Communication that overlaps compute, ns; None where it is not known."""
    comm_ns: int
    """All communication, ns."""
    peak_microbatches: int | None
    """The most micro-batches held at once; None where it is not known."""
    streams: Sequence[StreamUse]
    """Its streams."""
    peak_chunks: int | None = None
    """The most chunks held at once, of a model; None where it is not known."""


class WaitFor(NamedTuple):
    """Some ranks that wait in a step for other ranks."""

    early: RankSet
    """The ranks that wait."""
    late: RankSet
    """The ranks that they wait for."""
    where: str
    """The operation, or the group whose collectives they wait in; raw text of the file."""
    ns: int
    """How long each of the early ranks waits, ns."""
    summary: str = ""
    """`where` in words, "" where the name says it."""


class PathSegment(NamedTuple):
    """A segment of the critical path."""

    start_ns: int
    """When it begins, ns."""
    end_ns: int
    """When it ends, ns."""
    rank: int
    """Its rank."""
    stream: str
    """Its stream."""
    kind: str
    """What the time goes to."""
    layer: str | None
    """The row or operation, raw text of the file; None without one."""
    phase: str | None
    """The phase, None outside of them."""
    microbatch: int | None
    """The micro-batch, None outside of them."""
    reason: str
    """Why it could not start earlier."""
    node: int | None = None
    """The id of the node, of execution traces."""


class RankEnd(NamedTuple):
    """The end of a rank."""

    rank: int
    """The rank."""
    end_ns: int
    """When it ends, ns."""
    exposed_ns: int
    """Its exposed time as ASTRA-sim has it: the end less its GPU compute, ns."""


class GroupUse(NamedTuple):
    """The collectives of a group, summed over its ranks."""

    group: str
    """The group."""
    ranks: str
    """Its ranks, in words."""
    collectives: int
    """How many collectives there are."""
    bytes: int
    """Their bytes, as comm_size has them."""
    own_ns: int
    """How long they take without waiting, ns."""
    waits_ns: int
    """How long they wait, ns."""


class NodeTables(NamedTuple):
    """Tables that only execution traces have."""

    ranks: Sequence[RankEnd]
    """The end of each rank."""
    names: Sequence[LayerUse]
    """The names of nodes, the most time first."""
    groups: Sequence[GroupUse]
    """The groups, the most time first."""
    exposed_words: str
    """What the exposed time of `ranks` is, in words."""
    in_cycles: bool = False
    """Whether ASTRA-sim prints the two times of a rank, in whole ns."""


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
    def other_model(self) -> str: ...
    @property
    def measured(self) -> bool: ...


class KnownStep(NamedTuple):
    """What says how much work a step is, of a run that need not be in memory: a `SteppedRun`."""

    step_time_ns: int
    work: StepWork | None = None
    left_out: str = ""
    other_model: str = ""
    measured: bool = False
    microbatches: int = 0
    steps: int = 1
    has_equal_microbatches: bool = True

    @classmethod
    def of(cls, run: SteppedRun) -> KnownStep:
        """Returns what of a run decides which of two is better."""
        return cls(run.step_time_ns, run.work, run.left_out, run.other_model, run.measured)


def microbatch_ns(run: SteppedRun) -> int | None:
    """Returns the share of the step of each micro-batch of a replica, ns; None where the run has none."""
    count = run.microbatches * run.steps
    return run.step_time_ns // count if count else None


def throughput_words(run: SteppedRun) -> str:
    """Returns `step / 16 micro-batches = 923.4 ms, 1.083 a second`, of each replica; "" where the run has
    none.

    It is the step over their count: several are in flight at a time. Of unequal ones it is their count alone.
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


def each_words(run: SteppedRun) -> str:
    """Returns `step / 16 = 923.4 ms`: the share of the step of each micro-batch, of several steps the mean.

    "" where the run has no micro-batches, or unequal ones.
    """
    each = microbatch_ns(run)
    # Of a single micro-batch the step time says it.
    if not each or each == run.step_time_ns or not run.has_equal_microbatches:
        return ""
    if run.steps > 1:
        return f"mean {duration(each)} a micro-batch"
    # Not `mean 923.4 ms`: that reads as the compute time of a micro-batch.
    return f"step / {run.microbatches} = {duration(each)}"


_BEHIND = ", step / "


def append_each(fact: str, run: SteppedRun) -> str:
    """Returns a fact about the schedule of a run of one step with `each_words` behind it."""
    each = each_words(run) if run.steps == 1 else ""
    return f"{fact}, {each}" if each else fact


def remove_each(fact: str) -> str:
    """Returns a fact of a headline without the words that `append_each` has put behind it."""
    return fact.partition(_BEHIND)[0]


class WorkComparison(NamedTuple):
    """Two runs compared by their work."""

    a_ns: int
    """The step of A, ns."""
    same_work_ns: int
    """The part of B's step that as much work as A's takes, ns."""
    each_ns: tuple[int, int] | None
    """A micro-batch of either run, ns; None where these are not equal work."""
    is_by_token: bool = False
    """Whether the work is the tokens of all replicas."""

    @property
    def change_text(self) -> str:
        """`-27.1 %`: B relative to A."""
        return change_percent(self.a_ns, self.same_work_ns)

    @property
    def words(self) -> str:
        """`a micro-batch -229.0 ms (-24.8 %)`, of unequal micro-batches the change for all of A's; of models
        `a token +1.2 %`.
        """
        if self.is_by_token:
            return f"a token {self.change_text}"
        before, after = self.each_ns or (self.a_ns, self.same_work_ns)
        of = "a micro-batch" if self.each_ns else "for the same work"
        return f"{of} {signed_duration(after - before)}" + (
            f" ({self.change_text})" if self.change_text else ""
        )


def compare_by_work(a: SteppedRun, b: SteppedRun) -> WorkComparison | None:
    """Returns two runs compared by their work, where that and not the step decides which is faster.

    So it is where the steps of two models have other tokens, and where replicas have more micro-batches in
    one run than in the other and the batch of all replicas differs too. None for runs with equal work, and
    for those that cannot be compared (`is_other_work`).
    """
    works = _unequal_works(a, b)
    if works is None or not _is_multiple(*works) or a.left_out != b.left_out:
        return None
    before, after = _amounts(*works)
    same_work_ns = find_same_work_ns(b.step_time_ns, *works)
    each = microbatch_ns(a), microbatch_ns(b)
    is_one_kind = len(works[0].counts) == 1
    is_of_each = a.microbatches * a.steps * after == b.microbatches * b.steps * before
    is_by_token = _have_tokens(*works)
    has_each = is_one_kind and is_of_each and each[0] and each[1] and not is_by_token
    each_ns = (each[0] or 0, each[1] or 0) if has_each else None
    return WorkComparison(a.step_time_ns, same_work_ns or 0, each_ns, is_by_token)


def is_other_work(a: SteppedRun, b: SteppedRun) -> bool:
    """Returns whether two runs cannot be compared by their work.

    Then the micro-batches of one step are neither the same as the other's nor a multiple of them, or one run
    goes without lines of the file that the other has.
    """
    if a.left_out != b.left_out:
        return True
    works = _unequal_works(a, b)
    return works is not None and not _is_multiple(*works)


Verdict = Literal["better", "worse", "neither"]


def judge(a: SteppedRun, b: SteppedRun) -> Verdict:
    """Returns whether run B is better or worse than run A: by the step where both do equal work, else by the
    time of a token or of a micro-batch.

    Runs that cannot be compared are neither.
    """
    if is_other_work(a, b) or a.other_model != b.other_model:
        return "neither"
    by_work = compare_by_work(a, b)
    if by_work is not None:
        return judge_times(by_work.a_ns, by_work.same_work_ns)
    return judge_times(a.step_time_ns, b.step_time_ns)


def judge_times(was_ns: float, now_ns: float, step_ns: int | None = None) -> Verdict:
    """Returns whether a time for equal work is better or worse than it was.

    A change that would print as 0.0 % is neither. step_ns: the step that the times are a part of, if they are
    not all of it.
    """
    change_ns = now_ns - was_ns
    if not change_ns or abs(change_ns) < LEAST_SHARE * (was_ns if step_ns is None else step_ns):
        return "neither"
    return "better" if change_ns < 0 else "worse"


def find_same_work_ns(ns: int, work: StepWork, other: StepWork) -> int | None:
    """Returns the part of a step of `other` that as much as `work` takes, ns; None where the one is no
    multiple of the other: what a part of unequal micro-batches takes is not known.
    """
    if not _is_multiple(work, other):
        return None
    amount, of_other = _amounts(work, other)
    return ns * amount // of_other


def _unequal_works(a: SteppedRun, b: SteppedRun) -> tuple[StepWork, StepWork] | None:
    """Returns the work of two runs whose work is unequal; None also where it is not known."""
    if a.measured != b.measured:
        # A measured run need not be as much work as a simulated one.
        return None
    works = a.work, b.work
    if works[0] is None or works[1] is None:
        return None
    both = works[0], works[1]
    if _have_tokens(*both):
        batches = _amounts(*both)
    elif both[0].counts == both[1].counts:
        return None
    else:
        # With another number of replicas the same batch may be divided in another way.
        batches = sum(both[0].counts) * both[0].replicas, sum(both[1].counts) * both[1].replicas
    return both if batches[0] != batches[1] else None


def _have_tokens(work: StepWork, other: StepWork) -> bool:
    """Returns whether the tokens of both are known."""
    return work.tokens > 0 < other.tokens


def _amounts(work: StepWork, other: StepWork) -> tuple[int, int]:
    """Returns how much either is: the tokens of all replicas where both are known, else what one replica
    does.
    """
    amounts = sum(work.counts), sum(other.counts)
    if not _have_tokens(work, other):
        return amounts
    return amounts[0] * work.replicas * work.tokens, amounts[1] * other.replicas * other.tokens


def _is_multiple(work: StepWork, other: StepWork) -> bool:
    """Returns whether the two are the same micro-batches, or tokens, more or less often."""
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
    """Returns how many there are in a second, in four figures."""
    return f"{1e9 / each_ns:.4g}" if each_ns > 1e5 else f"{1e9 / each_ns:.0f}"


Item = TypeVar("Item", covariant=True)


class LazySequence(Sequence[Item], Generic[Item]):
    """A sequence whose items `make` makes each time one is requested; none is retained."""

    def __init__(self, length: int) -> None:
        self._indices = range(length)

    @abstractmethod
    def make(self, index: int) -> Item:
        """Returns the item at `index`, from 0 to length - 1."""

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
