"""The sums over a simulated run that its rules use, and the weights of their sentences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simcore.analysis.equal_ranks import ranks_of
from simcore.folding import RankClass
from simcore.program.ops import COMPUTE, WG, CollectiveCost
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.sources.simulated import FIRST_EXPOSED, WAIT
from simcore.trace.accounts import Accounts
from simcore.trace.run import mean_busy_ns, mean_ns, mean_of_ranks
from simcore.trace.track import find_whole_stages
from simcore.units import LISTED, change_percent, duration, largest_keys, percent
from simcore.words.rules import Sentence
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.simulation_figures import SimulationFigures


# Groups over which gradients are reduced and parameters gathered.
GRADIENT_KINDS = ("dp", "dp_ep", "dp_shard", "dp_replicate", "all")
_REDUCES = ("ALLREDUCE", "REDUCESCATTER")

# Exposed ns of gradient reductions after the last backward, by kind and op.
Late = dict[str, dict[int, int]]


def sum_late_reductions(simulation: Simulation, class_id: int, accounts: Accounts) -> Late:
    """Returns the exposed ns of the gradient reductions of a class after its last backward. accounts: those
    of the class.
    """
    ops = simulation.timeline.stage_program(class_id).ops
    costs = simulation.program.costs
    late: Late = {}
    behind = _find_last_backward_end(simulation, class_id, accounts)
    # Without compute nothing is late: micro-benchmarks of collectives have no backward.
    for segment in range(behind, len(accounts.account) if behind else 0):
        op = accounts.op[segment]
        if op < 0 or not FIRST_EXPOSED <= accounts.account[segment] < WAIT or ops.stream[op] == COMPUTE:
            continue
        cost = costs[ops.cost[op]]
        if not isinstance(cost, CollectiveCost) or ops.phase[op] != WG or cost.collective not in _REDUCES:
            continue
        if cost.group in GRADIENT_KINDS:
            of_kind = late.setdefault(cost.group, {})
            of_kind[op] = of_kind.get(op, 0) + accounts.edge[segment + 1] - accounts.edge[segment]
    return late


def find_last_backward_ns(simulation: Simulation, class_id: int, accounts: Accounts) -> int:
    """Returns when the last backward of a class ends, ns. accounts: those of the class."""
    return accounts.edge[_find_last_backward_end(simulation, class_id, accounts)]


def _find_last_backward_end(simulation: Simulation, class_id: int, accounts: Accounts) -> int:
    """Returns the index of the first segment after the last backward."""
    ops = simulation.timeline.stage_program(class_id).ops
    structure = simulation.program.structure
    outside = {*structure.prologue, *structure.tail}
    last = len(accounts.account)
    # Rows of the end of the step compute a little, too, but are no backward.
    while last and (accounts.account[last - 1] > WG or ops.row[accounts.op[last - 1]] in outside):
        last -= 1
    return last


# Figures below this share of the step are left out.
WORTH_SAYING = 0.02
# Compute of ranks is equal where it differs by less than a 500th: a share of the step is stated in tenths of
# a per cent.
_EQUAL_FRACTION = 500


class Weighed(Sentence, frozen=True, kw_only=True):
    """A sentence on a simulated run, and its weight."""

    step_ns: int
    """The step time."""
    ns: int
    """The figure that the sentence is about."""
    cause: str = ""
    """The cause that it names (`network`); "" where it names none."""
    lost_ns: int = 0
    """What the cause costs the step; the largest is the main cause."""
    fault: bool = False
    """Whether it goes before all causes, because something went wrong."""
    saved_ns: int = 0
    """How much shorter the step is with the change that it names."""
    bound_by: str = ""
    """What binds the compute that it is about, where that is known: `memory`."""

    def worth(self, ns: int, share: float = WORTH_SAYING) -> bool:
        """Returns whether `ns` is at least this share of the step."""
        return ns > 0 and ns >= share * self.step_ns

    def figure(self, ns: int) -> str:
        """Returns a time and its share of the step: `6.987 s (47.3 %)`."""
        return f"{duration(ns)} ({percent(ns, self.step_ns)} %)"

    def change(self, step_ns: int) -> str:
        """Returns another step time, and its change from this one: `13.973 s (-5.4 %)`."""
        return f"{duration(step_ns)} ({change_percent(self.step_ns, step_ns)})"


class Who(Struct, frozen=True):
    """The ranks that a sentence names."""

    ranks: RankSet
    stages: RankSet | None = None
    """The stages that have all these ranks and no others or, with `is_most`, the stage that they are most of;
    None where ranks are named.
    """
    is_most: bool = False

    @property
    def words(self) -> str:
        """The ranks in words: `Stage 3`, `Stages 3-5`, `Most of stage 3`, `Rank 37` or `Ranks 0-63`,
        shortened where they are many.
        """
        if self.stages is None:
            text = self.ranks.words()
            many = f"Ranks {text if len(text) <= 40 else text[:37] + '...'}"
            return f"Rank {text}" if len(self.ranks) == 1 else many
        if self.is_most:
            return f"Most of stage {self.stages.text()}"
        return f"Stage{'s' if len(self.stages) > 1 else ''} {self.stages.text()}"

    @property
    def inside(self) -> str:
        """The same words within a sentence."""
        return f"{self.words[0].lower()}{self.words[1:]}"

    @property
    def is_several(self) -> bool:
        """Whether a verb after the words is in the plural."""
        return len(self.ranks if self.stages is None else self.stages) > 1


class RunSums(Struct, frozen=True, dict=True):
    """A run and the sums over it that rules use."""

    results: SimulationFigures

    @property
    def simulation(self) -> Simulation:
        return self.results.simulation

    @property
    def step_ns(self) -> int:
        return self.results.step_time_ns

    @property
    def classes(self) -> tuple[RankClass, ...]:
        return self.simulation.timeline.classes

    @property
    def accounts(self) -> list[Accounts]:
        return self.results.accounts

    @property
    def mean_ns(self) -> dict[str, int]:
        """ns of each account, the mean of all ranks."""
        return mean_ns(self.results)

    @property
    def mean_busy_ns(self) -> int:
        """Compute of the mean rank, ns."""
        return mean_busy_ns(self.results)

    @cached_property
    def stage_busy_ns(self) -> list[int]:
        """Compute of the mean rank of each stage, ns."""
        stages = range(max(rank_class.stage for rank_class in self.classes) + 1)
        sums, ranks = [0 for _ in stages], [0 for _ in stages]
        for rank_class, accounts in zip(self.classes, self.accounts, strict=True):
            sums[rank_class.stage] += accounts.busy_ns * len(rank_class.ranks)
            ranks[rank_class.stage] += len(rank_class.ranks)
        return [round(whole / count) for whole, count in zip(sums, ranks, strict=True)]

    @cached_property
    def computes(self) -> bool:
        """Whether ranks have compute that can wait: placeholders, or less than 1 % of the step, are none."""
        return self.simulation.workload.has_compute and self.is_worth_saying(self.mean_busy_ns, 0.01)

    @cached_property
    def layer_compute_ns(self) -> dict[str, int]:
        """Compute of each layer, its rows of one name together, the mean of all ranks, ns."""
        if self._has_equal_compute:
            # Sums few groups of equal rows: a file may have 100,000 rows.
            return self.results.layer_groups.sum_by_name(self.results.layer_groups.compute_ns)
        return self._compute_by(base_name)

    @cached_property
    def row_compute_ns(self) -> dict[str, int]:
        """Compute of the rows of each full name, the mean of all ranks, ns."""
        return self._compute_by(str)

    @cached_property
    def _has_equal_compute(self) -> bool:
        busy = [account.busy_ns for account in self.accounts]
        return not self.simulation.workload.stages and _EQUAL_FRACTION * (max(busy) - min(busy)) <= max(busy)

    def _compute_by(self, name_of: Callable[[str], str]) -> dict[str, int]:
        """Returns compute of the mean rank, ns, by what `name_of` makes of the name of a row."""
        by_row, count = self._row_compute
        sums: dict[str, int] = {}
        for name, ns in zip(map(name_of, self.simulation.workload.name), by_row, strict=True):
            sums[name] = sums.get(name, 0) + ns
        return {name: ns // count for name, ns in sums.items()}

    @cached_property
    def _row_compute(self) -> tuple[Sequence[int], int]:
        """(compute of each row, ns, of how many ranks together)."""
        if self._has_equal_compute:
            return self.results.layers.table.compute_ns, 1
        # Classes with equal times are summed once.
        ranks = [0 for _ in self.classes]
        for rank_class, first in zip(self.classes, self.simulation.timeline.first_equal_class, strict=True):
            ranks[first] += len(rank_class.ranks)
        by_row = [0] * len(self.simulation.workload)
        for count, spent in zip(ranks, self.results.rows.spent, strict=True):
            if count:
                for row, ns in spent.compute.items():
                    by_row[row] += count * ns
        return by_row, sum(ranks)

    @cached_property
    def has_equal_stages(self) -> bool:
        """Whether a pipeline has several stages and no rank computes over 1 % longer than one of another
        stage.
        """
        if not self.simulation.program.pipelined or self.simulation.layout.pp == 1:
            return False
        busy = [accounts.busy_ns for accounts in self.accounts]
        return 100 * (max(busy) - min(busy)) <= max(busy)

    @cached_property
    def has_same_collectives(self) -> bool:
        """Whether a pipeline has several stages and all send the same bytes in collectives."""
        program = self.simulation.program
        if not program.pipelined or self.simulation.layout.pp == 1:
            return False
        sums: list[dict[tuple[str, str], int]] = []
        for stage in program.stages:
            of_stage: dict[tuple[str, str], int] = {}
            for cost_id in stage.ops.cost:
                cost = program.costs[cost_id]
                if isinstance(cost, CollectiveCost):
                    what = (cost.group, cost.collective)
                    of_stage[what] = of_stage.get(what, 0) + cost.bytes
            sums.append(of_stage)
        return all(of_stage == sums[0] for of_stage in sums)

    @cached_property
    def unbalanced_ns(self) -> int:
        """How much more the busiest stage of a pipeline computes than the mean of all stages, ns."""
        if not self.simulation.program.pipelined:
            return 0
        busy = self.stage_busy_ns
        return max(busy) - round(sum(busy) / len(busy))

    @cached_property
    def exposed_ns(self) -> int:
        """Exposed communication of the mean rank, ns."""
        return self.mean_of_ranks_ns(account.all_exposed_ns for account in self.accounts)

    @cached_property
    def late(self) -> list[Late]:
        """Exposed gradient reductions after the last backward, ns, of each class by kind and op."""
        return self.results.trace.map_tracks(
            lambda class_id: sum_late_reductions(self.simulation, class_id, self.accounts[class_id])
        )

    @cached_property
    def without_network_ns(self) -> int | None:
        """The step time with all communication free, ns.

        None where finding it would take long, and where less than 1 % of the step is exposed.
        """
        if not self.is_worth_saying(self.exposed_ns, 0.01):
            return None
        return self.results.variants.step_ns_without_communication()

    @cached_property
    def network_ns(self) -> int:
        """The cost of communication, ns: how much shorter the step would be if all of it were free.

        This includes stages that wait for communication of their neighbours. It is exposed communication
        where `without_network_ns` is not known.
        """
        other = self.without_network_ns
        return self.exposed_ns if other is None else max(0, self.step_ns - other)

    @cached_property
    def bubble_ns(self) -> int:
        """The cost of a pipeline, ns: bubble and idle of the mean rank, without that of unequal stages."""
        if not self.simulation.program.pipelined:
            return 0
        return max(0, self.mean_ns["bubble"] + self.mean_ns["idle"] - self.unbalanced_ns)

    def mean_of_ranks_ns(self, by_class: Iterable[int]) -> int:
        """Returns the mean of all ranks of a figure of each class, rounded."""
        return mean_of_ranks(self.results, by_class)

    def is_worth_saying(self, ns: int, share: float = WORTH_SAYING) -> bool:
        """Returns whether `ns` is at least this share of the step."""
        return ns > 0 and ns >= share * self.step_ns

    def step_with(self, **changes: Any) -> int | None:
        """Returns the step time with other parameters, by a further run; None where that would take long."""
        return self.results.variants.step_ns(**changes)


def find_most_rows(by_row: Mapping[str, int]) -> list[str]:
    """Returns the names of the few rows that make up most of a figure, [] if it takes many."""
    rows = largest_keys(by_row)
    most = sum(by_row[row] for row in rows)
    return rows if len(rows) <= LISTED and 2 * most > sum(by_row.values()) else []


def name_stages(run: RunSums, class_ids: Collection[int]) -> Who:
    """Returns the ranks of these classes, as stages of a pipeline where they are all or most of one."""
    ranks = name_ranks(run, class_ids)
    if not run.simulation.program.pipelined or run.simulation.layout.pp == 1:
        return ranks
    whole_set = find_whole_stages([one.stage for one in run.classes], class_ids)
    if whole_set is not None:
        return Who(ranks.ranks, whole_set)
    stages = {run.classes[class_id].stage for class_id in class_ids}
    count = sum(len(rank_class.ranks) for rank_class in run.classes if rank_class.stage in stages)
    if len(stages) == 1 and 2 * len(ranks.ranks) > count:
        return Who(ranks.ranks, RankSet.of(stages), is_most=True)
    return ranks


def name_ranks(run: RunSums, class_ids: Collection[int]) -> Who:
    """Returns the ranks of these classes."""
    return Who(ranks_of(run.classes, class_ids))
