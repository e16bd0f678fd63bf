"""How far the best points of a sweep stay the best: with noise, with one slow GPU, on more GPUs.

Each of the best is simulated again with jitter, of several seeds, with a GPU that computes more slowly, and
on the next number of GPUs of the sweep.
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

if TYPE_CHECKING:
    from simcore.sweeping.evaluating import Evaluator
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.point import Point

_SEEDS, _JITTER, _SLOW_GPU = range(1, 9), 0.02, ("0=1.05",)
# Each rank is simulated by itself with jitter: eight seeds of ten points of 256 ranks are so many.
_MOST_JITTERED_RANKS = 20_480
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
    for name, conditions in _conditions(evaluator, best):
        runs = 0
        for condition in conditions:
            times = [(_time(evaluator, point, condition), point.index) for point in best]
            runs_of_points = [(time, index) for time, index in times if time is not None]
            if runs_of_points:
                _, winner = min(runs_of_points)
                wins[winner] += 1
                runs += 1
        words += [name] if runs else []
        count += runs
    return Robustness(wins, count, ", ".join(words)) if count else None


def _conditions(evaluator: Evaluator, best: Sequence[Point]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields other conditions, as parameters, with their name."""
    base = evaluator.definition.space.base_parameters
    ranks = max(point.gpus or 1 for point in best) * len(best)
    seeds = _SEEDS[: max(_MOST_JITTERED_RANKS // ranks, 1)] if not base.jitter else ()
    if seeds:
        yield (
            f"{100 * _JITTER:g} % jitter ({len(seeds)} seeds)",
            [{"jitter": _JITTER, "seed": seed} for seed in seeds],
        )
    if not base.slow_rank:
        yield "one GPU 5 % slow", [{"slow_rank": _SLOW_GPU}]
    worlds = next((axis.values for axis in evaluator.definition.space.axes if axis.field == "world"), ())
    larger_worlds = sorted(world for world in worlds if world > max(point.gpus or 1 for point in best))
    if larger_worlds:
        yield f"{larger_worlds[0]} GPUs", [{"world": larger_worlds[0]}]


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
