"""All layouts of a model that fit a number of ranks and its batch, which `--layouts` stands for.

What is set, or varies on its own, stays as it is. The order is always the same: degrees first, then the
micro-batch size, the schedule with its virtual stages, what is recomputed, and ZeRO. What the trainer of
`--engine-preset` does not run is refused with that reason; overlaps are on as its recipes have them, or vary
where these leave them to the user. Schedules are those that a what-if tries; one that is named (`--vary
schedule=1f1b,dualpipe`) is run whatever the trainer.

Sequence parallelism is on wherever tp is above 1 and divides the tokens: of 240 layouts of four models that
takes 2 to 7 % off the step in the median, and never adds more than 0.03 %; varying it would double the
points. `--vary sequence-parallel=on,off` has both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from simcore.diagnostics import UsageError
from simcore.model.engines import DEFAULT_ENGINE, ENGINES, Engine
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import flag_of
from simcore.program.schedules import SCHEDULES
from simcore.records import NamedTuple, replace
from simcore.sweeping.space import OVERLAPS, Candidate, Space
from simcore.workload import Workload

# What varies unless it is set.
VARIED = (
    "tp", "pp", "cp", "ep", "microbatch_size", "schedule", "virtual_stages", "recompute", "zero",
    "sequence_parallel", *OVERLAPS,
)  # fmt: skip


def list_layouts(workload: Workload, space: Space) -> Iterator[Candidate]:
    """Yields the layouts of each combination of the axes. Raises `UsageError` where there can be none."""
    maker = workload.maker
    if not isinstance(maker, ModelMaker) or maker.model is None:
        raise UsageError("--layouts: found a workload file, which has its layout; a model would fit")
    varied = {*VARIED} - {*space.varied}
    indices = itertools.count()
    for combination in space.combinations():
        for field in ("prefill", "decode"):
            if getattr(combination.parameters, field) is not None:
                option = flag_of(field).option
                raise UsageError(f"--layouts with {option}: layouts are those of training; --vary would fit")
        if combination.parameters.world is None:
            raise UsageError("--layouts: --world says how many GPUs there are, one number or 256,512,1024")
        if combination.parameters.global_batch is None:
            raise UsageError("--layouts: --global-batch says how many sequences a step has, like 1024")
        name = combination.parameters.engine_preset or DEFAULT_ENGINE
        if name not in ENGINES:
            # Whatever is wrong with it is a reason of each layout.
            yield Candidate(next(indices), combination.parameters)
            continue
        layouts, engine = _Layouts(maker.model, combination, varied), ENGINES[name]
        parameters = replace(combination.parameters, engine_preset=name)
        for layout in layouts.all():
            refusal = layouts.refusal(engine, layout)
            for overlaps in [{}] if refusal else layouts.overlaps(engine, layout):
                yield Candidate(next(indices), replace(parameters, **layout, **overlaps), refusal)


class _Layouts(NamedTuple):
    """The layouts of a model with a combination of the axes, as values of the fields in `varied`."""

    model: Model
    combination: Candidate
    varied: set[str]

    def all(self) -> Iterator[dict[str, Any]]:
        """Yields the layouts in their order."""
        model, parameters = self.model, self.combination.parameters
        world, batch = parameters.world or 1, parameters.global_batch or 1
        seq = parameters.seq or model.seq
        of_tensors = [one for one in _divisors(world) if not model.heads % one and not model.ffn % one]
        for tp in self._choices("tp", of_tensors):
            for pp in self._choices("pp", [one for one in _divisors(world // tp) if one <= model.layers]):
                ranks = world // (tp * pp)
                of_sequences = [one for one in _divisors(ranks) if one == 1 or not seq % (2 * one)]
                for cp in self._choices("cp", of_sequences):
                    dp = max(ranks // cp, 1)
                    if batch % dp:
                        continue
                    sequence = parameters.sequence_parallel
                    if self._is_free("sequence_parallel") and tp > 1 and not seq // cp % tp:
                        sequence = "on"
                    for ep in self._choices("ep", _expert_degrees(model, tp, dp * cp)):
                        for size in self._choices("microbatch_size", _divisors(batch // dp)):
                            degrees = {
                                "tp": tp, "pp": pp, "cp": cp, "ep": ep, "microbatch_size": size,
                                "sequence_parallel": sequence,
                            }  # fmt: skip
                            for schedule in self._schedules(tp, pp, batch // (dp * size)):
                                yield degrees | schedule

    def refusal(self, engine: Engine, layout: dict[str, Any]) -> str:
        """Returns why the trainer does not run a layout, "" where it does; what was requested is not asked
        about.
        """
        free = {field for field in layout if self._is_free(field)}
        return engine.misfit(layout, self._replicas(layout), free)

    def overlaps(self, engine: Engine, layout: dict[str, Any]) -> Iterator[dict[str, bool]]:
        """Yields the overlaps that a layout is run with."""
        recipe = engine.recipe(layout, self._replicas(layout))
        free = {field: choices for field, choices in recipe.items() if self._is_free(field)}
        for values in itertools.product(*free.values()):
            yield dict(zip(free, values, strict=True))

    def _replicas(self, layout: dict[str, Any]) -> int:
        """Returns the ranks that hold the same part of the model."""
        return (self.combination.parameters.world or 1) // ((layout["tp"] or 1) * (layout["pp"] or 1))

    def _is_free(self, field: str) -> bool:
        """Returns whether a field varies: it is not set."""
        return field in self.varied and getattr(self.combination.parameters, field) == flag_of(field).default

    def _choices(self, field: str, choices: list[int]) -> list[int]:
        return choices if self._is_free(field) else [getattr(self.combination.parameters, field) or 1]

    def _schedules(self, tp: int, pp: int, microbatches: int) -> Iterator[dict[str, Any]]:
        parameters = self.combination.parameters
        names: list[str | None] = [parameters.schedule]
        if self._is_free("schedule"):
            # On one stage all schedules are the same.
            names = (
                [name for name, schedule in SCHEDULES.items() if schedule.pipelined and schedule.is_candidate]
                if pp > 1
                else [None]
            )
        recomputes = ("none", "selective", "full") if self._is_free("recompute") else (parameters.recompute,)
        for name in names:
            for chunks in self._chunks(pp, name, microbatches):
                for recompute in recomputes:
                    for zero in self._zeros(tp, pp) if self._is_free("zero") else (parameters.zero,):
                        yield {
                            "schedule": name, "virtual_stages": chunks, "recompute": recompute, "zero": zero
                        }  # fmt: skip

    def _chunks(self, pp: int, name: str | None, microbatches: int) -> list[int | None]:
        """Returns the virtual stages with which a schedule fits."""
        layers = self.model.layers
        rules = SCHEDULES.get(name or "1f1b")
        if rules is None or not self._is_free("virtual_stages"):
            return [self.combination.parameters.virtual_stages]
        if rules.misfit(pp, microbatches):
            return []
        if rules.chunks is not None:
            parts = rules.chunks
            return [None] if parts == 1 or not layers % (pp * parts) else []
        return [one for one in _divisors(layers // pp) if one > 1 and not layers % (pp * one)]

    def _zeros(self, tp: int, pp: int) -> tuple[str, ...]:
        """Returns the ZeRO stages that make a difference: without replicas there is nothing to shard."""
        return ("0",) if (self.combination.parameters.world or 1) == tp * pp else ("0", "1", "2", "3")


def _expert_degrees(model: Model, tp: int, data: int) -> list[int]:
    if model.moe is None:
        return [1]
    return [divisor for divisor in _divisors(model.moe.experts) if not tp * data % divisor]


def _divisors(value: int) -> list[int]:
    return [divisor for divisor in range(1, value + 1) if not value % divisor]
