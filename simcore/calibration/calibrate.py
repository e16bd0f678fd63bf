"""The calibration: which ranks and kinds are compared, what is minimised, and the results.

* Ranks of a trace are matched to ranks of a simulation; steps that cannot be compared are refused here.
* Compute: of a model one factor for each of its kinds, forward, backward and optimizer (`--layer-scale
  *:fwd=X` ...); of a file one compute scale. A factor is the X that makes the sum over ranks of |measured -
  X simulated| compute least, of the kinds that both steps have. That is a weighted median of the ranks'
  ratios: a single slow rank moves it little.
* Bandwidths: see `bandwidths`.
* Results: the fitted parameters, what decided each, and the remaining difference per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from simcore.calibration.bandwidths import Target, fit_bandwidths
from simcore.calibration.kinds import (
    COMPUTE_KINDS,
    MeasuredTimes,
    SimulatedKind,
    compute_of_ranks,
    in_order,
    kind_ns,
    measured_times,
    simulated_kinds,
)
from simcore.cluster import Cluster
from simcore.diagnostics import Cancelled, UsageError, printable
from simcore.layout import Layout
from simcore.measured import MeasuredRun
from simcore.measured.rank_positions import Degrees
from simcore.networks import Sharing
from simcore.program.overrides import ANY_ROW, layer_scales
from simcore.records import NamedTuple, Struct, field, replace
from simcore.runs.measured import RecordedRun
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.units import format_number, plural


class ComputeFit(Struct, frozen=True):
    """The fit of compute."""

    before: float
    """The compute scale before the fit."""
    after: float
    """The compute scale after it."""
    by: tuple[str, ...]
    """The kinds that decided."""
    why: str = ""
    """Why it was not fitted; "" if it was."""
    factors: dict[str, float] = field(default_factory=dict)
    """Factors of a model, by kind, in addition to the scale, which stays as it was."""


class BandwidthFit(Struct, frozen=True):
    """The fit of a dimension of the cluster; by, together and why are those of `DimensionFit`."""

    dimension: int
    """The index of the dimension."""
    text: str
    """The dimension before the fit, in words."""
    before: float
    """Its bandwidth before the fit, GB/s."""
    after: float
    """Its bandwidth after it, GB/s."""
    by: tuple[str, ...]
    """The names of the kinds that decided."""
    together: tuple[int, ...]
    """The dimensions that got one common factor, if it is not this one alone."""
    why: str
    """Why it was not fitted; "" if it was."""


class KindFit(Struct, frozen=True):
    """One kind of work on the measured ranks. Calls and ns are totals of these ranks, without waiting."""

    name: str
    """The name of the kind."""
    measured_calls: int | None
    """Calls of the trace; None where it has none of the kind."""
    simulated_calls: int | None
    """Calls of the simulation; None where it has none of the kind."""
    measured_ns: int | None
    """The time in the trace; None where no time is known."""
    before_ns: int | None
    """The simulated time before the fit."""
    after_ns: int | None
    """The simulated time after it."""
    fitted: bool
    """Whether the kind decided a parameter."""
    why: str
    """Why it did not; "" if it did."""


class RankFit(Struct, frozen=True):
    """A rank whose compute is longer or shorter than the fit predicts."""

    rank: int
    """The rank of the simulation."""
    measured_rank: int
    """The rank of the trace."""
    factor: float
    """Measured over simulated compute."""
    slow_rank: float
    """The factor that `--slow-rank` needs for it."""


def with_slow_ranks(texts: Sequence[str], off: Sequence[RankFit]) -> tuple[str, ...]:
    """Returns `--slow-rank` as it was given, with the factors of ranks that are off: `37=1.3`, each rank
    once.
    """
    ranks = {fit.rank for fit in off}
    others = [text for text in texts if int(text.partition("=")[0]) not in ranks]
    return (*others, *(f"{fit.rank}={format_number(fit.slow_rank)}" for fit in off))


class Calibration(Struct, frozen=True):
    """A calibration and its results."""

    measured: RecordedRun
    """The measured run."""
    before: Simulation
    """The run with the given parameters."""
    after: Simulation
    """The run with the fitted parameters."""
    ranks: int
    """How many ranks were compared."""
    compute: ComputeFit
    """The fit of compute."""
    bandwidths: tuple[BandwidthFit, ...]
    """The fits of the dimensions."""
    kinds: tuple[KindFit, ...]
    """The kinds of work, in the order of `kinds.ORDER`."""
    off: tuple[RankFit, ...]
    """Ranks whose compute is far from the fit, the farthest first."""
    slowed_step_ns: int | None
    """The step time with the factors of these ranks (`--slow-rank`); None without any."""
    host_ns: int
    """Operations of the host in the trace, of all ranks; a workload has none."""
    gaps_ns: int
    """Host gaps in the trace, of all ranks; a workload has none."""
    notes: tuple[str, ...]
    """Sentences on what limits a comparison of the steps."""

    @property
    def measured_step_ns(self) -> int:
        """The time from the first operation to the end of the last; of the longest rank where their clocks
        differ.
        """
        return self.measured.measured.step_time_ns

    @property
    def slow_ranks(self) -> tuple[str, ...]:
        """What `--slow-rank` takes for `slowed_step_ns`, the given factors included."""
        return with_slow_ranks(self.after.parameters.slow_rank, self.off)

    @property
    def is_fitted(self) -> bool:
        """Whether any parameter could be fitted."""
        return not self.compute.why or any(not bandwidth.why for bandwidth in self.bandwidths)


class RankMatch(NamedTuple):
    """The ranks of a trace and of a simulation that belong to each other.

    ranks: (index in the trace, rank of the simulation) of every rank of the trace. is_assumed: whether the
    layout of the workload was assumed for the trace, which does not state one.
    """

    ranks: list[tuple[int, int]]
    is_assumed: bool


def match_ranks(simulation: Simulation, results: RecordedRun) -> RankMatch:
    """Returns the ranks of the trace, found by tp, dp and stage.

    Raises `UsageError` where the two steps are not the same work on the same layout.
    """
    run, program = results.measured, simulation.program
    path = printable(run.path, 60)
    if not run.timed:
        raise UsageError(
            f"calibrate: {path} is an order of operations without times, expected a trace with durations"
        )
    if program.queued:
        raise UsageError(
            "calibrate: dialect astra-sim-1 queues its collectives by chunks, which no trace shows; "
            "--dialect simai takes the rows as SimAI does"
        )
    layout = simulation.layout
    # A single rank does not tell how many there are, unless its name does.
    degrees = results.rendezvous.matches.positions.degrees if len(run.ranks) > 1 else run.degrees
    is_assumed = degrees.tp is None or degrees.dp is None or degrees.pp is None
    if is_assumed:
        degrees = Degrees(layout.world, layout.tp, layout.dp, layout.pp)
    _check_layout(layout, degrees)
    ranks = _ranks(layout, degrees, run, path)
    microbatches = program.microbatches * simulation.parameters.passes
    # A profiler states no micro-batches.
    if run.microbatches and microbatches != run.microbatches:
        count_texts = [plural(count, "micro-batch") for count in (run.microbatches, microbatches)]
        hint = f" (--microbatches {run.microbatches})" if program.pipelined else ""
        raise UsageError(
            f"calibrate: the trace has {count_texts[0]}, the simulated step {count_texts[1]}{hint}"
        )
    return RankMatch(ranks, is_assumed)


def _ranks(layout: Layout, degrees: Degrees, run: MeasuredRun, path: str) -> list[tuple[int, int]]:
    ranks = []
    for index, rank in enumerate(run.ranks):
        position = degrees.position(rank.rank)
        if position is None:
            raise UsageError(
                f"calibrate: {path} has rank {rank.rank}, the simulated step {plural(layout.world, 'rank')}"
            )
        if rank.stage not in (None, position[2]):
            raise UsageError(
                f"calibrate: rank {rank.rank} of {path} is of stage {rank.stage}; with tp {layout.tp}, "
                f"dp {layout.dp} and pp {layout.pp} it would be of stage {position[2]}"
            )
        ranks.append((index, layout.rank(*position)))
    return ranks


def _check_layout(layout: Layout, degrees: Degrees) -> None:
    theirs = {"tp": degrees.tp, "dp": degrees.dp, "pp": degrees.pp}
    ours = {"tp": layout.tp, "dp": layout.dp, "pp": layout.pp}
    if degrees.exp is not None:
        theirs["ep"], ours["ep"] = degrees.exp, layout.ep
    if theirs == ours:
        return
    sides = [" x ".join(f"{name} {degree}" for name, degree in side.items()) for side in (theirs, ours)]
    world = (degrees.tp or 1) * (degrees.dp or 1) * (degrees.pp or 1)
    flags = [f"--{name} {degree}" for name, degree in theirs.items() if name != "dp"]
    raise UsageError(
        f"calibrate: the trace has {sides[0]}, the simulated step {sides[1]} "
        f"(--world {world} {' '.join(flags)})"
    )


# From this share of difference on a rank is off the fit.
_OFF = 0.1
# The runs that a calibration takes: with the fitted parameters, and with factors on the ranks that are off.
_RUNS = 2
# A factor within this share of the measured compute is final; it is fitted again at most so often.
_CLOSE, _REFITS = 1e-4, 6
_KIND_OF_PHASE = {"fwd": "forward", "ig": "backward", "wg": "backward"}
# The row of a model whose input-gradient cell is the optimizer.
_OPTIMIZER = "grad_param_compute"


def calibrate(setup: Setup, measured: MeasuredRun) -> Calibration:
    """Fits the parameters of a run to a measured step.

    Raises `UsageError` for steps that cannot be compared (layouts or micro-batches that differ, a trace
    without times, dialect astra-sim-1), and what `simulate` raises.
    """
    return calibrate_run(simulate(setup.opened, setup.parameters), measured)


def calibrate_run(
    before: Simulation,
    measured: MeasuredRun,
    progress: Callable[[int, int], None] = lambda finished, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Calibration:
    """Fits the parameters of a finished run as `calibrate` does. progress: gets (finished, total) runs.

    Raises `Cancelled` when `cancelled()` becomes true.
    """
    progress(0, _RUNS)
    results = RecordedRun(measured)
    ranks, is_assumed = match_ranks(before, results)
    simulated_ranks = [simulated for _, simulated in ranks]
    times = measured_times(results)
    measured_compute = [times.compute_ns[index] for index, _ in ranks]
    simulated_compute = compute_of_ranks(before, simulated_ranks)
    compute = _fit_compute(before.parameters.compute_scale, measured_compute, simulated_compute)
    if before.workload.stages and not compute.why:
        ratios = _kind_ratios(compute.by, measured_compute, simulated_compute)
        compute = ComputeFit(compute.before, compute.before, tuple(ratios), factors=ratios)
    kinds_before = simulated_kinds(before, simulated_ranks)
    refused = _unfitted_kinds(times, kinds_before)
    bandwidths = _fit_bandwidths(before, times, kinds_before, refused, cancelled)
    after = _fitted_run(before, compute, bandwidths, cancelled)
    attempts: dict[str, tuple[float, float]] = {}
    for _ in range(_REFITS if compute.factors else 0):
        # Rows that backward runs forward again have the factor of forward.
        left = _kind_ratios(compute.by, measured_compute, compute_of_ranks(after, simulated_ranks))
        if all(abs(ratio - 1) < _CLOSE for ratio in left.values()):
            break
        factors = {
            kind: _next_factor(factor, left.get(kind, 1.0), kind, attempts)
            for kind, factor in compute.factors.items()
        }
        compute = replace(compute, factors=factors)
        after = _fitted_run(before, compute, bandwidths, cancelled)
    progress(1, _RUNS)
    rank_ids = [measured.ranks[index].rank for index, _ in ranks]
    slowdowns = [_slowdown(before, rank) for rank in simulated_ranks]
    off = _ranks_off(
        list(zip(simulated_ranks, rank_ids, slowdowns, strict=True)),
        measured_compute,
        compute_of_ranks(after, simulated_ranks),
    )
    kinds_after = simulated_kinds(after, simulated_ranks)
    return Calibration(
        results, before, after, len(ranks), compute, bandwidths,
        _kinds(measured_compute, times, (kinds_before, kinds_after), (compute, bandwidths), refused),
        off, _slowed_step_ns(after, off, cancelled), times.host_ns, times.gaps_ns,
        _notes(before, measured, is_assumed),
    )  # fmt: skip


def _kind_ratios(
    kinds: Sequence[str], measured: Sequence[dict[str, int]], simulated: Sequence[dict[str, int]]
) -> dict[str, float]:
    """Returns the ratio of measured to simulated compute by kind, the weighted median of the ranks."""
    kind_ratios = {}
    for kind in kinds:
        ranks = zip(measured, simulated, strict=True)
        pairs = [(own[kind] / model[kind], model[kind]) for own, model in ranks if model[kind]]
        ratio = _weighted_median(pairs)
        if ratio:
            kind_ratios[kind] = ratio
    return kind_ratios


def _next_factor(factor: float, ratio: float, kind: str, attempts: dict[str, tuple[float, float]]) -> float:
    """Returns a factor with which a kind takes as long as measured.

    ratio: measured over simulated with the last factor. attempts: (factor, simulated over measured) of the
    attempt before: the time of a kind is linear in its factor.
    """
    share = 1 / ratio
    before = attempts.get(kind)
    attempts[kind] = factor, share
    if before is not None and before[1] != share:
        secant = factor + (1 - share) * (factor - before[0]) / (share - before[1])
        if secant > 0:
            return secant
    return factor * ratio


def _layer_scales(texts: Sequence[str], factors: Mapping[str, float]) -> tuple[str, ...]:
    """Returns `--layer-scale` with the factor of each kind on all rows, on top of the given ones."""
    scales = layer_scales(texts)
    for phase, kind in _KIND_OF_PHASE.items():
        if kind in factors:
            scales.setdefault((ANY_ROW, phase), 1.0)
    if "optimizer" in factors:
        scales.setdefault((_OPTIMIZER, "ig"), scales.get((ANY_ROW, "ig"), 1.0))
    return tuple(
        f"{name}:{phase}={factor * factors.get(_kind_of(name, phase), 1.0):.6g}"
        for (name, phase), factor in scales.items()
    )


def _kind_of(name: str, phase: str) -> str:
    return "optimizer" if name == _OPTIMIZER else _KIND_OF_PHASE[phase]


def _fit_compute(
    scale: float, measured: Sequence[dict[str, int]], simulated: Sequence[dict[str, int]]
) -> ComputeFit:
    both = tuple(
        kind
        for kind in COMPUTE_KINDS
        if any(kinds[kind] for kinds in measured) and any(kinds[kind] for kinds in simulated)
    )
    if not both:
        return ComputeFit(scale, scale, (), "no compute takes time in both steps")
    pairs = []
    for own, model in zip(measured, simulated, strict=True):
        have, has = sum(own[kind] for kind in both), sum(model[kind] for kind in both)
        if has:
            pairs.append((have / has, has))
    factor = _weighted_median(pairs)
    if not factor:
        return ComputeFit(scale, scale, both, "most ranks of the trace compute nothing")
    return ComputeFit(scale, float(f"{scale * factor:.6g}"), both)


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    """Returns the median of (value, weight): half of the weight on either side; the mean of two values where
    it lies between.
    """
    pairs = sorted(pairs)
    whole = sum(weight for _, weight in pairs)
    below = 0
    for index, (value, weight) in enumerate(pairs):
        below += weight
        if 2 * below == whole:
            return (value + pairs[index + 1][0]) / 2
        if 2 * below > whole:
            return value
    raise AssertionError("weights are positive")


def _unfitted_kinds(times: MeasuredTimes, simulated: dict[str, SimulatedKind]) -> dict[str, str]:
    """Returns {kind of communication that decides nothing: why}."""
    refused = {}
    for kind in {*times.kinds, *simulated}.difference(COMPUTE_KINDS):
        if kind not in simulated:
            refused[kind] = "only in the trace"
        elif kind not in times.kinds:
            refused[kind] = "only in the workload"
        elif not times.kinds[kind].is_whole:
            unknown = times.kinds[kind].unknown.most_common()
            refused[kind] = ", ".join(f"{plural(count, 'call')} {why}" for why, count in unknown)
        elif not times.kinds[kind].total_ns:
            refused[kind] = "takes no time in the trace"
    return refused


def _fit_bandwidths(
    before: Simulation,
    times: MeasuredTimes,
    simulated: dict[str, SimulatedKind],
    refused: dict[str, str],
    cancelled: Callable[[], bool],
) -> tuple[BandwidthFit, ...]:
    """Returns one fit for each dimension; none on a network without dimensions."""
    if not before.has_dimensions:
        return ()

    def ns_of(kind: str) -> Callable[[Cluster], int]:
        def ns_on(cluster: Cluster) -> int:
            if cancelled():
                raise Cancelled
            return kind_ns(before, simulated[kind], cluster)

        return ns_on

    targets = [
        Target(kind, frozenset(simulated[kind].dimensions), times.kinds[kind].total_ns, ns_of(kind))
        for kind in in_order(set(simulated))
        if kind not in COMPUTE_KINDS and kind not in refused
    ]
    fitted_dimensions = fit_bandwidths(before.cluster, targets)
    return tuple(
        BandwidthFit(
            fitted_dimension.dimension,
            dimension.text(),
            dimension.bandwidth,
            fitted_dimension.gbps,
            fitted_dimension.by,
            fitted_dimension.together,
            fitted_dimension.why,
        )
        for dimension, fitted_dimension in zip(before.cluster.dims, fitted_dimensions, strict=True)
    )


def _fitted_run(
    before: Simulation,
    compute: ComputeFit,
    bandwidths: Sequence[BandwidthFit],
    cancelled: Callable[[], bool],
) -> Simulation:
    """Returns the run with the fitted parameters."""
    fitted = replace(before.parameters, compute_scale=compute.after)
    if compute.factors:
        fitted = replace(fitted, layer_scale=_layer_scales(before.parameters.layer_scale, compute.factors))
    if any(not bandwidth.why for bandwidth in bandwidths):
        dims = zip(before.cluster.dims, bandwidths, strict=True)
        flags = tuple(replace(dimension, bandwidth=fit.after).flag() for dimension, fit in dims)
        fitted = replace(fitted, dim=flags)
    after = simulate(before.workload, fitted, cancelled)
    if after.layout != before.layout:
        # Explicit dimensions would decide the number of ranks where nothing else does.
        after = simulate(before.workload, replace(fitted, world=before.layout.world), cancelled)
    return after


def _kinds(
    measured_compute: Sequence[dict[str, int]],
    times: MeasuredTimes,
    simulated: tuple[dict[str, SimulatedKind], dict[str, SimulatedKind]],
    fits: tuple[ComputeFit, Sequence[BandwidthFit]],
    refused: dict[str, str],
) -> tuple[KindFit, ...]:
    """Returns a line for each kind that either step has.

    simulated: before and after.
    """
    before, after = simulated
    compute, bandwidths = fits
    deciding = {kind for bandwidth in bandwidths if not bandwidth.why for kind in bandwidth.by}
    deciding |= set(() if compute.why else compute.by)
    compute_ns = {kind: sum(kinds[kind] for kinds in measured_compute) for kind in COMPUTE_KINDS}
    kind_fits = []
    for kind in in_order({*before, *times.kinds, *(kind for kind, ns in compute_ns.items() if ns)}):
        ours = before.get(kind)
        if kind in COMPUTE_KINDS:
            calls, ns = None, compute_ns[kind] or None
            why = "only in the trace" if ours is None else "only in the workload" if ns is None else ""
        else:
            theirs = times.kinds.get(kind)
            calls = theirs.calls if theirs else None
            ns = theirs.total_ns if theirs and theirs.is_whole else None
            why = refused.get(kind, "")
        here = (ours.calls, ours.total_ns, after[kind].total_ns) if ours else (None, None, None)
        kind_fits.append(KindFit(kind, calls, here[0], ns, here[1], here[2], kind in deciding, why))
    return tuple(kind_fits)


def _slowdown(simulation: Simulation, rank: int) -> float:
    folding = simulation.timeline.folding
    return folding.classes[folding.class_of(rank)].slowdown


def _ranks_off(
    ranks: Sequence[tuple[int, int, float]],
    measured: Sequence[dict[str, int]],
    after: Sequence[dict[str, int]],
) -> tuple[RankFit, ...]:
    """Returns the ranks whose compute is far from the fit.

    ranks: (rank, its rank in the trace, its slowdown).
    """
    fits = []
    for (rank, measured_rank, slowdown), own, model in zip(ranks, measured, after, strict=True):
        both = [kind for kind in COMPUTE_KINDS if own[kind] and model[kind]]
        has, have = sum(model[kind] for kind in both), sum(own[kind] for kind in both)
        if has and abs(have - has) > _OFF * has:
            factor = have / has
            fits.append(
                RankFit(rank, measured_rank, float(f"{factor:.3g}"), float(f"{slowdown * factor:.3g}"))
            )
    return tuple(sorted(fits, key=lambda fit: (-abs(fit.factor - 1), fit.rank)))


def _slowed_step_ns(after: Simulation, off: Sequence[RankFit], cancelled: Callable[[], bool]) -> int | None:
    """Returns the step time with the factors of the ranks that are off; None without any."""
    if not off:
        return None
    slow_rank = with_slow_ranks(after.parameters.slow_rank, off)
    slowed = replace(after.parameters, slow_rank=slow_rank)
    return simulate(after.workload, slowed, cancelled).step_time_ns


def _notes(before: Simulation, measured: MeasuredRun, is_assumed: bool) -> tuple[str, ...]:
    notes = []
    if not measured.microbatches:
        notes.append("the trace does not say how many micro-batches its step has: taken to be as simulated")
    if is_assumed:
        notes.append("the trace does not say how its ranks are laid out: taken to be as in the workload")
    if not measured.concurrent:
        notes.append(
            "the ranks of the trace did not run together: the measured step is that of the longest rank"
        )
    if len(measured.ranks) < before.layout.world:
        notes.append(f"of {plural(before.layout.world, 'rank')} the trace has {len(measured.ranks)}")
    if not before.has_dimensions:
        network = printable(before.setup.network_name, 60)
        notes.append(f"--network {network} has no dimensions whose bandwidths could be fitted")
    if isinstance(before.network, Sharing):
        notes.append(
            "bandwidths are fitted to an idle network; what traffic costs is in the simulated times alone"
        )
    if before.parameters.comm_scale != 1.0:
        notes.append(
            f"bandwidths are fitted beside --comm-scale {format_number(before.parameters.comm_scale)}"
        )
    return tuple(notes)
