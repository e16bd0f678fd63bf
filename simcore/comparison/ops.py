"""The comparison of two runs of workload rows: which ops differ, and the sums over ops and critical paths."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from simcore.comparison.changes import AccountChange, AccountPart, MainCause, SpanPair, find_main_cause
from simcore.comparison.matching import ClassPair, find_class_pairs, map_rows
from simcore.comparison.op_changes import OpChange, OpMatches, compare_ops, find_computed_ops
from simcore.comparison.pairs import LanePair
from simcore.comparison.parts import PathChanges, find_difference_parts, find_path_changes
from simcore.comparison.reasons import explain_difference
from simcore.parameters import FLAGS
from simcore.records import NamedTuple, Struct
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.run import mean_ns
from simcore.trace.track import RARE_ACCOUNTS
from simcore.words.sentences.shift import PathShift, find_path_shift
from simcore.words.simulated import find_parameters
from simcore.workload.model import base_name

# Parameters whose effect other figures show.
# The parameters whose defaults are those of the GPU.
_OF_GPU = frozenset({"dim", "local_mem_bw", "memory_limit"})
_NOT_COMPARED = ("no_fold", "rescale")


class LayerChange(NamedTuple):
    """All rows of one name without their number, in ns of a step."""

    name: str
    """The name without digits."""
    compute: AccountChange
    """Their compute."""
    exposed: AccountChange
    """Their exposed communication."""

    @property
    def total_change_ns(self) -> int:
        """The sum of both changes, ns, by which the table is sorted."""
        return abs(self.compute.ns) + abs(self.exposed.ns)


class MemoryChange(NamedTuple):
    """Micro-batches that are in memory at once."""

    stage: int
    """The stage where the runs differ most."""
    a: int
    """The micro-batches of that stage in A."""
    b: int
    """The micro-batches of that stage in B."""
    a_peak: int
    """The micro-batches in A of the stage that keeps most."""
    b_peak: int
    """The micro-batches in B of the stage that keeps most."""


class OpChanges(Struct, frozen=True, dict=True):
    """The differences of run B from run A, op by op; differences are B - A."""

    a: SimulatedRun
    b: SimulatedRun

    @property
    def difference_ns(self) -> int:
        """How much longer the step of B is, ns."""
        return self.b.step_time_ns - self.a.step_time_ns

    @property
    def has_other_file(self) -> bool:
        """Whether the two are runs of different rows: of two files, or of a model on two GPUs."""
        workload, other = self.a.simulation.workload, self.b.simulation.workload
        return workload.as_written is not other.as_written

    @cached_property
    def changed_parameters(self) -> dict[str, tuple[Any, Any]]:
        """The parameters that differ, with their values in A and in B, in the order of the flags."""
        a, b = (find_parameters(side.simulation) for side in (self.a, self.b))
        if all(side.simulation.workload.maker is None for side in (self.a, self.b)):
            # Parameters that only files have are among them where they were set.
            for flag in FLAGS:
                if "file" in flag.of and (flag.field in a or flag.field in b):
                    empty: object = [] if flag.kind == "words" else flag.default
                    a.setdefault(flag.field, empty)
                    b.setdefault(flag.field, empty)
        fields = [flag.field for flag in FLAGS if flag.field in a and flag.field in b]
        fields = [field for field in fields if field not in _NOT_COMPARED]
        if a.get("gpu") != b.get("gpu"):
            # These come with another GPU, unless they are given.
            explicit_fields = (
                self.a.simulation.parameters.explicit_names | self.b.simulation.parameters.explicit_names
            )
            fields = [field for field in fields if field not in _OF_GPU or field in explicit_fields]
        return {field: (a[field], b[field]) for field in fields if a[field] != b[field]}

    @cached_property
    def pairs(self) -> list[ClassPair]:
        """The pairs of classes that have ranks in common."""
        return find_class_pairs(self.a.simulation, self.b.simulation)

    @cached_property
    def _row_map(self) -> list[int]:
        return map_rows(self.a.simulation.workload, self.b.simulation.workload)

    @cached_property
    def _op_comparison(self) -> tuple[OpMatches, list[OpChange]]:
        return compare_ops(self.a.simulation, self.b.simulation, self.pairs, self._row_map)

    @cached_property
    def lane_pairs(self) -> list[LanePair]:
        """The paired lanes, those of `pairs`."""
        a, b = ({track.track_id: track for track in side.tracks} for side in (self.a, self.b))
        layout, lanes = self.a.simulation.layout, []
        for (stage, dp, tp), of_a, of_b, ranks in self.pairs:
            lanes.append(LanePair(stage, a[of_a], b[of_b], ranks, layout.rank(tp, dp, stage)))
        return lanes

    def computed_ops(self, pair: LanePair) -> list[SpanPair]:
        """Returns the compute ops that the ranks of a pair have in both runs, with their times."""
        class_ids = pair.a.track_id, pair.b.track_id
        return find_computed_ops(self.a.simulation, self.b.simulation, class_ids, self._row_map)

    @property
    def op_matches(self) -> OpMatches:
        """The counts of matched ops."""
        return self._op_comparison[0]

    @property
    def op_changes(self) -> list[OpChange]:
        """The ops that differ most: by duration, by the wait before them, by start."""
        return self._op_comparison[1]

    @cached_property
    def accounts(self) -> list[AccountChange]:
        """The accounts of the mean rank.

        Context parallelism is listed for models alone, rare accounts for runs that have time in them.
        """
        a, b = mean_ns(self.a), mean_ns(self.b)
        left_out = {name for name in RARE_ACCOUNTS if not (a[name] or b[name])}
        if all(side.simulation.workload.maker is None for side in (self.a, self.b)):
            left_out.add("exposed cp")
        return [AccountChange(name, a[name], b[name]) for name in ACCOUNTS if name not in left_out]

    @cached_property
    def slowest_pair(self) -> ClassPair:
        """The ranks that compute least in both steps, idle time at the end left out."""

        def idle_ns(pair: ClassPair) -> int:
            a, b = self.a.accounts[pair.a], self.b.accounts[pair.b]
            return sum(accounts.all_exposed_ns + accounts.wait_ns + accounts.bubble_ns for accounts in (a, b))

        return max(self.pairs, key=lambda pair: (idle_ns(pair), [-coordinate for coordinate in pair.first]))

    @cached_property
    def worst_accounts(self) -> list[AccountChange]:
        """The accounts of the ranks of `slowest_pair`."""
        a, b = self.a.accounts[self.slowest_pair.a].total_ns, self.b.accounts[self.slowest_pair.b].total_ns
        account_indices = [(name, ACCOUNTS.index(name)) for name, *_ in self.accounts]
        return [AccountChange(name, a[index], b[index]) for name, index in account_indices]

    @cached_property
    def parts(self) -> list[AccountPart]:
        """B - A by account of the critical paths, the largest part first."""
        return find_difference_parts(self.a, self.b, self.pairs)

    @cached_property
    def main_cause(self) -> MainCause | None:
        """The parts that explain most of B - A; None where no account differs."""
        return find_main_cause(self.parts, self.difference_ns) if self.parts else None

    @cached_property
    def path_shift(self) -> PathShift | None:
        """What the two critical paths are spent on; None where `find_path_shift` finds nothing."""
        return next(find_path_shift(self.a, self.b), None)

    @cached_property
    def why_text(self) -> str:
        """The parts that explain B - A and what causes them, a sentence without its full stop."""
        return explain_difference(self)

    @cached_property
    def layers(self) -> list[LayerChange]:
        """The changes of rows by name, the largest first."""
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
        return sorted(changes, key=lambda change: (-change.total_change_ns, change.name))

    @cached_property
    def paths(self) -> PathChanges:
        """The critical paths of the two, by kind, by stage and by layer."""
        return find_path_changes(self.a, self.b)

    @cached_property
    def memory_change(self) -> MemoryChange | None:
        """The change of micro-batches in memory; None where no stage that both have, nor the
        peak, differs.
        """
        a, b = (dict(enumerate(side.shape.held_microbatches)) for side in (self.a, self.b))
        peaks = max(a.values()), max(b.values())
        both = [MemoryChange(stage, a[stage], b[stage], *peaks) for stage in a if stage in b]
        most = max(both, key=lambda cost: (abs(cost.b - cost.a), -cost.stage))
        return most if most.a != most.b or peaks[0] != peaks[1] else None

    @cached_property
    def unchanged(self) -> list[str]:
        """What is the same in both runs, in words."""
        matches = self.op_matches
        durations = {"compute", "collective", "transfer"}
        unchanged_texts = []
        if matches.is_complete and not matches.different_kinds & durations:
            unchanged_texts.append("every op's duration")
        else:
            for kind, text in (
                ("compute", "compute of every op"),
                ("collective", "every collective's duration"),
                ("transfer", "every pp transfer's duration"),
            ):
                if kind in matches.compared_kinds - matches.different_kinds:
                    unchanged_texts.append(text if matches.is_complete else f"{text} that both have")
        if matches.is_complete:
            ops = "ops" if matches.compared_kinds == {"compute"} else "collectives and transfers"
            unchanged_texts.append(f"as many {ops}")
            unchanged_texts += ["all bytes"] if "bytes" not in matches.different_kinds else []
        if self.memory_change is None:
            unchanged_texts.append("micro-batches in memory")
        return unchanged_texts
