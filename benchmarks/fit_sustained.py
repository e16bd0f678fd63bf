"""Fits the speed of products in training over that alone (`sustained`, `sustained_fp8` of
simcore/model/gpus.toml) on groups of published steps, for each GPU and precision that has any.

A group is a source of ../shared/validation/published_2.json, or a set of steps.json. The value is the one, in
steps of 0.01, at which the median over groups of their median errors is nearest 0: a group counts once,
however many steps it has. Nothing is written into gpus.toml.

    python benchmarks/fit_sustained.py   prints each group at the present value, and the value that is found
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import published_more, published_steps
from simcore.model.gpu import find_gpu
from simcore.model.maker import ModelMaker
from simcore.model.resolving import resolve_training
from simcore.model.sizes import Model
from simcore.model.toml_text import parse_toml
from simcore.model.trust import kind_of
from simcore.names import GPU_NAMES
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.setup import Setup
from simcore.sweeping.step_time import StepTimes
from simcore.workload import Workload
from simcore.workload.model import ModelParameters

# Hundredths among which a value is sought.
_LEAST, _MOST = 30, 100
# Of the set with one server of A100 (478 steps) every so many.
_EVERY = 4


class _Step(NamedTuple):
    """A published step. error: of the simulated one with such parameters."""

    parameters: Parameters
    error: Callable[[Parameters], float]


class Found(NamedTuple):
    """A GPU and precision. groups: their median errors at the present value. found: the fitted value."""

    gpu: str
    precision: str
    groups: dict[str, float]
    present: float
    found: float


Groups = dict[str, list[_Step]]


def groups_by_kind() -> dict[tuple[str, str], Groups]:
    """By GPU of gpus.toml and precision, the steps of each group."""
    kinds: dict[tuple[str, str], Groups] = {}

    def add(group: str, model: Model, step: _Step) -> None:
        training = resolve_training(model, step.parameters.part(ModelParameters))
        kind = kind_of(training, find_gpu(training.gpu))
        kinds.setdefault(kind[:2], {}).setdefault(group, []).append(step)

    taken = [row for row in published_steps.rows() if row["source"] in published_steps.SETS]
    single = [row for row in taken if row["source"] == "vTrain1"]
    for row in [row for row in taken if row["source"] != "vTrain1"] + single[::_EVERY]:
        model, parameters = published_steps.model_of(row), published_steps.parameters_of(row)
        opened = ModelMaker(row["name"], model).empty_workload()
        step = _Step(parameters, partial(_longer, opened, row["seconds"]))
        add(published_steps.SETS[row["source"]], model, step)
    for case in published_more.cases():
        add(case.row["source"], case.model, _Step(case.parameters, case.error))
    return dict(sorted(kinds.items()))


def _longer(opened: Workload, seconds: float, parameters: Parameters) -> float:
    """How much longer the simulated step is than the measured one, as a share of that."""
    return StepTimes().find_step_time(Setup(opened, parameters)).step_time_ns / 1e9 / seconds - 1


def medians(groups: Groups, key: str, value: float | None = None) -> dict[str, float]:
    """The median error of each group, as the GPUs are or with another value of a constant of them."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            name: statistics.median(
                step.error(
                    step.parameters if value is None else _with(step.parameters, key, value, Path(folder))
                )
                for step in steps
            )
            for name, steps in groups.items()
        }


def _with(parameters: Parameters, key: str, value: float, folder: Path) -> Parameters:
    """On the same GPU with another value, as a file in the folder."""
    gpu = parameters.gpu
    assert gpu is not None
    path = folder / f"{Path(gpu).stem}.toml"
    if not path.exists():
        table = (
            {"base": gpu} if gpu in GPU_NAMES else parse_toml(Path(gpu).read_text("utf-8"), "a GPU")["gpu"]
        )
        # Its texts and numbers are written in TOML as in JSON.
        lines = [f"{name} = {json.dumps(one)}" for name, one in (table | {key: value}).items()]
        path.write_text("[gpu]\n" + "\n".join(lines) + "\n", "utf-8")
    return replace(parameters, gpu=str(path))


def fitted(groups: Groups, key: str) -> float:
    """The value at which the median of the groups' medians is nearest 0: steps get shorter as it grows."""

    @cache
    def middle(hundredths: int) -> float:
        return statistics.median(medians(groups, key, hundredths / 100).values())

    least, most = _LEAST, _MOST
    while most - least > 1:
        between = (least + most) // 2
        if middle(between) > 0:
            least = between
        else:
            most = between
    return min(least, most, key=lambda one: abs(middle(one))) / 100


@cache
def all_found() -> tuple[Found, ...]:
    """Every GPU and precision that a published step has."""
    found = []
    for (name, precision), groups in groups_by_kind().items():
        key = "sustained" if precision == "bf16" else f"sustained_{precision.removeprefix('nv')}"
        present = getattr(find_gpu(name), key)
        found.append(Found(name, precision, medians(groups, key), present, fitted(groups, key)))
    return tuple(found)


def table() -> list[list[str]]:
    """A row for each GPU and precision: the medians of its groups, the present value and the one found."""
    rows = [["GPU", "precision", "groups", "their median errors", "value", "found here"]]
    for one in all_found():
        errors = ", ".join(f"{100 * error:+.1f}" for error in sorted(one.groups.values()))
        values = (f"{one.present:.2f}", f"{one.found:.2f}")
        rows.append([one.gpu, one.precision, str(len(one.groups)), f"{errors} %", *values])
    return rows


def main() -> None:
    for one in all_found():
        print(f"{one.gpu} {one.precision}: {one.present:.2f}, found {one.found:.2f}")
        for name, error in one.groups.items():
            print(f"  {100 * error:+6.1f} %  {name}")


if __name__ == "__main__":
    main()
