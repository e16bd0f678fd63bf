"""What can be tried with a link, and with the paths of flows."""

from __future__ import annotations

import pytest

from simcore.analysis.what_if.links import flow_changes, hottest_tier_changes, link_changes
from simcore.records import replace
from simcore.simulation import simulate
from tests.flows.test_ports import shared_run
from tests.tui.made_runs import small


def test_a_link_fails_or_has_half_or_twice_its_rate_and_its_run_says_what_that_costs() -> None:
    simulation = shared_run().simulation
    steps = {}
    for change in link_changes(simulation, 20, 18):
        parameters = replace(simulation.parameters, **change.fields)
        steps[change.fields["link_rate"]] = simulate(simulation.workload, parameters).step_time_ns
    assert list(steps) == [("18-20=0",), ("18-20=0.5",), ("18-20=2",), ("asw-psw=2",)]
    failed_ns, half_ns, twice_ns, tier_ns = steps.values()
    assert failed_ns > simulation.step_time_ns < half_ns
    assert tier_ns < twice_ns <= simulation.step_time_ns


def test_all_links_of_the_hottest_tier_are_tried_and_can_be_as_they_were() -> None:
    (change,) = hottest_tier_changes(shared_run().simulation)
    assert change.fields == {"link_rate": ("asw-psw=2",)}
    (change,) = hottest_tier_changes(shared_run(link_rate=("18-20=0.5", "asw-psw=2")).simulation)
    assert change.fields["link_rate"] in {("18-20=0.5",), ("18-20=0.5", "asw-psw=2", "gpu-asw=2")}


def test_a_changed_link_keeps_the_changes_of_others_and_can_be_as_it_was() -> None:
    simulation = shared_run(link_rate=("18-20=0.5", "19-21=0.5")).simulation
    values = [change.fields["link_rate"] for change in link_changes(simulation, 18, 20)]
    assert values == [
        ("19-21=0.5", "18-20=0"), ("19-21=0.5", "18-20=0.5"), ("19-21=0.5", "18-20=2"), ("19-21=0.5",),
        ("18-20=0.5", "19-21=0.5", "asw-psw=2"),
    ]  # fmt: skip


def test_rails_have_pxn_and_no_rails_have_not() -> None:
    fields = [change.fields for change in flow_changes(shared_run().simulation)]
    assert {"pxn": "on"} not in fields
    rails = [change.fields for change in flow_changes(shared_run(cluster="spectrum-x:16:psn=2").simulation)]
    assert {"pxn": "on"} in rails


def test_a_run_without_flows_has_no_such_change() -> None:
    assert not list(flow_changes(small().simulation))


@pytest.mark.parametrize("change", [{"pxn": "on"}])
def test_what_is_on_is_not_tried(change: dict[str, str]) -> None:
    simulation = shared_run(cluster="spectrum-x:16:psn=2", **change).simulation
    assert change not in [one.fields for one in flow_changes(simulation)]
