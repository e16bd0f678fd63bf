"""`--network flows` against SimAI's packet simulator, 112 runs in ../shared/golden/simai_ns3 (skipped
without it).

Bounds are those of docs/accuracy.md; `python -m docs.flow_accuracy` makes its table.
"""

from __future__ import annotations

import pytest

from docs.flow_accuracy import GOLDEN, Measured, effect_of, measure

pytestmark = pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden/simai_ns3 is not here")
# Largest error in percent by effect.
BOUNDS = {
    "inside a server, 16 MiB and more": 0.5,
    "inside a server, to 1 MiB": 5.0,
    "across servers, no shared port": 3.5,
}


@pytest.fixture(scope="module")
def measured() -> list[Measured]:
    return measure(lambda run: run["flows"] < 1000 and "wl_" not in run["id"])


def test_runs_without_shared_ports_are_within_their_bounds(measured: list[Measured]) -> None:
    for one in measured:
        bound = BOUNDS.get(effect_of(one))
        assert bound is None or abs(one.error) <= bound, (one.run["id"], one.error)


def test_as_many_flows_are_sent(measured: list[Measured]) -> None:
    assert all(one.flows == one.run["flows"] for one in measured)


def test_all_to_alls_without_congestion_control_are_met_where_hashes_share_ports(
    measured: list[Measured],
) -> None:
    effect = "shared ports, no congestion control"
    errors = [abs(one.error) for one in measured if effect_of(one) == effect and one.run["op"] == "A2A"]
    assert len(errors) >= 4
    assert sorted(errors)[len(errors) // 2] < 0.1
