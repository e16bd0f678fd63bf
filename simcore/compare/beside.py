"""Two runs of which at least one was measured: which lane is which, and what differs in the same words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from simcore.compare import AccountChange, AccountPart
from simcore.compare.name_changes import NameChange, name_changes, sentences
from simcore.compare.parts import BUSY
from simcore.compare.reasons import leading_parts
from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters
from simcore.records import NamedTuple, Struct, asdict
from simcore.replay.stragglers import LEAST
from simcore.trace.named_work import NamedWork, summed
from simcore.trace.run import Run, common_ns
from simcore.trace.track import ALIKE, COMPUTE, TimedPass, Track, busy_ns, mean_ns
from simcore.units import difference, duration, largest, listed, plural
from simcore.words.measured_run import replay_words

# Cells for what a replay changes.
_CHANGES = 36
# And for the flags of a run of execution traces.
_FLAGS = 80
_STAMP_CELLS = 24


def run_words(beside: Beside, side: Run) -> str:
    """`run 20250320144110 of `, before the name of a side whose directory has both runs; else ""."""
    return f"run {printable(side.setup.stamp or '', _STAMP_CELLS)} of " if beside.told_by_stamp else ""


def side_facts(side: Run, other: Run) -> str:
    """`replayed (compute x2), tp 2 x dp 1 x pp 4, 1 micro-batch`: what a side is, without its name. Of
    execution traces also the flags that the other side does not have.
    """
    shape = side.shape
    degrees = [
        f"{name} {degree}"
        for name, degree in (("tp", shape.tp), ("dp", shape.dp), ("pp", shape.pp))
        if degree is not None
    ]
    changes = replay_words(() if side.recording is None else side.recording.changes, _CHANGES)
    if side.setup.of == "execution":
        changes = _flags_of_its_own(side, other)
    kind = f"{side.figures.kind} ({changes})" if changes else side.figures.kind
    parts = [kind, *([" x ".join(degrees)] if degrees else [])]
    parts += [plural(shape.scheduled, "micro-batch")] if shape.scheduled else []
    return ", ".join(parts)


def _flags_of_its_own(side: Run, other: Run) -> str:
    """`--time-scale 'all compute=0.5'`: the flags of a run whose values the other has not."""
    fields, beside = asdict(side.parameters), asdict(other.parameters)
    own = {name: value for name, value in fields.items() if value != beside[name]}
    return printable(shlex.join(Parameters(**own).as_flags()), _FLAGS)


def paired_words(beside: Beside) -> str:
    """How lanes were paired: `8 ranks paired`, or by stage alone."""
    if beside.by_rank:
        return f"{plural(sum(pair.ranks for pair in beside.pairs), 'rank')} paired"
    return f"{plural(len(beside.stages), 'stage')} paired, ranks are not: the mean of each stage"


def notices(beside: Beside) -> list[str]:
    """What has to be known before the figures are believed."""
    lines = []
    if beside.unlike:
        parts = [f"{name} {a} in A, {b} in B" for name, a, b in beside.unlike if None not in (a, b)]
        for letter, number in (("A", 1), ("B", 2)):
            unknown = [figure[0] for figure in beside.unlike if figure[number] is None]
            parts += [f"of {letter} {', '.join(unknown)} not known"] if unknown else []
        lines.append(f"Not the same layout: {'; '.join(parts)}. Paired by stage alone.{_how_alike(beside)}")
    return [*lines, *waits_unknown(beside.a, "A"), *waits_unknown(beside.b, "B")]


def waits_unknown(side: Run, name: str) -> list[str]:
    """What is not known of the waiting of a run, a sentence or none. name: how the run is called."""
    if side.recording is not None and not side.recording.together:
        return [f"The ranks of {name} did not run together: who waits for whom is not known."]
    alone = _without_partner(side, name)
    return [alone] if alone else []


def _without_partner(side: Run, name: str) -> str:
    """That waiting counts as communication where partners are missing, if that makes a difference."""
    if side.recording is None:
        return ""
    partners = side.recording.partners
    count, rank, ns = partners.waiting()
    if not ns or ns < side.recording.measured_step_ns * LEAST:
        return ""
    missing = partners.missing_words()
    calls = "1 receive or collective has" if count == 1 else f"{count} receives and collectives have"
    return (
        f"Of {name} {f'{missing}: ' if missing else ''}{calls} no partner; waiting there counts as "
        f"communication, up to {duration(ns)} on rank {rank}."
    )


def _how_alike(beside: Beside) -> str:
    """The flags with which a workload has the layout of the trace beside it, as far as that is known."""
    simulated = [side for side in (beside.a, beside.b) if side.recording is None]
    if len(simulated) != 1:
        return ""
    (mine,) = simulated
    own, wanted = mine.shape, (beside.b if mine is beside.a else beside.a).shape
    worlds = [
        None
        if None in (step_shape.tp, step_shape.dp, step_shape.pp)
        else (step_shape.tp or 0) * (step_shape.dp or 0) * (step_shape.pp or 0)
        for step_shape in (own, wanted)
    ]
    flags = [
        f"{flag} {there}"
        for flag, here, there in (
            ("--world", *worlds), ("--tp", own.tp, wanted.tp), ("--pp", own.pp, wanted.pp),
            ("--microbatches", own.scheduled, wanted.scheduled),
        )
        if there is not None and here != there
    ]  # fmt: skip
    known = "what is known of the layout" if None in wanted.by_name.values() else "the layout"
    return f" {' '.join(flags)} gives the workload {known} of the trace." if flags else ""


def why_words(beside: Beside) -> str:
    """Whose compute changes most, where that explains something, and what changes most on the mean rank: of
    what changes as the step does. Compute is one account.
    """
    if not beside.movers:
        return "nothing changes: the accounts are equal on every stage"
    leading, cause = leading_parts(beside.parts, beside.difference_ns), beside.cause
    most, on_mean = leading.most, f"{leading.words} on the mean rank"
    if cause is not None and cause.change.ns * most.ns > 0:
        if cause.stage is not None or most.account != cause.change.name:
            return f"{_computes(cause)}; {on_mean}"
        # What the mean rank computes is no news beside what it computes more or less.
        return (
            f"{on_mean}, which computes {duration(cause.change.b_ns)}, before {duration(cause.change.a_ns)}"
        )
    of_it = [mover for mover in beside.movers if account_of(mover.change.name) == most.account]
    near = largest({change: abs(change.change.ns) for change in of_it if change.change.ns * most.ns > 0})
    if not near:
        return on_mean
    first = near[0].change
    each = ": " if len(near) == 1 else ", each about "
    there = f"{first.name} {difference(first.a_ns, first.b_ns)}"
    return f"{on_mean}, most on {listed([where_words(change) for change in near])}{each}{there}"


def where_words(change: KindChange) -> str:
    """`rank 7`, or `stage 3` of the mean of its ranks."""
    if change.rank is not None:
        return f"rank {change.rank}"
    return "all ranks" if change.stage is None else f"stage {change.stage}"


def _computes(cause: KindChange) -> str:
    """`rank 7 computes 962.7 ms less`."""
    where = f"rank {cause.rank}" if cause.rank is not None else "the mean rank"
    if cause.rank is None and cause.stage is not None:
        where += f" of stage {cause.stage}"
    return f"{where} computes {duration(abs(cause.change.ns))} {'more' if cause.change.ns > 0 else 'less'}"


def account_of(name: str) -> str:
    """The account that one of ALIKE is a part of where a difference is explained: compute is one."""
    return BUSY if ALIKE.index(name) in COMPUTE else name


class MatchedPass(NamedTuple):
    """The same pass in A and in B."""

    a: TimedPass
    b: TimedPass


def matched_passes(a: Iterable[TimedPass], b: Iterable[TimedPass]) -> list[MatchedPass]:
    """The passes that both have: of one direction, micro-batch and part; in the order of A."""
    of_b = {timed_pass[:3]: timed_pass for timed_pass in b}
    return [MatchedPass(timed_pass, of_b[timed_pass[:3]]) for timed_pass in a if timed_pass[:3] in of_b]


# A rank stands for its stage, or a stage for all, if it changes over so many times as much as the others.
_MUCH_MORE = 4
# The part of the largest change of an account below which a change of compute does not explain it.
_CAUSE = 0.1
_LAYOUT_WORDS = {"tp": "tp", "dp": "dp", "pp": "pp", "microbatches": "micro-batches"}


class LanePair(NamedTuple):
    """A lane of A and one of B with `ranks` ranks in common. stage: None where none is known."""

    stage: int | None
    a: Track
    b: Track
    ranks: int


class StagePair(NamedTuple):
    """A stage of both runs (None: all ranks). accounts: every one of ALIKE, the mean of its ranks, ns: they
    sum to the two steps. passes: those of its first lanes that both have.
    """

    stage: int | None
    accounts: list[AccountChange]
    passes: list[MatchedPass]

    def pass_ns(self, direction: str) -> AccountChange | None:
        """What a pass takes, the mean of those that both have; None where there is none."""
        alike = [matched_pass for matched_pass in self.passes if matched_pass.a.direction == direction]
        if not alike:
            return None
        sums = (
            sum(matched_pass.a.ns for matched_pass in alike),
            sum(matched_pass.b.ns for matched_pass in alike),
        )
        return AccountChange(direction, *(ns // len(alike) for ns in sums))


class KindChange(NamedTuple):
    """What a kind of time (of ALIKE, or `compute`) takes in A and in B. rank: of which one, None for the
    mean rank of the stage. stage: None for that of all stages.
    """

    stage: int | None
    change: AccountChange
    rank: int | None = None


class Beside(Struct, frozen=True, dict=True):
    """Run B against run A; differences are B - A.

    Raises `UsageError` for an order without times, and where nothing of the two can be paired.
    """

    op_by_op: ClassVar[bool] = False
    schema: ClassVar[str] = "wltui.beside/1"
    title: ClassVar[str] = ""
    parts_words: ClassVar[str] = ""
    cost: ClassVar[None] = None
    cost_words: ClassVar[str] = ""
    changed: ClassVar[dict[str, tuple[Any, Any]]] = {}
    matched: ClassVar[None] = None
    worst: ClassVar[None] = None
    paths: ClassVar[None] = None
    layers: ClassVar[tuple[()]] = ()
    op_movers: ClassVar[None] = None

    a: Run
    b: Run

    def __post_init__(self) -> None:
        for side in (self.a, self.b):
            if not side.timed:
                raise UsageError(
                    f"compare {printable(side.path)}: found an order of operations without times, expected a "
                    "trace with durations"
                )
        if not self.pairs:
            raise UsageError(
                "compare: found no rank or stage that both runs have; expected traces that name their "
                "stages (stage_id, or degrees in their names)"
            )

    # -- in words, as `Compared` has them ----------------------------------------------------

    @property
    def sides(self) -> tuple[str, str]:
        """The name of A and of B, and what it is."""
        a, b = (
            f"{run_words(self, side)}{printable(side.path)}: {side_facts(side, other)}"
            for side, other in ((self.a, self.b), (self.b, self.a))
        )
        return a, b

    @property
    def paired(self) -> str:
        """How lanes were paired."""
        return paired_words(self)

    @property
    def notices(self) -> list[str]:
        """What has to be known before the figures are believed."""
        return notices(self)

    @property
    def why(self) -> str:
        """What changes most."""
        return why_words(self)

    @cached_property
    def _most_changed(self) -> StagePair:
        """The stage whose accounts change most."""
        return max(self.stages, key=lambda stage: sum(abs(change.ns) for change in stage.accounts))

    @property
    def accounts_title(self) -> str:
        """The ranks of `account_pairs`."""
        if self._most_changed.stage is None:
            return "the mean of all ranks"
        return f"the mean of the paired stages, then stage {self._most_changed.stage}, which changes most"

    @property
    def account_pairs(self) -> list[tuple[AccountChange, AccountChange]]:
        """The mean of the paired stages, and of the stage that changes most."""
        return list(zip(self.whole.accounts, self._most_changed.accounts, strict=True))

    @property
    def lanes(self) -> list[LanePair]:
        """The lanes that are paired."""
        return self.pairs

    @property
    def kind_movers(self) -> list[tuple[str, KindChange]]:
        """What kinds of time change most."""
        return [(where_words(mover), mover) for mover in self.movers]

    @property
    def told_by_stamp(self) -> bool:
        """Whether A and B are two measured runs with stamps of their own, as of one directory."""
        return (
            None not in (self.a.setup.stamp, self.b.setup.stamp) and self.a.setup.stamp != self.b.setup.stamp
        )

    @property
    def difference_ns(self) -> int:
        """How much longer step B is."""
        return self.b.step_time_ns - self.a.step_time_ns

    @cached_property
    def unlike(self) -> list[tuple[str, int | None, int | None]]:
        """What of the layout differs, or is not known (None) of one: its name, of A and of B."""
        return [
            (_LAYOUT_WORDS[name], here, there)
            for (name, here), there in zip(
                self.a.shape.by_name.items(), self.b.shape.by_name.values(), strict=True
            )
            if here != there
        ]

    @property
    def by_rank(self) -> bool:
        """Whether lanes are paired rank by rank; else by their stage alone."""
        return self._by_number or (not self.unlike and all(_places(side) for side in self._measured))

    @property
    def _by_number(self) -> bool:
        """Whether a rank stands beside the one of its number: execution traces tell nothing else of them, and
        of two runs neither may know stages.
        """
        if "execution" in (self.a.setup.of, self.b.setup.of):
            return True
        return all(_stageless(side) for side in (self.a, self.b))

    @property
    def _measured(self) -> list[Run]:
        return [side for side in (self.a, self.b) if side.recording is not None]

    @cached_property
    def pairs(self) -> list[LanePair]:
        """The lanes in pairs, by stage and rank: of one place each, or of each stage the first one."""
        if self._by_number:
            return self._numbered()
        if self.by_rank:
            return self._by_place()
        firsts: list[dict[int | None, Track]] = [{}, {}]
        for first, side in zip(firsts, (self.a, self.b), strict=True):
            for track in side.tracks:
                first.setdefault(track.stage, track)
        common = [stage for stage in firsts[0] if stage in firsts[1]]
        known = [stage for stage in common if stage is not None]
        if _stageless(self.a) or _stageless(self.b):
            # One that knows no stages stands beside all of the other.
            return [LanePair(None, self.a.tracks[0], self.b.tracks[0], 1)]
        return [LanePair(stage, firsts[0][stage], firsts[1][stage], 1) for stage in known]

    def _numbered(self) -> list[LanePair]:
        sides = [{rank: track for track in side.tracks for rank in track.ranks} for side in (self.a, self.b)]
        ranks_of: dict[tuple[Track, Track], int] = {}
        for rank in sorted(sides[0].keys() & sides[1].keys()):
            pair = sides[0][rank], sides[1][rank]
            ranks_of[pair] = ranks_of.get(pair, 0) + 1
        return [LanePair(None, a, b, ranks) for (a, b), ranks in ranks_of.items()]

    def _by_place(self) -> list[LanePair]:
        ranks_of: dict[tuple[Track, Track], int] = {}
        for place in _places(self._measured[0]):
            a, b = self.a.shape.track_at(place), self.b.shape.track_at(place)
            if a is not None and b is not None:
                ranks_of[a, b] = ranks_of.get((a, b), 0) + 1
        return [LanePair(a.stage, a, b, ranks) for (a, b), ranks in ranks_of.items()]

    @cached_property
    def stages(self) -> list[StagePair]:
        """Each stage that both have, ascending."""
        numbers = dict.fromkeys(pair.stage for pair in self.pairs)
        return [self._stage(stage) for stage in numbers]

    @cached_property
    def whole(self) -> StagePair:
        """All ranks of the stages that both have, as one."""
        return self._stage(None)

    @cached_property
    def parts(self) -> list[AccountPart]:
        """B - A by account of the mean rank of the stages that both have, the largest part first."""
        ns_of: dict[str, int] = {}
        for change in self.whole.accounts:
            account = account_of(change.name)
            ns_of[account] = ns_of.get(account, 0) + change.ns
        there = [AccountPart(account, ns) for account, ns in ns_of.items() if ns]
        return sorted(there, key=lambda part: -abs(part.ns))

    def _stage(self, stage: int | None) -> StagePair:
        means = []
        wanted = {pair.stage for pair in self.pairs} if stage is None else {stage}
        for side in (self.a, self.b):
            sums, ranks = [0] * len(ALIKE), 0
            for track in side.tracks:
                if self._by_number or track.stage in wanted or None in wanted:
                    count = len(track.ranks)
                    ranks += count
                    of_one = common_ns(side, track)
                    sums = [total + count * ns for total, ns in zip(sums, of_one, strict=True)]
            means.append(mean_ns(sums, ranks))
        accounts = [AccountChange(name, *ns) for name, *ns in zip(ALIKE, *means, strict=True)]
        first = next((pair for pair in self.pairs if pair.stage == stage), None)
        return StagePair(stage, accounts, [] if first is None else self.passes(first))

    def passes(self, pair: LanePair) -> list[MatchedPass]:
        """The passes that both lanes of a pair have."""
        return matched_passes(self.a.figures.passes(pair.a), self.b.figures.passes(pair.b))

    def rank_of(self, pair: LanePair) -> int:
        """The rank that a pair is about, by its number in B; a lane of equal simulated ranks stands beside
        each of the measured ones, which have numbers of their own.
        """
        return (pair.a if self.b.setup.of == "workload" else pair.b).first_rank

    @cached_property
    def movers(self) -> list[KindChange]:
        """What kinds of time change most, stage by stage, the largest difference first; equal ones are not
        there. Of a stage the mean of its ranks or, where lanes are paired by rank and one of them changes
        much more than the others, that rank.
        """
        changes = []
        for stage in self.stages:
            ranks = self._ranks_of(stage.stage)
            for number, change in enumerate(stage.accounts):
                of_ranks = [
                    KindChange(stage.stage, AccountChange(change.name, a_ns[number], b_ns[number]), rank)
                    for rank, a_ns, b_ns in ranks
                ]
                alone = _alone(of_ranks)
                if alone is not None or change.ns:
                    changes.append(alone or KindChange(stage.stage, change))
        return sorted(changes, key=lambda mover: (-abs(mover.change.ns), mover.stage or 0, mover.change.name))

    @cached_property
    def cause(self) -> KindChange | None:
        """Whose compute changes most: the rank whose does, if it is much more than that of the others of its
        stage; else a stage whose mean rank's does much more than the others'; else the mean rank of all.
        None where it is little beside the account that changes most, and so explains nothing.
        """
        ranks = [
            KindChange(stage.stage, _compute(a_ns, b_ns), rank)
            for stage in self.stages
            for rank, a_ns, b_ns in self._ranks_of(stage.stage)
        ]
        first = max(ranks, key=_size, default=None)
        most = None if first is None else _alone([change for change in ranks if change.stage == first.stage])
        if most is None:
            most = _alone([KindChange(pair.stage, _compute_of(pair)) for pair in self.stages])
            of_it = [] if most is None else [change for change in ranks if change.stage == most.stage]
            most = of_it[0] if len(of_it) == 1 else most
        most = most or KindChange(None, _compute_of(self.whole))
        largest = max(abs(change.ns) for change in self.whole.accounts)
        return most if most.change.ns and abs(most.change.ns) >= largest * _CAUSE else None

    def _ranks_of(self, stage: int | None) -> list[tuple[int, list[int], list[int]]]:
        """Rank, its ns by ALIKE in A and in B, of the paired ranks of a stage; none if paired by stage."""
        if not self.by_rank:
            return []
        return [
            (self.rank_of(pair), common_ns(self.a, pair.a), common_ns(self.b, pair.b))
            for pair in self.pairs
            if pair.stage == stage
        ]

    @cached_property
    def by_name(self) -> list[NameChange]:
        """What all paired ranks together do by name, what differs most first; nothing where ranks are not
        paired, or a simulated run has other names.
        """
        works = self._works
        a = summed((work, pair.ranks) for (work, _), pair in zip(works, self.pairs, strict=False))
        b = summed((work, pair.ranks) for (_, work), pair in zip(works, self.pairs, strict=False))
        return name_changes(a, b) if works else []

    @cached_property
    def _works(self) -> list[tuple[NamedWork, NamedWork]]:
        """What the ranks of each pair do by name; nothing where `by_name` has nothing."""
        kinds = {self.a.setup.of, self.b.setup.of}
        if not self.by_rank or len(kinds) > 1 or "workload" in kinds:
            return []
        return [(self.a.figures.named_work(pair.a), self.b.figures.named_work(pair.b)) for pair in self.pairs]

    def most_changed(self, change: NameChange) -> LanePair:
        """The ranks where what has a name of `by_name` changes most."""
        key = change.account, change.name
        changed = [abs(b.ns.get(key, 0) - a.ns.get(key, 0)) for a, b in self._works]
        return self.pairs[changed.index(max(changed))]

    @property
    def by_name_title(self) -> str:
        """Whose time `by_name` is."""
        count = sum(pair.ranks for pair in self.pairs)
        return f"all {count} ranks together" if count > 1 else f"rank {self.rank_of(self.pairs[0])}"

    @cached_property
    def by_name_words(self) -> list[str]:
        """What differs most by name, in one or two sentences; nothing without `by_name`."""
        if not self.by_name:
            return []
        sums = [[0, 0] for _ in ALIKE]
        for pair in self.pairs:
            for side, ns in enumerate((common_ns(self.a, pair.a), common_ns(self.b, pair.b))):
                for number, account_ns in enumerate(ns):
                    sums[number][side] += pair.ranks * account_ns
        accounts = [AccountChange(name, *both) for name, both in zip(ALIKE, sums, strict=True)]
        who = f", {self.by_name_title}" if len(self.pairs) > 1 else ""
        return sentences(accounts, self.by_name, f"A{who}", "B")

    @property
    def unchanged(self) -> list[str]:
        """The kinds of time that both have and that are equal on every stage."""
        differ = {mover.change.name for mover in self.movers}
        return [
            account.name for account in self.whole.accounts if account.name not in differ and account.a_ns
        ]


def _places(run: Run) -> list[tuple[int, int, int]]:
    """(stage, dp, tp) of each measured rank; empty where that of one is not known."""
    known = [track.place for track in run.tracks if track.place is not None]
    return known if len(known) == len(run.tracks) else []


def _stageless(run: Run) -> bool:
    """Whether it knows the stage of no rank."""
    return all(track.stage is None for track in run.tracks)


def _size(change: KindChange) -> int:
    return abs(change.change.ns)


def _alone(changes: list[KindChange]) -> KindChange | None:
    """The one that changes much more than all others; None where there is none, or no other."""
    ordered = sorted(changes, key=_size, reverse=True)
    if len(ordered) < 2 or _size(ordered[0]) <= _MUCH_MORE * _size(ordered[1]):
        return None
    return ordered[0]


def _compute(a_ns: Sequence[int], b_ns: Sequence[int]) -> AccountChange:
    """What is computed, of ns by ALIKE."""
    return AccountChange(BUSY, busy_ns(a_ns), busy_ns(b_ns))


def _compute_of(stage: StagePair) -> AccountChange:
    return _compute(
        [account.a_ns for account in stage.accounts], [account.b_ns for account in stage.accounts]
    )
