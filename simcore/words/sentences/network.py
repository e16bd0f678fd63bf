"""What communication costs: by kind, at the end of the step, all of it, and at the ports."""

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
# Beside kinds of communication, the part of all of them that is gradients after the last backward.
_LATE = "late"
# The network is not the cause where the step would be shorter by less than this without it.
_CAUSE = 0.1
# Where a flag gains less than this share of what is late, what it leaves there is said.
_MOST_GAIN = 0.9
# What communication costs is more than what ranks wait for it from so many times that on.
_MUCH_MORE = 1.25
# What is hidden says what is saved where it is as much to within this share.
_EXPLAINS = 0.1
# Of ranks that have less than this share of what others have late the usual figure is said too.
_NEARLY = 0.9
_GATHERS = cell_name("ALLGATHER")


class Waiting(Weighed, frozen=True):
    """What ranks wait for communication, the mean of all; the least and the most of one.

    computes: whether there is compute that waits.
    """

    exposed_ns: int
    least_ns: int
    most_ns: int
    computes: bool

    def waits(self, what: str) -> str:
        """`Compute waits 1.200 s (8.1 %) for tp collectives on the mean rank`; `The mean rank waits ...`
        where there is no compute that could. `each rank` where a figure is the same of all as it is written.
        """
        rank = "each rank" if duration(self.least_ns) == duration(self.most_ns) else "the mean rank"
        waits = f"waits {self.figure(self.exposed_ns)} for {what}"
        return f"Compute {waits} on {rank}" if self.computes else f"{rank.capitalize()} {waits}"


class Network(Waiting, frozen=True):
    """All communication that ranks wait for, in parts: by kind of communication, without the gradients after
    the last backward, which are of the kinds `late`.
    """

    rule = "network"

    parts: dict[str, int]
    late: tuple[str, ...]

    @property
    def text(self) -> str:
        # What is late is of its kind, too: the rest is the other part of that.
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
    """Speaks where the communication that compute waits for has several parts worth saying."""
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
    """What is exposed on each rank, the mean of all, ns: by kind, gradients at the end told apart."""
    late = {
        kind: run.mean_of_ranks_ns(sum(of_class.get(kind, {}).values()) for of_class in run.late)
        for kind in EXPOSED_KINDS
    }
    parts = {kind: run.mean_ns[f"exposed {kind}"] - late[kind] for kind in EXPOSED_KINDS}
    return {**parts, _LATE: sum(late.values())}


def _has_several(run: RunSums, parts: dict[str, int]) -> bool:
    return sum(run.is_worth_saying(ns) for ns in parts.values()) > 1


def _lost_ns(run: RunSums, part: str) -> int:
    """What a part of all communication costs: all that the network does where it alone is worth saying."""
    parts = _find_parts(run)
    alone = not _has_several(run, parts) and parts[part] == max(parts.values())
    return run.network_ns if alone else min(parts[part], run.network_ns)


class RowWait(Struct):
    """What ranks wait for the rows of a name, ns; in which phases, in words, and for which collectives."""

    ns: int
    phases: list[str]
    collectives: list[str]


class MostWaited(Struct, frozen=True):
    """The layers that are waited for longest, or the rows that are most of the only one, by name. how: what
    part of the wait they are, in a word. who: those that wait longest, None where nobody does.

    megatron: what Megatron sends of the gradients of all parameters, in words, where a row of the file sends
    some that no trainer does; else "".
    """

    rows: dict[str, RowWait]
    how: str
    who: Who | None
    megatron: str

    def words(self, stated_ns: int) -> str:
        """`, most for mlp_row (forward and input gradient all-reduce, 1.200 s)`. said_ns: the figure that the
        sentence has already.
        """
        names, waits = [printable(name, 32) for name in self.rows], list(self.rows.values())
        figures, who = [duration(wait.ns) for wait in waits], ""
        if self.who is not None:
            who = f" on {self.who.inside}"
        begin = f", {self.how} for "
        # Who blames a row has to know that no trainer has it.
        if len(names) > 1:
            megatron_text = (
                f"; layernorm sends 2 B of each parameter, Megatron {self.megatron}" if self.megatron else ""
            )
            return f"{begin}{join_with_figures(names, figures, who)}{megatron_text}"
        what = " and ".join(waits[0].collectives)
        # In the cell of an input gradient: of that it was asked how it is of all parameters.
        words = (
            f"{what} of 2 B of each parameter" if self.megatron else f"{' and '.join(waits[0].phases)} {what}"
        )
        words += "" if not who and figures[0] == duration(stated_ns) else f", {figures[0]}{who}"
        return f"{begin}{names[0]} ({words}{f'; Megatron sends {self.megatron}' if self.megatron else ''})"


class Exposed(Waiting, frozen=True):
    """A kind of communication that compute waits for. has_late: whether what comes after the last backward is
    of that kind, too, which has a sentence of its own.

    most: the rows that are waited for most, None where none is. cost_ns: what transfers between stages cost
    the step, by a run in which they are free, where that is much more than ranks wait for them, else None:
    stages wait for each other longer, too; is_standing: whether that is the rest of it.
    """

    rule = "exposed"

    kind: str
    has_late: bool
    most: MostWaited | None
    cost_ns: int | None
    is_standing: bool

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
    """Speaks of each kind of communication that compute waits for, as far as it is worth saying."""
    if not run.simulation.parameters.comm_scale:
        # What is left of free collectives is what a process takes to begin them.
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
    """What transfers between stages, for which ranks wait `ns`, cost the step where that is much more, and
    whether the rest is bubble and idle time; else (None, False).
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
    """A kind of communication behind its share: `tp`, `collectives of all ranks`."""
    return collectives_of(kind) if kind == "all" else kind


def _find_most_waited(run: RunSums, kind: str, of_class: Sequence[int]) -> MostWaited | None:
    """The layers that are waited for longest, by the rows that are most of it where it is one layer. Without
    what is late. of_class: the wait of each class.
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
    # Where ranks differ by a twentieth at most, who waits most is nobody's fault.
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
    """What each class waits for rows of these names."""
    first = run.simulation.timeline.first_equal_class
    waits_by_class = {class_id: _sum_by_row(run, class_id, kind, name_of) for class_id in set(first)}
    return [
        sum(wait.ns for name, wait in waits_by_class[class_id].items() if name in names) for class_id in first
    ]


def _sum_by_row(run: RunSums, class_id: int, kind: str, name_of: Callable[[str], str]) -> dict[str, RowWait]:
    """What a class waits for a kind of communication that is not late, by what `name_of` makes of the name of
    the row.
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
        # What is gathered at the end of a step is what the optimizer has made of the gradients.
        if ops.phase[op] == WG and collective == _GATHERS and ops.row[op] in program.structure.prologue:
            phase = "parameter"
        if phase not in wait.phases:
            wait.phases.append(phase)
        if collective not in wait.collectives:
            wait.collectives.append(collective)
    return waits


class Whom(NamedTuple):
    """Of which ranks what is late is said. least_ns: of those that have as good as most, the least.

    who: those, where the others have much less, with the usual figure, None where there is none: that of
    the ranks in the middle, which `is_rest` are all others, else most of all. is_slow: whether it is a slow
    link that holds them up. is_nearly: whether some have a little less.
    """

    least_ns: int
    is_nearly: bool = False
    who: Who | None = None
    usual_ns: int | None = None
    is_rest: bool = False
    is_slow: bool = False


class Left(NamedTuple):
    """What a flag leaves late, of whom where others have more. slower_ns: what compute takes longer beside
    what is hidden; later_ns: what the last backward ends later; 0 where the one does not explain the saving.
    """

    ns: int
    who: Who | None
    slower_ns: int = 0
    later_ns: int = 0


class LateGradients(Weighed, frozen=True):
    """The gradient reductions at the end that nothing hides, ns of the ranks that have most of it. count: of
    these; of the longest one the row, the group and the bytes, how long it takes after the last backward and
    in all, and how many are as long.

    comes: whether no part of any lies beside the backward. is_piece: whether it is the last piece of one.
    after_optimizer: whether they run after the optimizer, which no trainer does. flags: what would hide them,
    "" where nothing shortens the step so; then hidden_step_ns is the step, and `left` why it gains no more.
    """

    rule = "late-gradients"

    count: int
    collective: str
    row: str
    kind: str
    bytes: int
    after_ns: int
    lasting_ns: int
    equal: int
    is_all_after: bool
    is_split: bool
    after_optimizer: bool
    whom: Whom
    flags: str
    hidden_step_ns: int
    left: Left | None

    @property
    def text(self) -> str:
        text = f"{self._which()} after the last backward"
        if self.after_optimizer:
            # Who sees it in the path would take it for a fault.
            text += " and, as SimAI runs the rows, after the optimizer"
        text += f": nothing hides {self._on_whom()}"
        if self.flags:
            assumed = "in pieces and assumed as fast beside compute as alone"
            text += f"; with {self.flags}, {assumed}, the step would be {self.change(self.hidden_step_ns)}"
        return f"{text}{'' if self.left is None else self._why_no_more(self.left)}."

    def _which(self) -> str:
        collective = f"{self.collective} of {printable(self.row, 32)}"
        what = f"{'all ranks' if self.kind == 'all' else self.kind}, {byte_size(self.bytes)}"
        # Where a part of it lies beside the backward, it does not come after it: it ends there.
        if self.count == 1:
            # With --overlap-grad-reduce the others have been sent: it read as if nothing was.
            whose = "The last piece of the gradient" if self.is_split else "The gradient"
            return f"{whose} {collective} ({what}) {'comes' if self.is_all_after else 'ends'}"
        # Its first part may lie beside the backward.
        after, whole = duration(self.after_ns), duration(self.lasting_ns)
        time = after if after == whole else f"{after} of {whole}"
        longest = f"the {collective} longest ({what}, {time})"
        if self.equal:
            longest = f"longest of them the {collective} and {self.equal} more ({what}, {time} each)"
        return f"{self.count} gradient collectives, {longest}, {'come' if self.is_all_after else 'end'}"

    def _on_whom(self) -> str:
        """`900.4 ms (5.7 %) on ranks 5, 13, behind a slow link, and 228.3 ms on the others`; `up to` it where
        others have nearly as much.
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
        """`, since 4.553 ms would still come after the last backward`."""
        after = f"{duration(left.ns)} would still come after the last backward"
        after += "" if left.who is None else f" of {left.who.inside}"
        if left.later_ns:
            return f"; {after}, which would end {duration(left.later_ns)} later"
        slower = (
            f", and compute beside them takes {duration(left.slower_ns)} longer" if left.slower_ns else ""
        )
        return f", since {after}{slower}"


def find_late_gradients(run: RunSums) -> Iterator[LateGradients]:
    """Speaks of gradient reductions that end the step. Silent on what an overlap gives where compute is not
    modelled: it would lie beside other communication.
    """
    sums = [sum(sum(ops.values()) for ops in kinds.values()) for kinds in run.late]
    if not run.is_worth_saying(run.mean_of_ranks_ns(sums), 0.005):
        return
    simulation = run.simulation
    # Of ranks that have as good as most those that end last: it is theirs that the step waits for.
    finish = simulation.timeline.times.finish
    most = max(_with_most(sums), key=lambda class_id: (finish[class_id], sums[class_id], -class_id))
    ops, start, end = simulation.timeline.columns(most)
    last = find_last_backward_ns(simulation, most, run.accounts[most])
    # All that it takes then: the accounts give what runs beside another one to one of the two.
    reductions = [
        (end[op] - max(start[op], last), kind, op) for kind, late in run.late[most].items() for op in late
    ]
    ns, kind, op = max(reductions, key=lambda reduction: (reduction[0], -reduction[2]))
    row, cost = ops.row[op], simulation.program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    can_hide = row in simulation.program.structure.prologue and simulation.workload.has_compute
    changes = _hiding(simulation) if can_hide else {}
    other = run.step_with(**changes) if changes else None
    # What makes the step longer is no advice.
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
        # What waits for its turn there takes longer than it lasts.
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
    """The classes that have as good as most late."""
    return largest_keys(dict(enumerate(sums)))


def _find_remainder(run: RunSums, sums: Sequence[int], saved_ns: int, changes: dict[str, Any]) -> Left | None:
    """Why a flag saves less than is late on the ranks that end the step; None where it saves most of it, and
    where what it leaves there is not why.
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
    # Rows of a model count what NCCL takes of compute.
    slower_ns = other.compute_ns - sum(run.accounts[class_id].compute_ns().values())
    if slower_ns > 0 and _explains(hidden_ns - slower_ns, saved_ns):
        return Left(other.ns, who, slower_ns=slower_ns)
    # Reductions that share ports with what compute waits for hold it up.
    if later_ns > 0 and _explains(hidden_ns - later_ns, saved_ns):
        return Left(other.ns, who, later_ns=later_ns)
    return None


def _explains(ns: int, saved_ns: int) -> bool:
    return abs(ns - saved_ns) <= _EXPLAINS * saved_ns


def _hiding(simulation: Simulation) -> dict[str, Any]:
    """The parameters with which the same step hides gradient reductions; none where they do already, or no
    schedule can. Layer-loop has no overlap.
    """
    if simulation.program.pipelined:
        return {} if simulation.parameters.overlap_grad_reduce else {"overlap_grad_reduce": True}
    return {"schedule": "1f1b", "overlap_grad_reduce": True} if simulation.can_be_scheduled else {}


class _LateSums(Struct, frozen=True):
    """What of the gradient reductions ranks have after their last backward, and when that ends.

    compute_ns: of such a rank in the step.
    """

    ns: int
    last_backward_ns: int
    compute_ns: int


def _sum_late_with(run: RunSums, class_id: int, **changes: Any) -> _LateSums | None:
    """What the ranks of a class have late in the run with these parameters; None where that would take long
    to know.
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
    """Those that have as good as most late, `most` among them, and what the others have where that is much
    less.
    """
    words, same = [duration(ns) for ns in sums], _with_most(sums)
    least_ns = min(sums[class_id] for class_id in same)
    ranks = [len(rank_class.ranks) for rank_class in run.classes]
    # By what is written down, how many of the other ranks have it.
    ranks_by_text: dict[str, int] = {}
    for class_id, (word, count) in enumerate(zip(words, ranks, strict=True)):
        if class_id not in same:
            ranks_by_text[word] = ranks_by_text.get(word, 0) + count
    if not ranks_by_text:
        return Whom(least_ns)
    # The rank in the middle has the usual figure.
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
    """Rows that send nothing backward, so many, by their names. sent_ns: the step if they did, once known."""

    rows: int
    names: tuple[str, ...]
    sent_ns: int | None


class FreeCommunication(Weighed, frozen=True):
    """What the step would be if all communication were free, ns, and whether the network is the cause.

    waits_less: whether that is shorter by more than any rank waits for communication. unsent: what is not
    sent and cannot be seen to cost time.
    """

    rule = "free-communication"

    is_cause: bool
    waits_less: bool
    unsent: Unsent | None

    @property
    def text(self) -> str:
        if self.is_cause:
            less = ", as ranks wait less for each other, too" if self.waits_less else ""
            return f"With all communication free the step would be {self.change(self.ns)}{less}."
        text = f"The network is not the cause: without it the step is {self.change(self.ns)}"
        return f"{text}{'' if self.unsent is None else self._unsent_text(self.unsent)}."

    def _unsent_text(self, unsent: Unsent) -> str:
        """In two rows of a small screen: what speaks against a verdict is not cut off. What it is worth comes
        before whose it is, which a note has too.
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
    """Speaks of a run that computes where that step is known."""
    other, workload = run.without_network_ns, run.simulation.workload
    if other is None or not workload.has_compute:
        return
    rows = backward_unsent(workload)
    names = tuple(dict.fromkeys(base_name(workload.name[row]) for row in rows))
    yield FreeCommunication(
        step_ns=run.step_ns, ns=other, is_cause=run.is_worth_saying(run.network_ns, _CAUSE),
        # More than any rank waits for communication: the rest is what they wait for each other meanwhile.
        waits_less=run.network_ns > _MUCH_MORE * max(account.all_exposed_ns for account in run.accounts),
        unsent=Unsent(len(rows), names, run.results.with_backward_sends_ns) if rows else None,
    )  # fmt: skip


class KindLoad(NamedTuple):
    """How long a kind of communication keeps a port busy, and with how much."""

    kind: str
    busy_ns: int
    bytes: int


class BusyPort(Weighed, frozen=True):
    """The dimension, with its number, whose ports are busy longest; on whom, and with which kinds most."""

    rule = "busy-port"

    dimension_id: int
    dimension: Dimension
    who: Who
    kinds: tuple[KindLoad, ...]

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
    """Speaks of ports that are busy half of the step, or with more than they can carry."""
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
