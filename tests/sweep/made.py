"""Points and evaluators that tests of sweeps share."""

from __future__ import annotations

from simcore.parameters import Parameters
from simcore.sources.inputs import open_model
from simcore.sweeping.evaluating import Definition, Evaluator
from simcore.sweeping.point import SCHEMA, Point
from simcore.sweeping.space import Space, parse_axis, parse_conditions


def made_point(number: int, step: int | None, memory: int = 10, gpus: int = 8, **layout: object) -> Point:
    """A point with these figures; without a step one that was left out."""
    return Point(
        schema=SCHEMA, sweep="s", version="v", input="i", rule="", point=number, parameters={},
        command="wltui report x",
        layout={"tp": 1, **layout}, step_time_ns=step, tokens_per_s=None, memory_peak_bytes=memory,
        memory_limit_bytes=100, gpus=gpus, cost=None, work=1, at_least_ns=None,
        skipped=None if step is not None else "cannot be: tp 3 does not fit 4",
    )  # fmt: skip


def evaluator_of(
    *axes: str, model: str = "llama-3-8b", where: tuple[str, ...] = (), layouts: bool = False, rule: str = "",
    **fixed: object,
) -> Evaluator:  # fmt: skip
    """An evaluator over a small space of a model."""
    space = Space(Parameters(**fixed), tuple(map(parse_axis, axes)), parse_conditions(where), layouts)  # type: ignore[arg-type]
    return Evaluator(open_model(model), Definition(("--model", model), space, rule=rule, input="x"))
