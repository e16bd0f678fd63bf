"""`python -m tests.sweep.exhaustive`: whether leaving points out changes anything of what is looked for.

Five models times so many random spaces, each run whole and with points left out: fronts, the best of each
family and those that are alike to them are compared. In the spaces of --overlaps communication overlaps with
compute, experts are uneven, or durations jitter. The suite runs a few of them (`test_pruning`).
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from simcore.model.maker import ModelMaker
from simcore.model.sizes import Mla, Model, Moe
from simcore.parameters import Parameters
from simcore.records import Struct, replace
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.evaluating import Definition, Evaluator
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import LEFT_OUT, NO_MEMORY, Point
from simcore.sweeping.running import Sweep
from simcore.sweeping.space import Space, parse_axis

# As Llama, GPT, Mixtral, DeepSeek-V2 and Qwen 3 are built, small.
MODELS = {
    one.name: one
    for one in (
        Model("dense", 8, 256, 8, 4, 32, 512, True, 1000, 128),
        Model(
            "old", 8, 256, 8, 8, 32, 1024, False, 1000, 128, dropout=True, bias="all", norm_bias=True,
            positions=128,
        ),
        Model("experts", 8, 256, 8, 4, 32, 512, True, 1000, 128, moe=Moe(8, 2, 128, 1, 1)),
        Model(
            "latent", 8, 256, 8, 8, 32, 512, True, 1000, 128, False, moe=Moe(8, 2, 64, 1, 0),
            mla=Mla(48, 32, 16, 8, 16),
        ),
        Model("large", 16, 1024, 16, 8, 64, 4096, True, 32000, 128, False, qk_norm=True),
    )
}  # fmt: skip
_AXES = (
    "tp=1,2,4", "pp=1,2,4", "microbatch-size=1,2,4", "recompute=none,selective,full", "zero=0,1,2,3",
    "schedule=none,gpipe,zb-h1,zb-2p,zb-v,dualpipe", "world=8,16,32", "cp=1,2",
)  # fmt: skip
_OTHERS = (
    "ep=1,2", "virtual-stages=none,2", "sequence-parallel=on,off", "overlap-grad-reduce=on,off",
    "grad-dtype=fp32,bf16", "gpu=h100,a100-80", "compute-scale=1,0.9", "pp-scatter=on,off", "steps=1,2",
    "comm-scale=1,0.1", "shard-size=none,2", "cp-comm-type=p2p,all-gather,a2a,a2a+p2p",
    "dispatch=none,hierarchical", "cluster=none,gb200-nvl72", "rank-order=tp-ep-dp-pp,tp-pp-dp",
)  # fmt: skip
# What a space with overlaps has in common, and the values of axes that fit all of it.
_OVERLAPS: tuple[dict[str, Any], ...] = (
    {"overlap_grad_reduce": True, "overlap_param_gather": True, "zero": "1"},
    {"overlap_tp": True, "sequence_parallel": "on"},
    {"overlap_tp": True, "sequence_parallel": "on", "overlap_grad_reduce": True},
    {
        "overlap_tp": True, "sequence_parallel": "on", "overlap_grad_reduce": True,
        "overlap_param_gather": True, "zero": "1",
    },
    {"overlap_tp": True, "sequence_parallel": "on", "jitter": 0.02},
    {"overlap_grad_reduce": True, "slow_rank": ("1=1.05",)},
)  # fmt: skip
_FITTING = {"tp=1,2,4": "tp=2,4", "zero=0,1,2,3": "zero=0,1"}
_OBJECTIVES = (("time",), ("time", "memory"), ("time", "memory", "gpus"), ("time", "gpus", "cost"))
_MOST_POINTS = 150


class Case(Struct, frozen=True):
    """A space of a model, and what is looked for in it."""

    model: str
    axes: tuple[str, ...]
    rule: Rule
    limit: str = "80GB"
    wave: int = 8
    layouts: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()

    def evaluator(self, rule: Rule | None) -> Evaluator:
        """What runs its points. rule: by what some are left out."""
        fixed: dict[str, Any] = {"global_batch": 64, "memory_limit": self.limit, "seq": 128}
        if not any(axis.startswith("world") for axis in self.axes):
            fixed["world"] = 4 if self.layouts else 16
        if self.layouts:
            fixed["global_batch"] = 4
        fixed |= dict(self.fixed)
        space = Space(
            Parameters(**fixed), tuple(parse_axis(text) for text in self.axes), layouts=self.layouts
        )
        definition = Definition(("--model", self.model), space, 2.0, rule.text if rule else "", "x")
        return Evaluator(ModelMaker(self.model, MODELS[self.model]).empty_workload(), definition)


def random_case(model: str, chance: random.Random, overlaps: bool = False) -> Case:
    """A space of 2 to 4 axes, of `_MOST_POINTS` points at most; one of sixteen of all layouts. Of its points
    all, most, or few fit into memory. overlaps: whether communication overlaps with compute.
    """
    layouts = chance.random() < 1 / 16
    fixed: dict[str, Any] = {}
    if overlaps:
        fixed = dict(chance.choice(_OVERLAPS))
        if MODELS[model].moe and "jitter" not in fixed and chance.random() < 0.5:
            fixed["expert_imbalance"] = "lognormal:0.8"
    while True:
        axes = [] if layouts else chance.sample(_AXES, chance.randint(2, 3))
        axes += chance.sample(_OTHERS, chance.randint(0, 1))
        if overlaps:
            axes = [_FITTING.get(axis, axis) for axis in axes]
            axes = [axis for axis in axes if axis.partition("=")[0].replace("-", "_") not in fixed]
            if "tp=2,4" not in axes and not layouts and "overlap_tp" in fixed:
                axes.append("tp=2,4")
        if not axes and not layouts:
            continue
        if layouts:
            axes = [axis for axis in axes if axis.startswith(("comm", "compute", "gpu", "pp-scatter"))]
        count = math.prod(axis.count(",") + 1 for axis in axes)
        if count <= _MOST_POINTS:
            break
    rule = Rule(
        chance.choice(_OBJECTIVES), chance.choice((1, 2, 5)), chance.choice(("", "", "tp", "pp", "schedule"))
    )
    case = Case(
        model, tuple(axes), rule, wave=chance.choice((2, 4, 16)), layouts=layouts, fixed=tuple(fixed.items())
    )
    sizes = sorted(
        one.memory for one in Sweep(case.evaluator(None), HereEngine())._check_candidates() if one.memory
    )
    share = chance.choice((0.3, 0.7, 1.0))
    limit = sizes[min(int(share * len(sizes)), len(sizes) - 1)] if sizes else 1
    return replace(case, limit=f"{limit}B")


def looked_for(points: list[Point], rule: Rule) -> tuple[Any, ...]:
    """What a sweep is run for: front, best and families, each point by what it is and takes."""
    front = Outcome(rule, points).front

    def told(found: list[Point]) -> list[Any]:
        return [(one.index, one.step_time_ns, one.memory_peak_bytes, one.cost) for one in found]

    families = {
        family: [told([group.point, *group.others]) for group in groups]
        for family, groups in front.families().items()
    }
    return told(front.front), families


def check(case: Case) -> tuple[int, int]:
    """How many points there are, and how many were left out. Raises AssertionError where that changed what is
    looked for, or where a point takes less than it was said to take at least.
    """
    every = list(Sweep(case.evaluator(None), HereEngine()).points())
    pruned = list(Sweep(case.evaluator(case.rule), HereEngine(), case.rule, wave=case.wave).points())
    assert sorted(one.index for one in pruned) == sorted(one.index for one in every)
    assert looked_for(pruned, case.rule) == looked_for(every, case.rule), case
    ran = {one.index: one for one in every}
    for point in pruned:
        if point.reason == LEFT_OUT:
            # Also that it can be: else it would have been counted among those that cannot.
            whole = ran[point.index]
            assert (point.at_least_ns or 0) <= (whole.step_time_ns or 0), (whole.skipped, case, point)
        elif point.reason == NO_MEMORY:
            assert not ran[point.index].fits, (case, point)
    return len(every), sum(point.reason == LEFT_OUT for point in pruned)


def main(words: Sequence[str] | None = None) -> int:
    """Check random spaces. Exit status 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep.exhaustive", description=__doc__)
    parser.add_argument("--spaces", type=int, default=200, help="of each model (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--overlaps", action="store_true", help="communication overlaps with compute")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    arguments = parser.parse_args(words)
    differ = 0
    for model in arguments.models or MODELS:
        chance = random.Random(f"{model} {arguments.seed}")
        begun, points, left = time.process_time(), 0, 0
        for _ in range(arguments.spaces):
            case = random_case(model, chance, arguments.overlaps)
            try:
                found = check(case)
            except AssertionError as error:
                differ += 1
                print(f"{model}: differs: {case}\n  {str(error)[:2000]}", flush=True)
                continue
            points, left = points + found[0], left + found[1]
        print(
            f"{model}: {arguments.spaces} spaces, {points} points, {left} left out by what they take at "
            f"least, {time.process_time() - begun:.0f} s",
            flush=True,
        )
    print(f"{differ} spaces differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
