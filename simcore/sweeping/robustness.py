"""How far the best points of a sweep stay the best: with noise, with one slow GPU, on more GPUs.

Each of the best is simulated again with jitter, of several seeds, with a GPU that computes more slowly, and
on the next number of GPUs of the sweep. With jitter each rank is simulated by itself: a step of a few
micro-batches stands for the whole, whose time changes by the same factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simcore.model.gpu import find_gpu
from simcore.model.trust import published_error
from simcore.records import replace
from simcore.sweeping.evaluating import candidate_of
from simcore.sweeping.outcome import Robustness, Spread
from simcore.sweeping.pareto_front import measures
from simcore.sweeping.space import Candidate
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.sweeping.evaluating import Evaluator
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.point import Point

_MOST_SEEDS, _JITTER, _SLOW_GPU = 8, 0.02, ("0=1.05",)
# Micro-batches of a step with jitter, for each stage.
_MICROBATCHES = 2
# Passes of a layer on a rank, of all runs with jitter: as many take 20 s of a core (llama-3-70b, 80 layers,
# tp 4, pp 4, cp 2 on 64 GPUs: 64 ranks x 8 micro-batches x 20 layers in 1.7 s). Where one seed takes three
# times that, there is none.
_MOST_PASSES, _TOO_MANY_PASSES = 120_000, 360_000
_TYPICAL_LAYERS = 32
_FEWEST = 2


def find_robustness(evaluator: Evaluator, outcome: Outcome) -> Robustness | None:
    """Returns how often each of the best points is the best of them; None where there is one, or nothing is
    known of other conditions.
    """
    best = [group.point for group in outcome.front.best]
    if len(best) < _FEWEST:
        return None
    wins = dict.fromkeys((point.index for point in best), 0)
    words, count = [], 0
    for name, runs in _runs(evaluator, best):
        winners = [min(times)[1] for times in runs if times]
        for winner in winners:
            wins[winner] += 1
        words += [name] if winners else []
        count += len(winners)
    return Robustness(wins, count, ", ".join(words)) if count else None


# (time of the work, index) of each point that can be.
_Times = list[tuple[float, int]]


def _runs(evaluator: Evaluator, best: Sequence[Point]) -> Iterator[tuple[str, Iterator[_Times]]]:
    """Yields other conditions in words, and the times of the points in each run of them."""
    space = evaluator.definition.space
    base, most_gpus = space.base_parameters, max(point.gpus or 1 for point in best)
    # Of a workload file nobody needs to know how many layers it has.
    layers = getattr(getattr(evaluator.workload.maker, "model", None), "layers", _TYPICAL_LAYERS)
    short = [_shortened(point, layers) for point in best]
    passes = sum(passes for _, passes in short)
    seeds = min(_MOST_SEEDS, max(_MOST_PASSES // max(passes, 1), 1)) if passes <= _TOO_MANY_PASSES else 0
    if seeds and not base.jitter:
        without = [
            _time(evaluator, point, condition) for point, (condition, _) in zip(best, short, strict=True)
        ]
        yield (
            f"{100 * _JITTER:g} % jitter ({plural(seeds, 'seed')})",
            (
                [
                    (measures(point).time * time / plain_time, point.index)
                    for point, (condition, _), plain_time in zip(best, short, without, strict=True)
                    if plain_time
                    and (time := _time(evaluator, point, condition | {"jitter": _JITTER, "seed": seed}))
                ]
                for seed in range(1, seeds + 1)
            ),
        )
    others: list[tuple[str, dict[str, Any]]] = []
    if not base.slow_rank:
        others.append(("one GPU 5 % slow", {"slow_rank": _SLOW_GPU}))
    worlds = next((axis.values for axis in space.axes if axis.field == "world"), ())
    larger_worlds = sorted(world for world in worlds if world > most_gpus)
    if larger_worlds:
        others.append((f"{larger_worlds[0]} GPUs", {"world": larger_worlds[0]}))
    for name, condition in others:
        times = ((_time(evaluator, point, condition), point.index) for point in best)
        yield name, iter([[(time, index) for time, index in times if time]])


def _shortened(point: Point, layers: int) -> tuple[dict[str, Any], int]:
    """Returns (parameters, passes): those of a step of a few micro-batches, and how many layers all ranks
    pass in it.
    """
    layout = point.layout
    pp, microbatches = layout.get("pp") or 1, layout.get("microbatches") or 1
    few = min(microbatches, _MICROBATCHES * pp)
    condition: dict[str, Any] = {}
    if few < microbatches and layout.get("global_batch"):
        condition = {"global_batch": layout["global_batch"] * few // microbatches}
        if "microbatches" in point.parameters:
            condition["microbatches"] = few
    elif few < microbatches:
        condition = {"microbatches": few}
    return condition, (point.gpus or 1) * (few if condition else microbatches) * -(-layers // pp)


def _time(evaluator: Evaluator, point: Point, condition: dict[str, Any]) -> float | None:
    """Returns the time of the work of a point under other conditions; None where it cannot be."""
    candidate = Candidate(point.index, replace(candidate_of(point).parameters, **condition))
    changed = evaluator.evaluate(evaluator.check(candidate))
    return measures(changed).time if changed.is_run and changed.fits else None


def find_spread(evaluator: Evaluator, outcome: Outcome) -> Spread | None:
    """Returns the error against published steps of the kind of the fastest point; None without such steps."""
    if not outcome.front.best:
        return None
    training = evaluator.training_of(candidate_of(outcome.front.best[0].point))
    if training is None:
        return None
    error = published_error(training, find_gpu(training.gpu))
    return Spread(error.median, error.steps) if error.median is not None else None
