"""The critical path of a device: successive kernels and idle times are taken a chain at a time."""

from __future__ import annotations

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from simcore.kineto.opening import read_profile
from simcore.parameters import OpeningOptions, Parameters
from simcore.replay.parameters import Scales
from simcore.runs.measured import run_recording
from simcore.trace.critical_path import CriticalPath
from tests.kineto.test_layers import kernel


@settings(max_examples=60, deadline=None)
@example([(5, 2), (5, 0), (5, 2), (0, 7)] * 4, False)
@example([(5, 0)] * 9, True)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0, 1, 5]), st.sampled_from([0, 0, 2, 7])), min_size=1, max_size=40
    ),
    st.booleans(),
)
def test_a_path_over_chains_is_that_over_single_spans(lengths: list[tuple[int, int]], compute: bool) -> None:
    """lengths: us of the idle time before each kernel, and of the kernel: those of 0 split no idle time."""
    events, now = [kernel(0, 100) | {"dur": 1}], 101
    for correlation, (idle, busy) in enumerate(lengths, 1):
        events.append(kernel(correlation, now + idle) | {"dur": busy})
        now += idle + busy
    data = json.dumps({"traceEvents": events}).encode()
    run = run_recording(read_profile("made", data, OpeningOptions(step="all")), Parameters())
    # Where computing takes no time, idle times are next to each other.
    graph = (run if compute else run.with_scales(Scales(compute=0))).trace_graph
    by_chains = CriticalPath(graph)
    whys = [by_chains.neighbours(index) for index in range(len(by_chains))]
    graph.graph.chained[:] = bytes(len(graph.graph.chained))
    by_spans = CriticalPath(graph)
    for column in ("edge", "track", "span", "rank"):
        assert getattr(by_chains, column) == getattr(by_spans, column)
    assert whys == [by_spans.neighbours(index) for index in range(len(by_spans))]
