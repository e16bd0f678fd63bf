"""The sentences on the cost of communication: by kind, at the end of the step, all of it, and at
the ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from simcore.analysis.equal_ranks import find_equal
from simcore.cluster import Dimension
from simcore.collectives import NAMES, cell_name, collectives_of
from simcore.diagnostics import printable
from simcore.program.ops import PHASES, WG, CollectiveCost
from simcore.records import NamedTuple, Struct
from simcore.simulation import Simulation, runs_optimizer_first
from simcore.sources.simulated import ACCOUNTS, EXPOSED_KINDS
from simcore.trace.account_walk import accounts_of, track_accounts
from simcore.trace.changes import Change
from simcore.trace.run import means
from simcore.units import (
    byte_size,
    change_percent,
    duration,
    join_with_figures,
    largest_keys,
    percent,
    plural,
    share_word,
)
from simcore.words.sentences.model import (
    RunSums,
    Weighed,
    Who,
    find_last_backward_ns,
    find_most_rows,
    name_ranks,
    name_stages,
    sum_late_reductions,
)
from simcore.workload.model import base_name
from simcore.workload.traffic import backward_unsent, parameters_sent

_PHASE_WORDS = {
    "fwd": "forward",
    "ig": "input gradient",
    "wg": "weight gradient",
    "opt": "optimizer",
    "recompute": "recompute",
}
# The key of gradients after the last backward, in parts that are otherwise by kind of communication.
_LATE = "late"
# The network is not the cause where the step without it would be shorter by less than this share.
_CAUSE = 0.1
# Where a flag saves less than this share of the late time, the sentence says what remains late.
_MOST_GAIN = 0.9
# Communication costs more than ranks wait for it from this many times that on.
_MUCH_MORE = 1.25
# Hidden time explains saved time where both are equal to within this share.
_EXPLAINS = 0.1
# The usual figure is stated, too, where it is below this share of the largest.
_NEARLY = 0.9
_GATHERS = cell_name("ALLGATHER")


class Waiting(Weighed, frozen=True):
    """How long ranks wait for communication."""

    exposed_ns: int
    """The mean of all ranks."""
    least_ns: int
    """The least of a rank."""
    most_ns: int
    """The most of a rank."""
    computes: bool
    """Whether there is compute that waits."""

    def waits(self, what: str) -> str:
        """Returns `Compute waits 1.200 s (8.1 %) for tp collectives on the mean rank`.

        It is `The mean rank waits ...` where there is no compute that could wait, and `each rank` where the
        printed figure is that of all.
        """
        rank = "each rank" if duration(self.least_ns) == duration(self.most_ns) else "the mean rank"
        waits = f"waits {self.figure(self.exposed_ns)} for {what}"
        return f"Compute {waits} on {rank}" if self.computes else f"{rank.capitalize()} {waits}"


class Network(Waiting, frozen=True):
    """All communication that ranks wait for."""

    rule = "network"

    parts: dict[str, int]
    """ns by kind of communication, gradients after the last backward apart."""
    late: tuple[str, ...]
    """The kinds of these gradients."""

    @property
    def text(self) -> str:
        # Late gradients are of a kind, too: the rest is the other part of that kind.
        kind_texts = {
            kind: f"other {_kind_text(kind)}" if kind in self.late else _kind_text(kind)
            for kind in self.parts
        }
        behind = "gradients after the last backward"
        kind_texts[_LATE] = behind if "all" in self.late else f"{' and '.join(self.late)} {behind}"
        by_size = sorted(self.parts.items(), key=lambda item: -item[1])
        shares = [(percent(ns, self.step_ns), kind_texts[what]) for what, ns in by_size]
        shares_text = ", ".join(f"{share} % {what}" for share, what in shares if float(share))
        return f"{self.waits('communication')}: {shares_text}."


def find_network(run: RunSums) -> Iterator[Network]:
    """Yields a sentence where the communication that compute waits for has several parts worth saying."""
    parts = _find_parts(run)
    if not _has_several(run, parts) or not run.simulation.parameters.comm_scale:
        return
    late = tuple(
        kind for kind in EXPOSED_KINDS if any(sum(of_class.get(kind, {}).values()) for of_class in run.late)
    )
    of_class = [accounts.all_exposed_ns for accounts in run.accounts]
    yield Network(
        step_ns=run.step_ns, ns=run.exposed_ns, cause="network", lost_ns=run.network_ns,
        exposed_ns=run.exposed_ns, least_ns=min(of_class), most_ns=max(of_class), computes=run.computes,
        parts=parts, late=late,
    )  # fmt: skip


def _find_parts(run: RunSums) -> dict[str, int]:
    """Returns exposed communication of the mean rank by kind, ns, late gradients apart."""
    late = {
        kind: run.mean_of_ranks_ns(sum(of_class.get(kind, {}).values()) for of_class in run.late)
        for kind in EXPOSED_KINDS
    }
    parts = {kind: run.mean_ns[f"exposed {kind}"] - late[kind] for kind in EXPOSED_KINDS}
    return {**parts, _LATE: sum(late.values())}


def _has_several(run: RunSums, parts: dict[str, int]) -> bool:
    return sum(run.is_worth_saying(ns) for ns in parts.values()) > 1


def _lost_ns(run: RunSums, part: str) -> int:
    """Returns the cost of a part of all communication, ns: all of the network where it alone is
    worth saying.
    """
    parts = _find_parts(run)
    alone = not _has_several(run, parts) and parts[part] == max(parts.values())
    return run.network_ns if alone else min(parts[part], run.network_ns)


class RowWait(Struct):
    """How long ranks wait for the rows of a name."""

    ns: int
    phases: list[str]
    """The phases in which they wait, in words."""
    collectives: list[str]
    """The collectives that they wait for."""


class MostWaited(Struct, frozen=True):
    """The layers that are waited for longest or, of an only layer, the rows that are most of the wait."""

    rows: dict[str, RowWait]
    """The wait by name."""
    how: str
    """The share of the wait that they are, in a word."""
    who: Who | None
    """The ranks that wait longest; None where all wait about as long."""
    megatron: str
    """What Megatron sends of the gradients of all parameters, in words, where a row of the file sends what no
    trainer does; else "".
    """

    def words(self, stated_ns: int) -> str:
        """Returns `, most for mlp_row (forward and input gradient all-reduce, 1.200 s)`. stated_ns: the
        figure that the sentence already states.
        """
        names, waits = [printable(name, 32) for name in self.rows], list(self.rows.values())
        figures, who = [duration(wait.ns) for wait in waits], ""
        if self.who is not None:
            who = f" on {self.who.inside}"
        begin = f", {self.how} for "
        # A row that no trainer has must not be blamed without saying so.
        if len(names) > 1:
            megatron_text = (
                f"; layernorm sends 2 B of each parameter, Megatron {self.megatron}" if self.megatron else ""
            )
            return f"{begin}{join_with_figures(names, figures, who)}{megatron_text}"
        what = " and ".join(waits[0].collectives)
        # The row is an input gradient in the file, though it sends the gradients of all parameters.
        words = (
            f"{what} of 2 B of each parameter" if self.megatron else f"{' and '.join(waits[0].phases)} {what}"
        )
        words += "" if not who and figures[0] == duration(stated_ns) else f", {figures[0]}{who}"
        return f"{begin}{names[0]} ({words}{f'; Megatron sends {self.megatron}' if self.megatron else ''})"


class Exposed(Waiting, frozen=True):
    """A kind of communication that compute waits for."""

    rule = "exposed"

    kind: str
    has_late: bool
    """Whether communication after the last backward, which has a sentence of its own, is of that
    kind, too.
    """
    most: MostWaited | None
    """The rows that are waited for most; None for none."""
    cost_ns: int | None
    """The cost of transfers between stages, by a run in which they are free, where it is much more than ranks
    wait for them; else None. Stages then wait for each other longer, too.
    """
    is_standing: bool
    """Whether bubble and idle time explain the rest of that cost."""

    @property
    def text(self) -> str:
        most = "" if self.most is None else self.most.words(self.ns)
        if self.cost_ns is not None:
            waits = self.waits("them")
            rest = ", the rest is bubble and idle time" if self.is_standing else ""
            cost = f"Transfers between stages cost {self.figure(self.cost_ns)}"
            return f"{cost}: {waits[0].lower()}{waits[1:]}{rest}{most}."
        what = "transfers between stages" if self.kind == "pp" else collectives_of(self.kind)
        return f"{self.waits(f'other {what}' if self.has_late else what)}{most}."


def find_exposed(run: RunSums) -> Iterator[Exposed]:
    """Yields a sentence on each kind of communication that compute waits for and that is worth saying."""
    if not run.simulation.parameters.comm_scale:
        # Free collectives still take the time to start them.
        return
    parts = _find_parts(run)
    for kind in EXPOSED_KINDS:
        if not run.is_worth_saying(parts[kind]):
            continue
        account = ACCOUNTS.index(f"exposed {kind}")
        late = [sum(kinds.get(kind, {}).values()) for kinds in run.late]
        of_class = [
            accounts.total_ns[account] - less for accounts, less in zip(run.accounts, late, strict=True)
        ]
        cost_ns, is_standing = _cost_of_transfers(run, parts[kind]) if kind == "pp" else (None, False)
        yield Exposed(
            step_ns=run.step_ns,
            ns=parts[kind],
            cause="network",
            lost_ns=max(cost_ns or 0, _lost_ns(run, kind)),
            exposed_ns=parts[kind],
            least_ns=min(of_class),
            most_ns=max(of_class),
            computes=run.computes,
            kind=kind,
            has_late=parts[kind] < run.mean_ns[f"exposed {kind}"],
            most=_find_most_waited(run, kind, of_class),
            cost_ns=cost_ns,
            is_standing=is_standing,
        )


def _cost_of_transfers(run: RunSums, ns: int) -> tuple[int | None, bool]:
    """Returns the cost of transfers between stages, and whether bubble and idle time explain the rest.

    ns: how long ranks wait for them. (None, False) where the cost is not much more than that.
    """
    scales = run.simulation.parameters.time_scale
    free = run.results.variants.run(time_scale=(*scales, "stream pp=0"))
    cost_ns = 0 if free is None else run.step_ns - free.step_time_ns
    if free is None or cost_ns < _MUCH_MORE * ns:
        return None, False
    then = means(free.trace.categories, zip(accounts_of(free.trace), free.trace.ranks, strict=True))
    stood_ns = sum(run.mean_ns[name] - then[name] for name in ("bubble", "idle"))
    return cost_ns, _explains(stood_ns, cost_ns - ns)


def _kind_text(kind: str) -> str:
    """Returns a kind of communication, to stand behind its share: `tp`, `collectives of all ranks`."""
    return collectives_of(kind) if kind == "all" else kind


def _find_most_waited(run: RunSums, kind: str, of_class: Sequence[int]) -> MostWaited | None:
    """Returns the layers that are waited for longest, without late gradients. of_class: the wait of each
    class.

    Where there is one layer, it returns the rows that are most of the wait.
    """
    longest_class = max(range(len(of_class)), key=lambda n: (of_class[n], -n))
    name_of: Callable[[str], str] = base_name
    waits = _sum_by_row(run, longest_class, kind, name_of)
    if len(waits) == 1:
        of_rows = _sum_by_row(run, longest_class, kind, str)
        if find_most_rows({name: wait.ns for name, wait in of_rows.items()}):
            waits, name_of = of_rows, str
    longest = largest_keys({name: wait.ns for name, wait in waits.items()})
    if not longest:
        return None
    who = None
    # Where waits differ by a twentieth at most, no ranks are named.
    if 20 * (max(of_class) - min(of_class)) > max(of_class):
        as_long = find_equal(of_class, of_class[longest_class])
        most = [waits[name] for name in longest]
        same = [
            row
            for row in as_long
            if [_sum_by_row(run, row, kind, name_of).get(name) for name in longest] == most
        ]
        who = name_ranks(run, same)
    how = share_word(sum(waits[name].ns for name in longest), of_class[longest_class])
    if how != "most":
        how = share_word(
            run.mean_of_ranks_ns(_sum_by_class(run, kind, name_of, longest)), run.mean_of_ranks_ns(of_class)
        )
    megatron = parameters_sent(run.simulation.workload) if "layernorm" in longest else ""
    return MostWaited({name: waits[name] for name in longest}, how, who, megatron)


def _sum_by_class(run: RunSums, kind: str, name_of: Callable[[str], str], names: list[str]) -> list[int]:
    """Returns how long each class waits for rows of these names, ns."""
    row_names, first = {*names}, run.simulation.timeline.first_equal_class
    waits_by_class = {class_id: _sum_by_row(run, class_id, kind, name_of) for class_id in set(first)}
    return [
        sum(wait.ns for name, wait in waits_by_class[class_id].items() if name in row_names)
        for class_id in first
    ]


def _sum_by_row(run: RunSums, class_id: int, kind: str, name_of: Callable[[str], str]) -> dict[str, RowWait]:
    """Returns how long a class waits for a kind of communication, by `name_of` of the name of the row.

    Late gradients are left out.
    """
    simulation = run.simulation
    program, names = simulation.program, simulation.workload.name
    accounts, late = run.accounts[class_id], run.late[class_id].get(kind, {})
    account = ACCOUNTS.index(f"exposed {kind}")
    waits: dict[str, RowWait] = {}
    for segment, segment_account in enumerate(accounts.account):
        if segment_account != account:
            continue
        of, op = simulation.trace.span_of(class_id, accounts.op[segment])
        ops = simulation.timeline.stage_program(of).ops
        if ops.row[op] < 0 or op in late:
            continue
        cost = program.costs[ops.cost[op]]
        collective = cell_name(cost.collective if isinstance(cost, CollectiveCost) else None)
        wait = waits.setdefault(name_of(names[ops.row[op]]), RowWait(0, [], []))
        wait.ns += accounts.edge[segment + 1] - accounts.edge[segment]
        phase = _PHASE_WORDS[PHASES[ops.phase[op]]]
        # The gathers at the end of a step are of parameters that the optimizer has updated.
        if ops.phase[op] == WG and collective == _GATHERS and ops.row[op] in program.structure.prologue:
            phase = "parameter"
        if phase not in wait.phases:
            wait.phases.append(phase)
        if collective not in wait.collectives:
            wait.collectives.append(collective)
    return waits


class Whom(NamedTuple):
    """The ranks that a figure of late gradients is of."""

    least_ns: int
    """The least of the ranks whose figure is about the largest."""
    is_nearly: bool = False
    """Whether some other ranks have a little less."""
    who: Who | None = None
    """The ranks with about the largest figure, where the others have much less; else None."""
    usual_ns: int | None = None
    """The figure of the ranks in the middle; None where there is no usual one."""
    is_rest: bool = False
    """Whether the ranks in the middle are all others; otherwise they are most of all ranks."""
    is_slow: bool = False
    """Whether a slow link holds the ranks of `who` up."""


class Left(NamedTuple):
    """What a flag leaves late, and why it saves no more."""

    ns: int
    """The late time that remains."""
    who: Who | None
    """The ranks that it is of; None where no others have more."""
    slower_ns: int = 0
    """How much longer compute takes while reductions overlap it; 0 where that does not explain the saving."""
    later_ns: int = 0
    """How much later the last backward ends; 0 where that does not explain the saving."""


class LateGradients(Weighed, frozen=True):
    """The gradient reductions at the end of the step that nothing hides; `ns` is of the ranks
    that have most.
    """

    rule = "late-gradients"

    count: int
    """How many reductions these are."""
    collective: str
    """The collective of the longest one."""
    row: str
    """The row of the longest one."""
    kind: str
    """The group of the longest one."""
    bytes: int
    """The bytes of the longest one."""
    after_ns: int
    """How long the longest one takes after the last backward."""
    lasting_ns: int
    """How long the longest one takes in all."""
    equal: int
    """How many others are as long."""
    is_all_after: bool
    """Whether no part of any overlaps the backward."""
    is_split: bool
    """Whether it is the last split of a reduction."""
    after_optimizer: bool
    """Whether they run after the optimizer, which no trainer does."""
    whom: Whom
    """The ranks that the figure is of."""
    flags: str
    """The flags that would hide them; "" where nothing shortens the step so."""
    hidden_step_ns: int
    """The step with these flags."""
    left: Left | None
    """What remains late then, and why; None where most of it is saved."""

    @property
    def text(self) -> str:
        text = f"{self._which()} after the last backward"
        if self.after_optimizer:
            # Without the reason the order on the path looks like a fault.
            text += " and, as SimAI runs the rows, after the optimizer"
        text += f": nothing hides {self._on_whom()}"
        if self.flags:
            assumed = "in pieces and assumed as fast beside compute as alone"
            text += f"; with {self.flags}, {assumed}, the step would be {self.change(self.hidden_step_ns)}"
        return f"{text}{'' if self.left is None else self._why_no_more(self.left)}."

    def _which(self) -> str:
        collective = f"{self.collective} of {printable(self.row, 32)}"
        what = f"{'all ranks' if self.kind == 'all' else self.kind}, {byte_size(self.bytes)}"
        # A reduction of which a part overlaps the backward does not come after it: it ends there.
        if self.count == 1:
            # With --overlap-grad-reduce the other splits have been sent: the sentence must not say that none
            # was.
            whose = "The last piece of the gradient" if self.is_split else "The gradient"
            return f"{whose} {collective} ({what}) {'comes' if self.is_all_after else 'ends'}"
        # The first part of the longest one may overlap the backward.
        after, whole = duration(self.after_ns), duration(self.lasting_ns)
        time = after if after == whole else f"{after} of {whole}"
        longest = f"the {collective} longest ({what}, {time})"
        if self.equal:
            longest = f"longest of them the {collective} and {self.equal} more ({what}, {time} each)"
        return f"{self.count} gradient collectives, {longest}, {'come' if self.is_all_after else 'end'}"

    def _on_whom(self) -> str:
        """Returns `900.4 ms (5.7 %) on ranks 5, 13, behind a slow link, and 228.3 ms on the others`.

        It is `up to` the figure where other ranks have nearly as much.
        """
        whom = self.whom
        is_up_to = whom.is_nearly or duration(whom.least_ns) != duration(self.ns)
        figure = f"{'up to ' if is_up_to else ''}{self.figure(self.ns)}"
        if whom.who is None:
            return figure
        usual = "less on the others"
        if whom.usual_ns is not None:
            usual = f"{duration(whom.usual_ns)} on {'the others' if whom.is_rest else 'most'}"
        slow = ", behind a slow link," if whom.is_slow else ""
        return f"{figure} on {whom.who.inside}{slow} and {usual}"

    def _why_no_more(self, left: Left) -> str:
        """Returns `, since 4.553 ms would still come after the last backward`."""
        after = f"{duration(left.ns)} would still come after the last backward"
        after += "" if left.who is None else f" of {left.who.inside}"
        if left.later_ns:
            return f"; {after}, which would end {duration(left.later_ns)} later"
        slower = (
            f", and compute beside them takes {duration(left.slower_ns)} longer" if left.slower_ns else ""
        )
        return f", since {after}{slower}"


def find_late_gradients(run: RunSums) -> Iterator[LateGradients]:
    """Yields a sentence on gradient reductions that end the step.

    It states no saving by overlap where compute is not modelled: they would overlap other communication.
    """
    sums = [sum(sum(ops.values()) for ops in kinds.values()) for kinds in run.late]
    if not run.is_worth_saying(run.mean_of_ranks_ns(sums), 0.005):
        return
    simulation = run.simulation
    # Of the ranks with about the most those that end last: the step waits for their reductions.
    finish = simulation.timeline.times.finish
    most = max(_with_most(sums), key=lambda class_id: (finish[class_id], sums[class_id], -class_id))
    ops, start, end = simulation.timeline.columns(most)
    last = find_last_backward_ns(simulation, most, run.accounts[most])
    # All the time of a reduction then: accounts give overlapping time to only one of two.
    reductions = [
        (end[op] - max(start[op], last), kind, op) for kind, late in run.late[most].items() for op in late
    ]
    ns, kind, op = max(reductions, key=lambda reduction: (reduction[0], -reduction[2]))
    row, cost = ops.row[op], simulation.program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    can_hide = row in simulation.program.structure.prologue and simulation.workload.has_compute
    changes = _hiding(simulation) if can_hide else {}
    other = run.step_with(**changes) if changes else None
    # Flags that make the step longer are not named.
    saved_ns = max(run.step_ns - other, 0) if other is not None else 0
    has_splits = simulation.parameters.overlap_grad_reduce
    yield LateGradients(
        step_ns=run.step_ns,
        ns=max(sums),
        cause="late gradients",
        lost_ns=_lost_ns(run, _LATE),
        saved_ns=saved_ns,
        count=len(reductions),
        collective=NAMES[str(simulation.workload.wg.collective[row])],
        row=base_name(simulation.workload.name[row]),
        kind=kind,
        bytes=cost.bytes,
        after_ns=ns,
        lasting_ns=end[op] - start[op],
        equal=sum(other == ns for other, _, _ in reductions) - 1,
        # A reduction that queues there takes longer than it lasts.
        is_all_after=all(duration(ns) == duration(end[op] - start[op]) for ns, _, op in reductions),
        is_split=has_splits and cost.bytes < simulation.workload.wg.bytes[row],
        after_optimizer=not simulation.program.has_pipeline_schedule
        and runs_optimizer_first(simulation.workload),
        whom=_find_affected(run, sums, most),
        flags=Change(changes).flags if saved_ns else "",
        hidden_step_ns=run.step_ns - saved_ns,
        left=_find_remainder(run, sums, saved_ns, changes) if saved_ns else None,
    )


def _with_most(sums: Sequence[int]) -> list[int]:
    """Returns the classes with about the most late time."""
    return largest_keys(dict(enumerate(sums)))


def _find_remainder(run: RunSums, sums: Sequence[int], saved_ns: int, changes: dict[str, Any]) -> Left | None:
    """Returns why a flag saves less than is late on the ranks that end the step.

    None where it saves most of that time, and where what remains late does not explain the difference.
    """
    simulation = run.simulation
    finish = simulation.timeline.times.finish
    class_id = max(range(len(sums)), key=lambda class_id: (finish[class_id], sums[class_id], -class_id))
    other = _sum_late_with(run, class_id, **changes) if saved_ns < _MOST_GAIN * sums[class_id] else None
    if other is None or other.ns < (1 - _MOST_GAIN) * sums[class_id]:
        return None
    hidden_ns = sums[class_id] - other.ns
    later_ns = other.last_backward_ns - find_last_backward_ns(simulation, class_id, run.accounts[class_id])
    who = None if duration(sums[class_id]) == duration(max(sums)) else name_stages(run, [class_id])
    if _explains(hidden_ns, saved_ns):
        return Left(other.ns, who)
    # Rows of a model count the compute that NCCL takes.
    slower_ns = other.compute_ns - sum(run.accounts[class_id].compute_ns().values())
    if slower_ns > 0 and _explains(hidden_ns - slower_ns, saved_ns):
        return Left(other.ns, who, slower_ns=slower_ns)
    # Reductions delay the collectives that compute waits for where they share ports.
    if later_ns > 0 and _explains(hidden_ns - later_ns, saved_ns):
        return Left(other.ns, who, later_ns=later_ns)
    return None


def _explains(ns: int, saved_ns: int) -> bool:
    return abs(ns - saved_ns) <= _EXPLAINS * saved_ns


def _hiding(simulation: Simulation) -> dict[str, Any]:
    """Returns the parameters with which the same step hides gradient reductions.

    None where it hides them already, or where no schedule can. Layer-loop has no overlap.
    """
    if simulation.program.pipelined:
        return {} if simulation.parameters.overlap_grad_reduce else {"overlap_grad_reduce": True}
    return {"schedule": "1f1b", "overlap_grad_reduce": True} if simulation.can_be_scheduled else {}


class _LateSums(Struct, frozen=True):
    """The late gradient reductions of a rank, and what else changes with them."""

    ns: int
    """Their time after the last backward."""
    last_backward_ns: int
    """When the last backward ends."""
    compute_ns: int
    """The compute of the rank in the step."""


def _sum_late_with(run: RunSums, class_id: int, **changes: Any) -> _LateSums | None:
    """Returns the late reductions of the ranks of a class in the run with these parameters.

    None where that run would take long.
    """
    other = run.results.variants.run(**changes)
    if other is None:
        return None
    again = other.timeline.folding.class_of(run.classes[class_id].ranks.first)
    accounts = track_accounts(other.trace, again)
    reductions = sum_late_reductions(other, again, accounts)
    ns = sum(sum(ops.values()) for ops in reductions.values())
    return _LateSums(ns, find_last_backward_ns(other, again, accounts), sum(accounts.compute_ns().values()))


def _find_affected(run: RunSums, sums: Sequence[int], most: int) -> Whom:
    """Returns the ranks with about the most late time, `most` among them, and the usual figure where it is
    much less.
    """
    words, same = [duration(ns) for ns in sums], _with_most(sums)
    least_ns = min(sums[class_id] for class_id in same)
    ranks = [len(rank_class.ranks) for rank_class in run.classes]
    # How many of the other ranks have each printed figure.
    ranks_by_text: dict[str, int] = {}
    for class_id, (word, count) in enumerate(zip(words, ranks, strict=True)):
        if class_id not in same:
            ranks_by_text[word] = ranks_by_text.get(word, 0) + count
    if not ranks_by_text:
        return Whom(least_ns)
    # The median rank has the usual figure.
    by_size = sorted(range(len(sums)), key=lambda class_id: sums[class_id])
    up_to = accumulate(ranks[class_id] for class_id in by_size)
    middle = next(class_id for class_id, count in zip(by_size, up_to, strict=True) if 2 * count >= sum(ranks))
    if sums[middle] > _NEARLY * max(sums):
        return Whom(least_ns, is_nearly=True)
    links = run.simulation.parameters.slow_link
    without = _sum_late_with(run, most, slow_link=()) if links else None
    is_slow = without is not None and without.ns <= _NEARLY * sums[most]
    usual_ns = None
    if len(ranks_by_text) == 1:
        usual_ns = next(ns for class_id, ns in enumerate(sums) if class_id not in same)
    elif 2 * ranks_by_text.get(words[middle], 0) > sum(ranks):
        usual_ns = sums[middle]
    who = name_stages(run, same)
    return Whom(least_ns, who=who, usual_ns=usual_ns, is_rest=len(ranks_by_text) == 1, is_slow=is_slow)


class Unsent(NamedTuple):
    """Rows that send nothing backward."""

    rows: int
    """How many there are."""
    names: tuple[str, ...]
    """Their names."""
    sent_ns: int | None
    """The step if they sent it; None where it is not known."""


class FreeCommunication(Weighed, frozen=True):
    """The step if all communication were free, `ns`."""

    rule = "free-communication"

    is_cause: bool
    """Whether the network is the cause."""
    waits_less: bool
    """Whether it saves more than any rank waits for communication."""
    unsent: Unsent | None
    """Rows whose missing communication the step cannot show; None without any."""

    @property
    def text(self) -> str:
        if self.is_cause:
            less = ", as ranks wait less for each other, too" if self.waits_less else ""
            return f"With all communication free the step would be {self.change(self.ns)}{less}."
        text = f"The network is not the cause: without it the step is {self.change(self.ns)}"
        return f"{text}{'' if self.unsent is None else self._unsent_text(self.unsent)}."

    def _unsent_text(self, unsent: Unsent) -> str:
        """Returns a clause for two rows of a small screen: what speaks against a verdict is not cut off.

        Its cost comes before the names, which a note has, too.
        """
        rows = f"{plural(unsent.rows, 'row')} of the file"
        it, send = ("it", "sends") if unsent.rows == 1 else ("they", "send")
        if unsent.sent_ns is not None:
            change = change_percent(self.step_ns, unsent.sent_ns)
            return f", but {rows} {send} nothing backward (if {it} did: {duration(unsent.sent_ns)}, {change})"
        names = [printable(name, 32) for name in unsent.names]
        names_text = ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"
        return f", but {rows} ({names_text}) {send} nothing backward"


def find_free_communication(run: RunSums) -> Iterator[FreeCommunication]:
    """Yields a sentence on a run that computes where the step without communication is known."""
    other, workload = run.without_network_ns, run.simulation.workload
    if other is None or not workload.has_compute:
        return
    rows = backward_unsent(workload)
    names = tuple(dict.fromkeys(base_name(workload.name[row]) for row in rows))
    yield FreeCommunication(
        step_ns=run.step_ns, ns=other, is_cause=run.is_worth_saying(run.network_ns, _CAUSE),
        # More than any rank waits for communication: the rest is waiting for each other meanwhile.
        waits_less=run.network_ns > _MUCH_MORE * max(account.all_exposed_ns for account in run.accounts),
        unsent=Unsent(len(rows), names, run.results.with_backward_sends_ns) if rows else None,
    )  # fmt: skip


class KindLoad(NamedTuple):
    """How long a kind of communication keeps a port busy, and its bytes."""

    kind: str
    busy_ns: int
    bytes: int


class BusyPort(Weighed, frozen=True):
    """The dimension whose ports are busy longest; `ns` is how long."""

    rule = "busy-port"

    dimension_id: int
    """The number of the dimension."""
    dimension: Dimension
    who: Who
    """The ranks whose ports are so busy."""
    kinds: tuple[KindLoad, ...]
    """The kinds of communication that keep them busy longest."""

    @property
    def text(self) -> str:
        how = share_word(sum(load.busy_ns for load in self.kinds), self.ns)
        kind_texts = [_kind_text(load.kind) for load in self.kinds]
        whose = join_with_figures(kind_texts, [byte_size(load.bytes) for load in self.kinds])
        text = (
            f"The ports of dimension {self.dimension_id} ({self.dimension.text()}) are busy "
            f"{percent(self.ns, self.step_ns)} % of the step on {self.who.inside}, {how} with {whose}"
        )
        if self.ns > self.step_ns:
            text += ": more than they can carry, which only --network shared takes into account"
        return f"{text}."


def find_busy_port(run: RunSums) -> Iterator[BusyPort]:
    """Yields a sentence on ports that are busy half of the step, or with more than they can carry."""
    uses = run.results.dimensions
    use = max(uses, key=lambda use: (use.busy_ns, -use.index), default=None)
    if use is None or not run.is_worth_saying(use.busy_ns, 0.5):
        return
    kinds = largest_keys({kind: load.busy_ns for kind, load in use.by_kind.items()})
    every = run.results.class_uses
    loads = [{key: load for key, load in class_use.items() if key[0] == use.index} for class_use in every]
    as_busy = [class_id for class_id, load in enumerate(loads) if load == loads[use.rank_class]]
    yield BusyPort(
        step_ns=run.step_ns, ns=use.busy_ns, dimension_id=use.index,
        dimension=run.simulation.cluster.dims[use.index], who=name_ranks(run, as_busy),
        kinds=tuple(KindLoad(kind, use.by_kind[kind].busy_ns, use.by_kind[kind].bytes) for kind in kinds),
    )  # fmt: skip
