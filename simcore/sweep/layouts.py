"""All layouts of a model that fit a number of ranks and its batch: what `--layouts` stands for.

What was given, or varies by itself, stays as it is. The order is the same everywhere: degrees first, then the
micro-batch size, the schedule with its virtual stages, what is recomputed, and ZeRO. Schedules are those that
a what-if tries; others are named (`--vary schedule=1f1b,dualpipe`).

Sequence parallelism is on wherever tp is above 1 and divides the tokens: of 240 layouts of four models that
takes 2 to 7 % off the step in the median, and never adds more than 0.03 %; twice as many points would be
looked at for it. `--vary sequence-parallel=on,off` has both.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.diagnostics import UsageError
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.model.training import OF_MEGATRON
from simcore.parameters import Parameters, flag_of
from simcore.program.schedules import SCHEDULES
from simcore.records import replace
from simcore.sweep.space import Space
from simcore.workload import Workload

# What varies, each until it is given.
VARIED = (
    "tp", "pp", "cp", "ep", "microbatch_size", "schedule", "virtual_stages", "recompute", "zero",
    "sequence_parallel",
)  # fmt: skip


def layouts_of(workload: Workload, space: Space) -> Iterator[Parameters]:
    """The layouts of each combination of the axes. Raises `UsageError` where there can be none."""
    maker = workload.maker
    if not isinstance(maker, ModelMaker) or maker.model is None:
        raise UsageError("--layouts: found a workload file, which has its layout; a model would fit")
    varied = {*VARIED} - {*space.varied}
    for parameters in space.combinations():
        if parameters.world is None:
            raise UsageError("--layouts: --world says how many GPUs there are, one number or 256,512,1024")
        if parameters.global_batch is None:
            raise UsageError("--layouts: --global-batch says how many sequences a step has, like 1024")
        yield from _layouts(maker.model, parameters, varied)


def _layouts(model: Model, given: Parameters, varied: set[str]) -> Iterator[Parameters]:
    world, batch = given.world or 1, given.global_batch or 1

    def free(field: str) -> bool:
        return field in varied and getattr(given, field) == flag_of(field).default

    def of(field: str, choices: list[int]) -> list[int]:
        return choices if free(field) else [getattr(given, field) or 1]

    seq = given.seq or model.seq
    for tp in of(
        "tp",
        [divisor for divisor in _divisors(world) if not model.heads % divisor and not model.ffn % divisor],
    ):
        for pp in of("pp", [divisor for divisor in _divisors(world // tp) if divisor <= model.layers]):
            ranks = world // (tp * pp)
            for cp in of(
                "cp", [divisor for divisor in _divisors(ranks) if divisor == 1 or not seq % (2 * divisor)]
            ):
                dp = max(ranks // cp, 1)
                if batch % dp:
                    continue
                sequence = given.sequence_parallel
                if free("sequence_parallel") and tp > 1 and not seq // cp % tp:
                    sequence = "on"
                for ep in of("ep", _expert_degrees(model, tp, dp * cp)):
                    for size in of("microbatch_size", _divisors(batch // dp)):
                        layout = replace(
                            given, tp=tp, pp=pp, cp=cp, ep=ep, microbatch_size=size,
                            sequence_parallel=sequence,
                        )  # fmt: skip
                        yield from _schedules(model, layout, batch // (dp * size), free)


def _schedules(model: Model, layout: Parameters, microbatches: int, free) -> Iterator[Parameters]:  # type: ignore[no-untyped-def]
    pp = layout.pp or 1
    names: list[str | None] = [layout.schedule]
    if free("schedule"):
        # Of one stage they are all the same.
        names = (
            [name for name, schedule in SCHEDULES.items() if schedule.pipelined and schedule.tried]
            if pp > 1
            else [None]
        )
    for name in names:
        for chunks in _chunks(model, layout, name, microbatches, free):
            for recompute in ("none", "selective", "full") if free("recompute") else (layout.recompute,):
                for zero in _zeros(layout, name) if free("zero") else (layout.zero,):
                    yield replace(
                        layout, schedule=name, virtual_stages=chunks, recompute=recompute, zero=zero
                    )


def _chunks(model: Model, layout: Parameters, name: str | None, microbatches: int, free) -> list[int | None]:  # type: ignore[no-untyped-def]
    """The virtual stages with which a schedule fits."""
    pp = layout.pp or 1
    rules = SCHEDULES.get(name or "1f1b")
    if rules is None or not free("virtual_stages"):
        return [layout.virtual_stages]
    if rules.misfit(pp, microbatches):
        return []
    if rules.chunks is not None:
        parts = rules.chunks
        return [None] if parts == 1 or not model.layers % (pp * parts) else []
    return [
        divisor
        for divisor in _divisors(model.layers // pp)
        if divisor > 1 and not model.layers % (pp * divisor)
    ]


def _zeros(layout: Parameters, schedule: str | None) -> tuple[str, ...]:
    """Where nobody shares the weights, there is nothing to share out; pipelines of Megatron refuse ZeRO 3."""
    pp = layout.pp or 1
    ranks = (layout.world or 1) // ((layout.tp or 1) * pp)
    if ranks == 1:
        return ("0",)
    return ("0", "1", "2") if pp > 1 and schedule in (None, *OF_MEGATRON) else ("0", "1", "2", "3")


def _expert_degrees(model: Model, tp: int, data: int) -> list[int]:
    if model.moe is None:
        return [1]
    return [divisor for divisor in _divisors(model.moe.experts) if not tp * data % divisor]


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if not number % divisor]
