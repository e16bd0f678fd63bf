"""`python -m tests.sweep.own_commands`: whether a point takes what `wltui report` of its own command says.

Points of models by name, so many of each feature that makes a step time hard to find; the suite looks at 40
of them (`test_own_commands`).
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import sys
import time
from collections.abc import Sequence
from typing import Any

from simcore.sweeping import step_time
from simcore.sweeping.point import Point
from tests.command_line.running import wltui_here
from tests.sweep.made import evaluator_of

_OVERLAPS: dict[str, Any] = {
    "overlap_grad_reduce": True, "overlap_param_gather": True, "zero": "1", "overlap_tp": True,
    "sequence_parallel": "on",
}  # fmt: skip
# What a feature asks for, and the values of each other parameter that go with it.
FEATURES: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "tp overlaps": ({"overlap_tp": True, "sequence_parallel": "on"}, {"tp": (2, 4, 8), "pp": (1, 2, 4)}),
    "gradients overlap": ({"overlap_grad_reduce": True}, {"pp": (1, 2, 4), "zero": ("0", "1")}),
    "all overlaps": (_OVERLAPS, {"tp": (2, 4), "pp": (1, 2, 4), "recompute": ("none", "selective", "full")}),
    "overlaps, interleaved": (
        {**_OVERLAPS, "schedule": "interleaved"},
        {"tp": (2, 4), "pp": (2, 4), "virtual_stages": (2, 4)},
    ),
    "overlaps, cp": (
        {**_OVERLAPS, "cp": 2}, {"tp": (2,), "pp": (1, 2, 4), "cp_comm_type": ("p2p", "all-gather", "a2a")},
    ),
    "overlaps, zero bubble": (
        _OVERLAPS, {"tp": (2, 4), "pp": (2, 4), "schedule": ("zb-h1", "zb-v", "v-half"), "steps": (1, 2)},
    ),
    "ZeRO 3": ({"zero": "3"}, {"tp": (1, 2), "cp": (1, 2), "prefetch": (None, "0"), "shard_size": (None, 2)}),
    "uneven experts": (
        {"model": "mixtral-8x7b", "expert_imbalance": "lognormal:0.8"},
        {"ep": (2, 4, 8), "tp": (1, 2), "pp": (1, 2, 4), "zero": ("0", "1")},
    ),
    "uneven experts, overlaps": (
        {"model": "mixtral-8x7b", "expert_imbalance": "lognormal:0.8", **_OVERLAPS},
        {"ep": (2, 4), "tp": (2, 4), "pp": (1, 2), "cp": (1, 2)},
    ),
    "jitter, a slow GPU": (
        {"jitter": 0.02, "world": 8, "overlap_grad_reduce": True},
        {"tp": (1, 2), "pp": (1, 2), "slow_rank": ((), ("3=1.05",)), "seed": (0, 5)},
    ),
}  # fmt: skip


def random_point(feature: str, chance: random.Random) -> Point:
    """A point that has a feature, simulated as in a sweep."""
    common, values = FEATURES[feature]
    while True:
        fixed = {
            "world": 16,
            "microbatch_size": 1,
            "model": "llama-3-8b",
            "gpu": chance.choice(("h100", "b200")),
        }
        fixed |= common | {name: chance.choice(choices) for name, choices in values.items()}
        fixed["global_batch"] = fixed["world"] * chance.choice((1, 2))
        if fixed.get("schedule") == "zb-v":
            fixed["virtual_stages"] = 2
        evaluator = evaluator_of(**fixed)
        point = evaluator.evaluate(evaluator.check(next(evaluator.definition.space.combinations())))
        if point.step_time_ns is not None:
            return point


def reported_ns(point: Point) -> int:
    """What the report of a point's own command says."""
    step_ns: int = json.loads(wltui_here(*shlex.split(point.command)[1:], "--json").stdout)["step_time_ns"]
    return step_ns


def main(words: Sequence[str] | None = None) -> int:
    """Check random points of each feature. Exit status 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.sweep.own_commands", description=__doc__)
    parser.add_argument("--points", type=int, default=50, help="of each feature (default 50)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    whole_runs: list[object] = []
    simulated = step_time._simulated
    step_time._simulated = lambda setup: whole_runs.append(setup) or simulated(setup)  # type: ignore[func-returns-value,assignment]
    differ = 0
    for feature in FEATURES:
        chance = random.Random(f"{feature} {arguments.seed}")
        seconds = 0.0
        for _ in range(arguments.points):
            begun = time.process_time()
            point = random_point(feature, chance)
            seconds += time.process_time() - begun
            if reported_ns(point) != point.step_time_ns:
                differ += 1
                print(f"{feature}: {point.step_time_ns} ns: {point.command}", flush=True)
        print(
            f"{feature}: {arguments.points} points, {len(whole_runs)} whole runs, "
            f"{1e3 * seconds / arguments.points:.0f} ms of processor time each",
            flush=True,
        )
        whole_runs.clear()
    print(f"{differ} points differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
