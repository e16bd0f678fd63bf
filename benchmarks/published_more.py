"""92 more published steps (../shared/validation/published_2.json), A100 to GB200, beside those of wltui.

Each row is the command that a careful reader of its source made, with the trainer. Its error is the measured
tokens/s over the predicted ones, less 1: below 0 a prediction is too fast. Beside it stands the simplest
other prediction: one MFU for each GPU and precision, the median of the other half of the rows.
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from benchmarks.measuring import ROOT
from benchmarks.published_steps import spread
from simcore.model.gpu import Gpu, find_gpu
from simcore.model.maker import ModelMaker
from simcore.model.opening import find_model
from simcore.model.resolving import resolve_training
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.model.trust import Kind, kind_of
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.sweeping.step_time import StepTimes
from simcore.workload import Workload
from simcore.workload.model import ModelParameters
from tui.commands.arguments import add_model, add_parameters, parse_parameters
from tui.commands.parser import Parser

FOLDER = ROOT.parent / "shared" / "validation"
ROWS = FOLDER / "published_2.json"
# The rows whose layouts had no flag when they were read, with the flags that say them.
LAYOUTS = ROOT / "fixtures" / "published_layouts.json"
# Fewer layouts of one job are no choice.
_LEAST_LAYOUTS = 3


class Made(NamedTuple):
    """A row, what it trains on which GPU, and the tokens/s of a GPU that it was predicted to have."""

    row: dict[str, Any]
    training: Training
    gpu: Gpu
    predicted: float

    @property
    def measured(self) -> float:
        """Measured tokens/s of a GPU."""
        return float(self.row["measured"]["tokens_per_s_per_gpu"])

    @property
    def error(self) -> float:
        """How much more tokens/s were measured than predicted, as a share of these."""
        return self.measured / self.predicted - 1

    @property
    def mfu(self) -> float:
        """Model FLOPs of the measured tokens/s, as a share of the GPU's peak in the row's precision."""
        peak = self.gpu.peak_of(self.training.precision) * 1e12
        return self.measured * float(self.row["flops_per_token"]) / peak

    @property
    def kind(self) -> Kind:
        """GPU, precision and trainer."""
        return kind_of(self.training, self.gpu)


class Case(NamedTuple):
    """A row with the parameters of its command. opened: its model, with the times of all runs of it."""

    row: dict[str, Any]
    model: Model
    parameters: Parameters
    opened: Workload
    times: StepTimes

    def error(self, parameters: Parameters) -> float:
        """How much more tokens/s were measured than predicted with such parameters, as a share of these."""
        return float(self.row["measured"]["tokens_per_s_per_gpu"]) / self.predicted(parameters) - 1

    def predicted(self, parameters: Parameters) -> float:
        """Tokens/s of a GPU; where the source's model has another number of layers, as of that one."""
        training = resolve_training(self.model, parameters.part(ModelParameters))
        tokens = training.global_batch * training.seq / training.world
        return (
            tokens
            * 1e9
            / self.times.find_step_time(Setup(self.opened, parameters)).step_time_ns
            / float(self.row["step_scale"])
        )


@cache
def cases() -> tuple[Case, ...]:
    """Every row."""
    parser = Parser()
    add_model(parser)
    add_parameters(parser)
    models: dict[str, tuple[Model, Workload, StepTimes]] = {}
    found = []
    restated = {row["id"]: row for row in json.loads(LAYOUTS.read_text("utf-8"))}
    for row in json.loads(ROWS.read_text("utf-8")):
        row |= restated.get(row["id"], {})
        given = [_here(word) for word in shlex.split(f"{row['command']} {row['engine']}")]
        words = parser.parse_args(given)
        if words.model not in models:
            model, diagnostics = find_model(words.model)
            opened = ModelMaker(words.model, model, diagnostics).empty_workload()
            models[words.model] = model, opened, StepTimes()
        model, opened, times = models[words.model]
        found.append(Case(row, model, parse_parameters(words), opened, times))
    return tuple(found)


@cache
def all_made() -> tuple[Made, ...]:
    """Every row with the prediction."""
    made = []
    for case in cases():
        training = resolve_training(case.model, case.parameters.part(ModelParameters))
        made.append(Made(case.row, training, find_gpu(training.gpu), case.predicted(case.parameters)))
    return tuple(made)


def _here(word: str) -> str:
    """Files of the commands lie beside the rows."""
    return str(FOLDER / word) if word.startswith(("models/", "gpus/")) else word


def constant_errors() -> dict[int, float]:
    """By number of a row, the error of one MFU for each GPU and precision: the median of the rows of the
    other half, odd or even, or where it has none of the others of its half.
    """
    errors = {}
    for ones in grouped(all_made(), lambda one: one.kind[:2]).values():
        for one in ones:
            others = [other for other in ones if (other.row["id"] - one.row["id"]) % 2]
            others = others or [other for other in ones if other is not one]
            if others:
                errors[one.row["id"]] = one.mfu / statistics.median(other.mfu for other in others) - 1
    return errors


def grouped(made: Iterable[Made], key: Callable[[Made], Hashable]) -> dict[Any, list[Made]]:
    """The rows by a key, in the order in which keys come first."""
    groups: dict[Any, list[Made]] = {}
    for one in made:
        groups.setdefault(key(one), []).append(one)
    return groups


_FIGURES = ("steps", "median", "90 % within", "worst", "bias", "one MFU: median", "90 % within")


def gpus_table() -> list[list[str]]:
    """A row for each GPU, precision and trainer, and one for all."""
    flat = constant_errors()
    table = [["GPU, precision, trainer", *_FIGURES]]
    for kind, ones in sorted(grouped(all_made(), lambda one: one.kind).items()):
        table.append([kind.words, *_figures(ones, flat)])
    return [*table, ["all", *_figures(all_made(), flat)]]


def sources_table() -> list[list[str]]:
    """A row for each source."""
    flat = constant_errors()
    of_source = grouped(all_made(), lambda one: one.row["source"])
    return [["source", *_FIGURES], *([source, *_figures(ones, flat)] for source, ones in of_source.items())]


def layouts_table() -> list[list[str]]:
    """A row for each job with three layouts or more: how far the one predicted best is from the best."""
    table = [["job", "layouts", "the layout predicted best", "the best measured is faster by"]]
    for ones in grouped(all_made(), _job).values():
        if len(ones) >= _LEAST_LAYOUTS:
            chosen = max(ones, key=lambda one: one.predicted)
            above = max(one.measured for one in ones) / chosen.measured - 1
            cells = (ones[0].row["group"], str(len(ones)), chosen.row["row"], f"{100 * above:.1f} %")
            table.append([*cells])
    return table


def _job(made: Made) -> tuple[Any, ...]:
    """What rows have alike that are layouts of one job: model, GPUs, precision, sequences, nearly the batch.

    Layouts divide batches differently: those are one that differ by less than a fifth.
    """
    training, row = made.training, made.row
    batch = round(4 * math.log2(training.global_batch))
    return (
        row["group"],
        training.model.name,
        training.gpu,
        training.precision,
        training.seq,
        batch,
        row["world"],
    )


def _figures(made: Sequence[Made], flat: dict[int, float]) -> list[str]:
    """Cells of `_FIGURES`. flat: as `constant_errors` has them."""
    errors = [one.error for one in made]
    sizes = [f"{100 * size:.1f} %" for size in spread(errors)]
    of_flat = [flat[one.row["id"]] for one in made if one.row["id"] in flat]
    of_constant = [f"{100 * size:.1f} %" for size in spread(of_flat)[:2]] if of_flat else ["", ""]
    return [str(len(errors)), *sizes, f"{100 * statistics.median(errors):+.1f} %", *of_constant]
