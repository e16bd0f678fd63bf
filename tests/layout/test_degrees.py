"""Degrees of parallelism of a run: parameters over the header, what is assumed, what cannot be."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.layout import Layout, resolve_layout
from simcore.workload import open_workload
from simcore.workload.model import DegreeParameters
from tests.findings import finding, findings
from tests.strategies import Cell, Row, make_workload


def resolve(
    header: dict[str, Any], npus: int | None = None, rows: list[Row] | None = None, **parameters: Any
) -> tuple[Layout, list[Diagnostic]]:
    workload = make_workload(rows or [Row("mlp", Cell(1))], **header)
    return resolve_layout(workload, DegreeParameters(**parameters), npus)


def texts(found: list[Diagnostic]) -> list[str]:
    return [diagnostic.text() for diagnostic in found]


FULL = {"tp": 2, "ep": 1, "pp": 2, "all_gpus": 16}


def test_the_header_gives_the_degrees_and_dp_is_what_is_left() -> None:
    assert resolve(FULL) == (Layout(2, 1, 4, 2), [])


@pytest.mark.parametrize(
    ("given", "layout"),
    [
        ({"world": 32}, Layout(2, 1, 8, 2)),
        ({"tp": 2, "ep": 1, "pp": 2}, Layout(2, 1, 4, 2)),
        ({"rank_order": "tp-pp-dp"}, Layout(2, 1, 4, 2, "tp-pp-dp")),
    ],
)
def test_parameters_win_over_the_header(given: dict[str, Any], layout: Layout) -> None:
    assert resolve(FULL, **given) == (layout, [])


NOT_RESCALED = [
    (
        {"tp": 4},
        Layout(4, 1, 2, 2),
        "tp, 2, 4",
    ),
    (
        {"ep": 4},
        Layout(2, 4, 4, 2),
        "ep, 1, 4",
    ),
    ({"pp": 8}, Layout(2, 1, 1, 8), "pp, 2, 8"),
]


@pytest.mark.parametrize(("given", "layout", "message"), NOT_RESCALED)
def test_another_degree_than_the_files_wins_and_it_is_said_that_nothing_is_rescaled(
    given: dict[str, Any], layout: Layout, message: str
) -> None:
    found, diagnostics = resolve(FULL, **given)
    assert found == layout
    assert findings(texts(diagnostics)) == [f"made.txt:1: warning not-rescaled {message}"]


def test_the_files_own_world_wins_over_the_size_of_a_cluster() -> None:
    layout, found = resolve(FULL, npus=64)
    assert (layout.world, found) == (16, [])


# -- what is assumed -----------------------------------------------------------------


def test_missing_degrees_are_1_and_each_is_said() -> None:
    layout, found = resolve({"all_gpus": 8})
    assert layout == Layout(1, 1, 8, 1)
    assert findings(texts(found)) == [
        "made.txt:1: note tp-missing model_parallel_NPU_group, tp, 1",
        "made.txt:1: note ep-missing ep, ep, 1",
        "made.txt:1: note pp-missing pp, pp, 1",
    ]


def test_a_parameter_for_a_missing_degree_leaves_nothing_to_assume() -> None:
    assert resolve({}, tp=2, ep=1, pp=2, world=8) == (Layout(2, 1, 2, 2), [])


def optimizer_rows(reduced: int, gathered: int) -> list[Row]:
    return [
        Row("grad_gather", wg=Cell(1, "ALLGATHER", "dp", gathered)),
        Row("grad_param_comm", wg=Cell(1, "REDUCESCATTER", "dp", reduced)),
        Row("mlp", Cell(1)),
    ]


def test_without_all_gpus_dp_is_what_a_sharded_grad_gather_tells() -> None:
    layout, found = resolve({"tp": 4, "ep": 1, "pp": 1}, rows=optimizer_rows(64 * 100, 100))
    assert layout == Layout(4, 1, 32, 1)
    assert [one.weight for one in found] == ["warning", "assumption"]
    assert findings(texts(found)) == [
        "made.txt:3: warning gather-is-shard AICB, grad_gather, 100 B, 1, 32, AICB, 3 200 B, grad_param_comm",
        "made.txt:1: note all-gpus-missing all_gpus, dp, 32, 3, grad_gather, 1, 32, grad_param_comm, 128",
    ]


def test_seed_000_has_dp_32_and_128_ranks() -> None:
    workload = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    layout, found = resolve_layout(workload, DegreeParameters(), 1024)
    assert layout == Layout(4, 1, 32, 1)
    assert [diagnostic.code for diagnostic in found] == [
        "ep-missing",
        "pp-missing",
        "gather-is-shard",
        "all-gpus-missing",
    ]


@pytest.mark.parametrize(("reduced", "gathered"), [(200, 100), (650, 100), (0, 100), (6400, 0), (100, 100)])
def test_a_quotient_that_is_no_whole_number_above_1_tells_nothing(reduced: int, gathered: int) -> None:
    layout, found = resolve({"tp": 2, "ep": 1, "pp": 1}, rows=optimizer_rows(reduced, gathered))
    assert layout == Layout(2, 1, 1, 1)
    assert [one.weight for one in found] == ["warning"]
    assert findings(texts(found)) == ["made.txt:1: warning all-gpus-missing all_gpus, dp, 1, 2"]


def test_without_all_gpus_a_given_cluster_is_filled_with_whole_replicas() -> None:
    layout, found = resolve({"tp": 3, "ep": 1, "pp": 2}, npus=20)
    assert layout == Layout(3, 1, 3, 2)
    assert findings(texts(found)) == ["made.txt:1: warning all-gpus-missing all_gpus, dp, 3, 20, 18"]


def test_a_cluster_too_small_for_one_replica_tells_nothing() -> None:
    layout, found = resolve({"tp": 3, "ep": 1, "pp": 2}, npus=5)
    assert layout == Layout(3, 1, 1, 2)
    assert finding(texts(found)[0]).endswith(" all_gpus, dp, 1, 6")


def test_ep_above_tp_times_dp_is_clamped_with_a_warning_at_its_key() -> None:
    layout, found = resolve(FULL | {"ep": 32, "column": {"ep": 61}})
    assert layout == Layout(2, 8, 4, 2)
    assert findings(texts(found)) == ["made.txt:1:61: warning ep-clamped ep, 32, tp, 2, dp, 4, ep, 8"]


def test_ep_may_divide_tp_times_dp_only() -> None:
    assert resolve({"tp": 4, "ep": 6, "pp": 1, "all_gpus": 12}) == (Layout(4, 6, 3, 1), [])


# -- what cannot be ------------------------------------------------------------------

REFUSED = [
    ({"rank_order": "dp-tp"}, "--rank-order dp-tp: one of tp-ep-dp-pp, tp-pp-dp is expected"),
    ({"rank_order": "tp\x1b[2J"}, "--rank-order tp\\x1b[2J: one of tp-ep-dp-pp, tp-pp-dp is expected"),
    ({"world": 2**24 + 4}, "world 16777220: at most 16777216 ranks (2^24) are simulated"),
    ({"world": 18}, "world 18 is not a multiple of tp 2 x pp 2 = 4: 16 or 20 would fit"),
    ({"world": 3}, "world 3 is not a multiple of tp 2 x pp 2 = 4: 4 would fit"),
    ({"tp": 5, "pp": 5}, "world 16 is not a multiple of tp 5 x pp 5 = 25: 25 would fit"),
    ({"ep": 3}, "ep 3 divides neither dp 4 nor tp 2 x dp 4 = 8"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_degrees_that_do_not_fit_are_refused_with_their_numbers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        resolve(FULL, **given)
    assert str(refused.value) == message


def test_the_world_may_have_2_to_the_24_ranks() -> None:
    assert resolve(FULL, world=2**24)[0].world == 2**24


@settings(max_examples=60)
@given(*[st.integers(1, 40)] * 3, st.integers(1, 400))
def test_a_layout_fits_the_world_or_says_which_numbers_do_not(tp: int, pp: int, ep: int, world: int) -> None:
    header = {"tp": tp, "pp": pp, "ep": ep, "all_gpus": world}
    dp, left = divmod(world, tp * pp)
    if left or (ep < tp * dp and tp * dp % ep):
        with pytest.raises(InputError, match=rf"^made.txt:1:1: error degrees-do-not-fit .*\b{tp}\b"):
            resolve(header)
        return
    layout, found = resolve(header)
    assert layout == Layout(tp, min(ep, tp * dp), dp, pp)
    assert bool(found) == (ep > tp * dp)
