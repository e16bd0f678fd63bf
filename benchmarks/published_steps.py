"""Published, measured steps (../shared/validation/steps.json) beside those that wltui makes of the same model
and layout: how far each is off, and tables of it for docs/accuracy.md.

Nothing here is fitted: constants are those of simcore/model/gpus.toml. What a paper does not state (the
bandwidth between servers of one of them) stands in the row's note.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simcore.analysis.model_figures import make_model_figures
from simcore.model.gpu import find_gpu
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Mla, Model, Moe
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.sweeping.step_time import StepTimes

STEPS = Path(__file__).resolve().parents[2] / "shared" / "validation" / "steps.json"
_GPUS = {"a100": "a100-80", "h100": "h100", "b200": "b200"}
# Source of a row -> what the page calls it.
SETS = {
    "SC21": "Megatron-LM SC'21 (arXiv 2104.04473), A100",
    "RAR": "Korthikanti et al. (arXiv 2205.05198), A100",
    "vTrain": "vTrain, 64 to 512 A100",
    "vTrain1": "vTrain, one server of A100",
    "B200": "SimuMax, 8 B200",
    "Bridge": "Megatron Bridge, Llama-3 70B FP8, H100",
}


class Off(NamedTuple):
    """One row: its source, seconds as measured and as made; measured and made memory of its stages, bytes."""

    row: dict[str, Any]
    made: float
    memory: list[tuple[float, float]]

    @property
    def error(self) -> float:
        """How much longer than measured, as a share of it."""
        return self.made / self.row["seconds"] - 1


def rows() -> list[dict[str, Any]]:
    """All published steps that are here."""
    found: list[dict[str, Any]] = json.loads(STEPS.read_text("utf-8"))["rows"]
    return found


def model_of(row: dict[str, Any]) -> Model:
    """The model of a row."""
    sizes = row["model"]
    moe = mla = None
    if sizes["experts"]:
        moe = Moe(sizes["experts"], sizes["topk"], sizes["moe_ffn"], sizes["shared"], sizes["dense"])
    if sizes["mla"]:
        mla = Mla(*sizes["mla"])
    gated, heads = sizes["gated"], sizes["heads"]
    head_dim = sizes["head_dim"] or (mla.v_head_dim if mla else sizes["hidden"] // heads)
    return Model(
        row["name"], sizes["layers"], sizes["hidden"], heads, sizes["kv_heads"] or heads, head_dim,
        sizes["ffn"], gated, sizes["vocab"], sizes["seq"], sizes["tied"], sizes["dropout"],
        "none" if gated else "all", not gated, 0 if gated else sizes["seq"], False, moe, mla,
    )  # fmt: skip


def parameters_of(row: dict[str, Any]) -> Parameters:
    """The layout of a row."""
    layout, note = row["layout"], row["note"]
    world = layout["tp"] * layout["pp"] * layout["dp"] * layout["cp"]
    gpu = find_gpu(_GPUS[row["gpu"]])
    dims = gpu.dims(world)
    if "ib" in note and len(dims) > 1:
        bandwidth, latency = note["ib"]
        dims = (dims[0], f"switch:{-(-world // gpu.server)}:{bandwidth}:{latency}")
    overlap = bool(note.get("overlap"))
    return Parameters(
        world=world, tp=layout["tp"], pp=layout["pp"], ep=layout["ep"], cp=layout["cp"], dim=dims,
        virtual_stages=layout["vp"] if layout["vp"] > 1 else None, microbatch_size=layout["mbs"],
        global_batch=layout["gbs"], sequence_parallel="on" if layout["sp"] else "off",
        flash="on" if layout["flash"] else "off", recompute=layout["recompute"],
        zero="1" if layout["dist_opt"] else "0", grad_dtype="fp32" if layout["grad_bytes"] == 4 else "bf16",
        precision="fp8" if layout["fp8"] else "bf16", pp_scatter="on" if note.get("scatter") else "off",
        gpu=gpu.name, overlap_grad_reduce=overlap, overlap_param_gather=overlap,
        # NVIDIA's recipes of it overlap both (tp_comm_overlap, comm_overlap).
        overlap_tp=overlap and row["source"] == "Bridge",
    )  # fmt: skip


def run(row: dict[str, Any]) -> Simulation:
    """The step of a row, simulated."""
    return simulate(ModelMaker(row["name"], model_of(row)).empty_workload(), parameters_of(row))


def off(row: dict[str, Any]) -> Off:
    """How far the simulated step of a row is from the measured one."""
    simulation = run(row)
    memory = []
    measured = row["memory_gib_by_rank"]
    if measured:
        figures = make_model_figures(simulation)
        assert figures is not None
        of_stage = simulation.layout.world // simulation.layout.pp
        for stage in figures.memory:
            ranks = [gib for rank, gib in measured.items() if int(rank) // of_stage == stage.stage]
            memory.append((max(ranks) * 2**30, float(stage.total)))
    return Off(row, simulation.step_time_ns / 1e9, memory)


def all_off(sources: Iterable[str] = tuple(SETS)) -> list[Off]:
    """Every row of these sources."""
    wanted = set(sources)
    return [off(row) for row in rows() if row["source"] in wanted]


def spread(errors: Iterable[float]) -> tuple[float, float, float]:
    """(median, 90th percentile, largest) of the errors, whatever their sign."""
    sizes = sorted(map(abs, errors))
    return statistics.median(sizes), sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))], sizes[-1]


def after_one_factor(found: list[Off]) -> list[float]:
    """The errors after all steps are made longer by one factor, the median of those that fit each."""
    factor = statistics.median(one.row["seconds"] / one.made for one in found)
    return [one.made * factor / one.row["seconds"] - 1 for one in found]


def best_layouts(found: list[Off]) -> dict[str, float]:
    """By model of vTrain's larger runs: how much longer than the shortest measured step the measured step of
    the layout is that is simulated to be the shortest.
    """
    groups: dict[str, list[Off]] = {}
    for one in found:
        if one.row["source"] == "vTrain":
            groups.setdefault(one.row["name"].split()[0], []).append(one)
    return {
        name: min(ones, key=lambda one: one.made).row["seconds"] / min(one.row["seconds"] for one in ones) - 1
        for name, ones in groups.items()
    }


def steps_table(found: list[Off]) -> list[list[str]]:
    """A row for each source."""
    table = [["steps", "rows", "median", "90 % within", "worst", "bias", "worst is"]]
    together = [one for one in found if one.row["source"] in ("SC21", "RAR")]
    parts = [(name, [one for one in found if one.row["source"] == source]) for source, name in SETS.items()]
    parts.insert(2, ("both", together))
    for name, ones in parts:
        median, most, worst = spread(one.error for one in ones)
        bias = statistics.median(one.error for one in ones)
        furthest = max(ones, key=lambda one: abs(one.error)).row["name"]
        cells = [f"{100 * one:.1f} %" for one in (median, most, worst)]
        table.append([name, str(len(ones)), *cells, f"{100 * bias:+.1f} %", furthest])
        if name == SETS["B200"]:
            after = spread(after_one_factor(ones))
            table.append(
                ["after one factor", str(len(ones)), *(f"{100 * one:.1f} %" for one in after), "", ""]
            )
    return table


def memory_table(found: list[Off]) -> list[list[str]]:
    """The measured peaks of memory, by source."""
    table = [["peak of memory", "stages", "median", "worst"]]
    for source, name in SETS.items():
        errors = [
            made / real - 1 for one in found if one.row["source"] == source for real, made in one.memory
        ]
        if errors:
            median, _, worst = spread(errors)
            table.append([name, str(len(errors)), f"{100 * median:.1f} %", f"{100 * worst:.1f} %"])
    return table


def layouts_table(found: list[Off]) -> list[list[str]]:
    """The layout that is simulated to be the shortest, against the shortest that was measured."""
    return [["model", "its measured step is above the best measured by"]] + [
        [name, f"{100 * above:.1f} %"] for name, above in best_layouts(found).items()
    ]


# Fewer layouts are no choice.
_LEAST_LAYOUTS = 5


def swept_groups() -> dict[str, list[tuple[int, float]]]:
    """By source, of each group of one model, GPUs and batch with five layouts or more: how many there are,
    and how much longer than the shortest measured step that of the layout is which a sweep finds the fastest.
    """
    groups: dict[tuple[str, str, int, int], list[dict[str, Any]]] = {}
    for row in rows():
        layout = row["layout"]
        world = layout["tp"] * layout["pp"] * layout["dp"] * layout["cp"]
        key = (row["source"], json.dumps(row["model"], sort_keys=True), world, layout["gbs"])
        groups.setdefault(key, []).append(row)
    found: dict[str, list[tuple[int, float]]] = {}
    for (source, *_), members in groups.items():
        if len(members) < _LEAST_LAYOUTS or source not in SETS:
            continue
        times, opened = StepTimes(), ModelMaker(members[0]["name"], model_of(members[0])).empty_workload()
        steps = [times.find_step_time(Setup(opened, parameters_of(row))).step_time_ns for row in members]
        best = members[steps.index(min(steps))]
        above = best["seconds"] / min(row["seconds"] for row in members) - 1
        found.setdefault(source, []).append((len(members), above))
    return found


def sweeps_table() -> list[list[str]]:
    """A row for each source: how far the fastest of a sweep is from the fastest measured."""
    table = [["steps", "groups", "layouts", "the very best found", "median above it", "worst above it"]]
    for source, groups in swept_groups().items():
        above = sorted(one for _, one in groups)
        cells = [f"{100 * one:.1f} %" for one in (statistics.median(above), above[-1])]
        counts = (len(groups), sum(count for count, _ in groups), sum(one == 0 for one in above))
        table.append([SETS[source], *map(str, counts), *cells])
    return table
