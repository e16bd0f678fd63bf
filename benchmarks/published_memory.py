"""Published peaks of memory (../shared/validation/published_2.json) beside those of wltui, and the published
runs that wltui says do not fit: tables of docs/accuracy.md. No run is simulated: what a schedule holds
follows from its order.
"""

from __future__ import annotations

import json
import shlex
import statistics
from functools import cache
from typing import Any, NamedTuple

from benchmarks.measuring import ROOT
from benchmarks.published_steps import spread
from simcore.analysis.fitting import find_training_schedule, list_chunk_events
from simcore.model.gpu import find_gpu
from simcore.model.memory import StageMemory, memory_limit, stage_memory
from simcore.model.opening import find_model
from simcore.model.resolving import resolve_training
from simcore.workload.model import ModelParameters
from tui.commands.arguments import add_model, add_parameters, parse_parameters
from tui.commands.parser import Parser

FOLDER = ROOT.parent / "shared" / "validation"
ROWS = FOLDER / "published_2.json"


class Reported(NamedTuple):
    """How a source reports memory. counts: what of a stage it sees. unit: bytes of its GB."""

    name: str
    counts: str
    unit: float


# Group of rows -> how it reports memory. torchtitan's GiB are GB in the file.
_REPORTED = {
    "torchtitan H100 (500 W) FSDP2": Reported("torchtitan, H100 96 GB", "reserved by torch", 1e9),
    "BigScience 176B topologies A100": Reported("BigScience, A100", "used, nvidia-smi", 2**30),
    "Zero Bubble A100": Reported("Zero Bubble, A100", "allocated by torch", 1e9),
}
# What the command of a run that was measured lacks, by number of its row.
_LACKS = {
    69: "not known: its recipe recomputes nothing; the experts' activations are half of it",
    70: "`layernorm` and `moe_act` recomputed (`--recompute-rows norm,mlp_act`), which is not enough; "
    "the recipe has micro-batches of 1 by default",
    73: "activations of 40 of the layers in the host's memory; `--offload` moves those of all",
}


class Peak(NamedTuple):
    """A row, the fullest stage, and bytes of the GPU."""

    row: dict[str, Any]
    memory: StageMemory
    limit: int

    @property
    def error(self) -> float:
        """How much more than measured, as a share of it, counted as the source counts."""
        reported, memory = _REPORTED[self.row["group"]], self.memory
        size = {
            "reserved by torch": memory.total + memory.fragmentation,
            "used, nvidia-smi": memory.needed,
            "allocated by torch": memory.total,
        }[reported.counts]
        return size / (float(self.row["measured"]["memory_gb"]) * reported.unit) - 1


@cache
def peaks() -> tuple[Peak, ...]:
    """Every row with its fullest stage."""
    parser = Parser()
    add_model(parser)
    add_parameters(parser)
    found = []
    for row in json.loads(ROWS.read_text("utf-8")):
        given = [_here(word) for word in shlex.split(f"{row['command']} {row['engine']}")]
        words = parser.parse_args(given)
        parameters, (model, _) = parse_parameters(words), find_model(words.model)
        training = resolve_training(model, parameters.part(ModelParameters))
        one_at_a_time = [[(0, 0, 1), (0, 0, -1)]]
        name = find_training_schedule(training, parameters.schedule)
        held = (
            list_chunk_events(training, name, parameters.overlap_fwd_bwd)
            if training.pp > 1
            else one_at_a_time
        )
        stages = [stage_memory(training, stage, held[stage]) for stage in range(training.pp)]
        limit = memory_limit(parameters.memory_limit, find_gpu(training.gpu).memory)
        found.append(Peak(row, max(stages, key=lambda memory: memory.needed), limit))
    return tuple(found)


def _here(word: str) -> str:
    """Files of the commands lie beside the rows."""
    return str(FOLDER / word) if word.startswith(("models/", "gpus/")) else word


def table() -> list[list[str]]:
    """By source, and of torchtitan by what is sharded, how far the peaks are from the measured ones."""
    lines = [["peak of memory", "trainer", "counted", "rows", "median", "worst", "bias"]]
    for group, reported in _REPORTED.items():
        measured = [
            one for one in peaks() if one.row["group"] == group and "memory_gb" in one.row["measured"]
        ]
        parts = [("", measured)]
        if group.startswith("torchtitan"):
            several = [
                one for one in measured if "--cp" in one.row["command"] or "--tp" in one.row["command"]
            ]
            alone = [one for one in measured if one not in several]
            parts = [(", 8B, FSDP alone", alone), (", context parallel and TP 8", several)]
        for name, ones in parts:
            errors = [one.error for one in ones]
            median, _, worst = spread(errors)
            lines.append([
                reported.name + name, shlex.split(ones[0].row["engine"])[1], reported.counts, str(len(ones)),
                f"{100 * median:.1f} %", f"{100 * worst:.1f} %", f"{100 * statistics.median(errors):+.1f} %",
            ])  # fmt: skip
    return lines


def misfits_table() -> list[list[str]]:
    """The runs with commands as published that are said not to fit, though they ran, and what those lack."""
    lines = [["row", "run", "needed, GB", "of", "what its command lacks"]]
    for one in peaks():
        if one.row["kind"] == "ok" and one.memory.needed > one.limit:
            number = one.row["id"]
            lines.append([
                str(number), f"{one.row['group']}: {one.row['row']}", f"{one.memory.needed / 1e9:.1f}",
                f"{one.limit / 1e9:.1f}", _LACKS.get(number, "not known"),
            ])  # fmt: skip
    return lines
