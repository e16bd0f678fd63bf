"""Two runs whose ops are of rows of a workload: which ops differ, and what sums over ops and paths do."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from simcore.comparison.changes import AccountChange, AccountPart, Alike, Leading, leading_parts
from simcore.comparison.matching import ClassPair, class_pairs, rows_in
from simcore.comparison.movers import Matched, Mover, compared_ops, computed_ops
from simcore.comparison.pairs import LanePair
from simcore.comparison.parts import PathChanges, difference_parts, path_changes
from simcore.comparison.reasons import why
from simcore.parameters import FLAGS
from simcore.records import NamedTuple, Struct
from simcore.runs.simulated import Results
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.run import mean_ns
from simcore.trace.track import OF_FEW
from simcore.words.simulated import effective_parameters
from simcore.workload.model import base_name

# Others say what they have made of a run.
_NOT_COMPARED = ("no_fold", "rescale")


class LayerChange(NamedTuple):
    """All rows of one name without their number: what they compute and expose in a step, ns."""

    name: str
    compute: AccountChange
    exposed: AccountChange

    @property
    def moved_ns(self) -> int:
        """What the table is sorted by."""
        return abs(self.compute.ns) + abs(self.exposed.ns)


class Cost(NamedTuple):
    """Micro-batches in memory at once. a, b: on the stage where they differ most. a_peak, b_peak: on that
    which keeps most.
    """

    stage: int
    a: int
    b: int
    a_peak: int
    b_peak: int


class OpChanges(Struct, frozen=True, dict=True):
    """Run B against run A. Figures are those of their `Results`; differences are B - A."""

    a: Results
    b: Results

    @property
    def difference_ns(self) -> int:
        """How much longer step B is."""
        return self.b.step_time_ns - self.a.step_time_ns

    @property
    def other_file(self) -> bool:
        """Whether the two are runs of different workloads."""
        workload, other = self.a.simulation.workload, self.b.simulation.workload
        return workload.as_written is not other.as_written

    @cached_property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """The parameters that differ, with their values in the two runs, in the order of the flags."""
        a, b = (effective_parameters(side.simulation) for side in (self.a, self.b))
        if all(side.simulation.workload.maker is None for side in (self.a, self.b)):
            # What files alone have is among them where it was given.
            for flag in FLAGS:
                if "file" in flag.of and (flag.field in a or flag.field in b):
                    empty: object = [] if flag.kind == "words" else flag.default
                    a.setdefault(flag.field, empty)
                    b.setdefault(flag.field, empty)
        fields = [flag.field for flag in FLAGS if flag.field in a and flag.field in b]
        fields = [field for field in fields if field not in _NOT_COMPARED]
        return {field: (a[field], b[field]) for field in fields if a[field] != b[field]}

    @cached_property
    def pairs(self) -> list[ClassPair]:
        """The classes that have ranks in common."""
        return class_pairs(self.a.simulation, self.b.simulation)

    @cached_property
    def _rows(self) -> list[int]:
        return rows_in(self.a.simulation.workload, self.b.simulation.workload)

    @cached_property
    def _ops(self) -> tuple[Matched, list[Mover]]:
        return compared_ops(self.a.simulation, self.b.simulation, self.pairs, self._rows)

    @cached_property
    def lane_pairs(self) -> list[LanePair]:
        """The lanes of `pairs`."""
        a, b = ({track.number: track for track in side.tracks} for side in (self.a, self.b))
        layout, lanes = self.a.simulation.layout, []
        for (stage, dp, tp), of_a, of_b, ranks in self.pairs:
            lanes.append(LanePair(stage, a[of_a], b[of_b], ranks, layout.rank(tp, dp, stage)))
        return lanes

    def computed_ops(self, pair: LanePair) -> list[Alike]:
        """The compute ops that the ranks of a pair have in both runs, with when they run in each."""
        numbers = pair.a.number, pair.b.number
        return computed_ops(self.a.simulation, self.b.simulation, numbers, self._rows)

    @property
    def matched(self) -> Matched:
        """How many ops of the two have their like."""
        return self._ops[0]

    @property
    def movers(self) -> list[Mover]:
        """The ops that differ most: by duration, by the wait before them, by start."""
        return self._ops[1]

    @cached_property
    def accounts(self) -> list[AccountChange]:
        """The mean of all ranks. Context parallelism is of models alone, others of runs with time in them."""
        a, b = mean_ns(self.a), mean_ns(self.b)
        left_out = {name for name in OF_FEW if not (a[name] or b[name])}
        if all(side.simulation.workload.maker is None for side in (self.a, self.b)):
            left_out.add("exposed cp")
        return [AccountChange(name, a[name], b[name]) for name in ACCOUNTS if name not in left_out]

    @cached_property
    def worst(self) -> ClassPair:
        """The ranks that compute least of both steps, idle at the end left out."""

        def standing(pair: ClassPair) -> int:
            a, b = self.a.accounts[pair.a], self.b.accounts[pair.b]
            return sum(accounts.all_exposed_ns + accounts.wait_ns + accounts.bubble_ns for accounts in (a, b))

        return max(self.pairs, key=lambda pair: (standing(pair), [-place for place in pair.first]))

    @cached_property
    def worst_accounts(self) -> list[AccountChange]:
        """The same accounts of those ranks."""
        a, b = self.a.accounts[self.worst.a].total_ns, self.b.accounts[self.worst.b].total_ns
        places = [(name, ACCOUNTS.index(name)) for name, *_ in self.accounts]
        return [AccountChange(name, a[place], b[place]) for name, place in places]

    @cached_property
    def parts(self) -> list[AccountPart]:
        """B - A by account of the critical paths, the largest part first."""
        return difference_parts(self.a, self.b, self.pairs)

    @cached_property
    def leading(self) -> Leading | None:
        """The parts that explain most of B - A; None where no account differs."""
        return leading_parts(self.parts, self.difference_ns) if self.parts else None

    @cached_property
    def why(self) -> str:
        """The parts that explain B - A and what causes them, a sentence without its full stop."""
        return why(self)

    @cached_property
    def layers(self) -> list[LayerChange]:
        """Every name of a row, the one that changes most first."""
        sums: dict[str, list[int]] = {}
        for side, results in enumerate((self.a, self.b)):
            table, names = results.layers.table, results.simulation.workload.name
            for name, compute_ns, exposed_ns in zip(names, table.compute_ns, table.exposed_ns, strict=True):
                ns = sums.setdefault(base_name(name), [0, 0, 0, 0])
                ns[side] += compute_ns
                ns[2 + side] += exposed_ns
        changes = [
            LayerChange(name, AccountChange("compute", *ns[:2]), AccountChange("exposed", *ns[2:]))
            for name, ns in sums.items()
        ]
        return sorted(changes, key=lambda change: (-change.moved_ns, change.name))

    @cached_property
    def paths(self) -> PathChanges:
        """The critical paths of the two, by kind, by stage and by layer."""
        return path_changes(self.a, self.b)

    @cached_property
    def cost(self) -> Cost | None:
        """The micro-batches in memory, of a stage that both have and at most; None where none differ."""
        a, b = (dict(enumerate(side.shape.held_microbatches)) for side in (self.a, self.b))
        peaks = max(a.values()), max(b.values())
        both = [Cost(stage, a[stage], b[stage], *peaks) for stage in a if stage in b]
        most = max(both, key=lambda cost: (abs(cost.b - cost.a), -cost.stage))
        return most if most.a != most.b or peaks[0] != peaks[1] else None

    @cached_property
    def unchanged(self) -> list[str]:
        """What is the same in both runs, in words."""
        matched = self.matched
        durations = {"compute", "collective", "transfer"}
        kept = []
        if matched.whole and not matched.differs & durations:
            kept.append("every op's duration")
        else:
            for kind, what in (
                ("compute", "compute of every op"),
                ("collective", "every collective's duration"),
                ("transfer", "every pp transfer's duration"),
            ):
                if kind in matched.compared - matched.differs:
                    kept.append(what if matched.whole else f"{what} that both have")
        if matched.whole:
            ops = "ops" if matched.compared == {"compute"} else "collectives and transfers"
            kept.append(f"as many {ops}")
            kept += ["all bytes"] if "bytes" not in matched.differs else []
        if self.cost is None:
            kept.append("micro-batches in memory")
        return kept
