"""`--network flows` against SimAI's packet simulator, 112 runs in ../shared/golden/simai_ns3 (skipped
without it).

Bounds are those of docs/accuracy.md; `python -m docs.flow_accuracy` makes its table.
"""

from __future__ import annotations

from typing import Any

import pytest

from docs.flow_accuracy import GOLDEN, Measured, effect_of, measure, simulate_once

pytestmark = pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden/simai_ns3 is not here")
# Largest error in percent by effect.
BOUNDS = {
    "inside a server, 16 MiB and more": 0.5,
    "inside a server, to 1 MiB": 5.0,
    "across servers, no shared port": 2.0,
    "shared ports, no congestion control": 14.0,
    "shared ports, DCQCN, all-to-all": 8.0,
    "small workloads": 2.0,
}
# The runs of a few seconds each; the table has all.
_MOST_FLOWS = 1000


def _is_small(run: dict[str, Any]) -> bool:
    return run["flows"] < _MOST_FLOWS or run["id"].startswith("wl_moe2_tp2ep4_h100")


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    # Rings that share ports under DCQCN have no bound: without packets they have as many flows in no time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simcore.flows.packets.MOST_HOPS", 0)
        rings = measure(
            lambda run: _is_small(run) and run.get("op", "A2A") != "A2A" and "ccnone" not in run["conf"]
        )
    simulate_once.cache_clear()
    counted = [one for one in rings if effect_of(one) == "shared ports, DCQCN, rings"]
    ids = {one.run["id"] for one in counted}
    return counted + measure(lambda run: _is_small(run) and run["id"] not in ids)


def test_runs_are_within_their_bounds(measured: list[Measured]) -> None:
    for one in measured:
        bound = BOUNDS.get(effect_of(one))
        assert bound is None or abs(one.error) <= bound, (one.run["id"], one.error)


def test_as_many_flows_are_sent(measured: list[Measured]) -> None:
    assert all(one.flows == one.run["flows"] for one in measured)


def test_half_of_the_runs_with_shared_ports_and_no_congestion_control_are_within_a_percent(
    measured: list[Measured],
) -> None:
    effect = "shared ports, no congestion control"
    errors = sorted(abs(one.error) for one in measured if effect_of(one) == effect)
    assert len(errors) >= 10
    assert errors[len(errors) // 2] < 1.0
    assert errors[int(0.9 * len(errors)) - 1] < 10.0
