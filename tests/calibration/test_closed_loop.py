"""A calibration gives back the parameters that a step was made with, whatever it begins with."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.calibration import calibrate, calibrate_run
from simcore.diagnostics import Cancelled
from simcore.parameter_values.parameters_file import read_parameters, toml_of
from simcore.parameters import Parameters
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload

from .closed_loop import a_workload, measured_of

# (tp, dp, pp) and dimensions: one for all groups, one for each, groups that share one.
CASES = (
    ((2, 2, 2), ("switch:8",)),
    ((2, 2, 2), ("ring:2", "fully-connected:2", "switch:2")),
    ((2, 2, 2), ("switch:4", "switch:2")),
    ((2, 2, 2), ("fully-connected:2", "ring:4")),
    ((4, 1, 2), ("ring:4", "switch:2")),
    ((2, 4, 1), ("switch:2", "switch:4")),
    ((2, 4, 1), ("switch:4", "switch:2")),
)
# Not so fast that a message takes but some hundred ns, which are whole.
FACTORS = st.floats(0.02, 8)


def dims(shapes: tuple[str, ...], bandwidths: list[float]) -> tuple[str, ...]:
    return tuple(f"{shape}:{gbps!r}:500" for shape, gbps in zip(shapes, bandwidths, strict=False))


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(CASES), st.floats(0.1, 8), st.floats(0.1, 8),
    st.lists(FACTORS, min_size=3, max_size=3), st.integers(0, 10**6),
)  # fmt: skip
def test_a_calibration_recovers_the_parameters_of_the_step(
    case: tuple[tuple[int, int, int], tuple[str, ...]],
    scale: float,
    given_scale: float,
    factors: list[float],
    seed: int,
) -> None:
    (tp, dp, pp), shapes = case
    workload = a_workload(tp, dp, pp, 1 if pp == 1 else 3)
    given_gbps = [300.0, 40.0, 25.0]
    true_gbps = [gbps * factor for gbps, factor in zip(given_gbps, factors, strict=True)]
    true = Parameters(compute_scale=scale, dim=dims(shapes, true_gbps))
    measured = measured_of(workload, true, seed)
    begun = Parameters(compute_scale=given_scale, dim=dims(shapes, given_gbps))
    found = calibrate(Setup(workload, begun), measured)
    assert found.compute.after == pytest.approx(scale, rel=1e-4)
    for one, gbps in zip(found.bandwidths, true_gbps, strict=False):
        assert not one.why
        # Times are whole ns, and an algorithm takes several floors of them.
        assert one.after == pytest.approx(gbps, rel=2e-3)
    for kind in found.kinds:
        assert kind.fitted
        assert kind.measured_ns is not None
        assert kind.after_ns == pytest.approx(kind.measured_ns, rel=1e-3)
    assert found.off == ()
    assert found.slowed_step_ns is None


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 8), FACTORS, st.integers(0, 10**6))
def test_dimensions_that_nothing_crosses_alone_get_one_factor(scale: float, factor: float, seed: int) -> None:
    workload = a_workload(4, 1, 1, 1)
    shapes, begun = ("ring:2", "switch:2"), [300.0, 40.0]
    true = Parameters(compute_scale=scale, dim=dims(shapes, [gbps * factor for gbps in begun]))
    found = calibrate(Setup(workload, Parameters(dim=dims(shapes, begun))), measured_of(workload, true, seed))
    assert [one.together for one in found.bandwidths] == [(0, 1), (0, 1)]
    assert [one.after / one.before for one in found.bandwidths] == pytest.approx([factor] * 2, rel=2e-3)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.2, 5), st.integers(0, 7), st.integers(2, 5), st.integers(0, 10**6))
def test_a_slow_rank_moves_no_fit_and_is_named_with_its_factor(
    scale: float, rank: int, slower: int, seed: int
) -> None:
    workload = a_workload(2, 2, 2)
    shapes = ("switch:4", "switch:2")
    true = Parameters(compute_scale=scale, dim=dims(shapes, [120.0, 9.0]))
    measured = measured_of(workload, true, seed, {rank: slower})
    found = calibrate(Setup(workload, Parameters(dim=dims(shapes, [450.0, 50.0]))), measured)
    assert found.compute.after == pytest.approx(scale, rel=1e-4)
    assert [one.after for one in found.bandwidths] == pytest.approx([120.0, 9.0], rel=2e-3)
    assert [(one.rank, one.slow_rank) for one in found.off] == [(rank, pytest.approx(slower, rel=5e-3))]
    assert found.slowed_step_ns is not None
    assert found.slowed_step_ns > found.after.step_time_ns


def test_what_is_saved_is_read_as_the_same_parameters(tmp_path: Path) -> None:
    workload = a_workload(2, 2, 2)
    true = Parameters(compute_scale=1.37, dim=("switch:4:111.5:500", "switch:2:7.25:1000"))
    begun = Parameters(cluster="a100-8", microbatches=2)
    found = calibrate(Setup(workload, begun), measured_of(workload, true, 1))
    path = tmp_path / "fitted.toml"
    path.write_text(toml_of(found.after.parameters.explicit_values()))
    assert Parameters(**read_parameters(str(path))) == found.after.parameters
    assert found.after.parameters.cluster == "a100-8", "its memory still counts"


def test_the_number_of_ranks_stays_where_only_a_cluster_would_tell_it() -> None:
    # A file that states no ranks takes those of a cluster with dimensions, and a preset has none.
    made = a_workload(2, 1, 2)
    workload = replace(made, header=replace(made.header, all_gpus=None))
    true = Parameters(dim=("switch:8:100:500",), world=4)
    found = calibrate(Setup(workload, Parameters()), measured_of(workload, true, 3))
    assert found.after.layout == found.before.layout
    assert found.after.parameters.world == 4


def test_of_two_ranks_that_differ_the_scale_is_the_mean() -> None:
    workload = a_workload(2, 1, 1, 1)
    found = calibrate(Setup(workload, Parameters()), measured_of(workload, Parameters(), 1, {1: 3}))
    assert found.compute.after == 2
    assert [(one.rank, one.slow_rank) for one in found.off] == [(0, 0.5), (1, 1.5)]


def test_of_a_run_that_is_there_it_is_the_same_says_how_far_it_is_and_stops_whenever_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = a_workload(2, 2, 2)
    true = Parameters(compute_scale=1.5, dim=("switch:4:100:500", "switch:2:9:500"))
    measured = measured_of(workload, true, 1, {3: 2})
    begun = Parameters(dim=("switch:4:450:500", "switch:2:50:500"))
    before = simulate(workload, begun)
    told: list[tuple[int, int]] = []
    given: list[object] = []
    asked = 0

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    def counted() -> bool:
        nonlocal asked
        asked += 1
        return False

    def recorded(workload: Workload, parameters: Parameters, cancelled: Callable[[], bool]) -> Simulation:
        given.append(cancelled)
        return simulate(workload, parameters, cancelled)

    expected = calibrate(Setup(workload, begun), measured)
    with monkeypatch.context() as patch:
        patch.setattr(import_module("simcore.calibration.calibrate"), "simulate", recorded)
        found = calibrate_run(before, measured, progress, counted)
    assert (found.after.parameters, found.kinds, found.off) == (
        expected.after.parameters,
        expected.kinds,
        expected.off,
    )
    assert found.slowed_step_ns == expected.slowed_step_ns is not None
    assert told == [(0, 2), (1, 2)]
    assert asked > 50, "each step of a search asks"
    assert given == [counted, counted], "and both runs can"
    # At the first question, within a search, and in the run with the slow ranks, which is the last.
    for last in (1, asked // 2, asked):
        left = iter(range(last - 1, -1, -1))
        with pytest.raises(Cancelled):
            calibrate_run(before, measured, cancelled=lambda left=left: next(left) == 0)  # type: ignore[misc]
