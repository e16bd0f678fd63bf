"""Which spans a query means: as one reads the lines about each of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.span_words import find_op_facts
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS
from tests.tui.made_runs import all_lanes, lane_of, lonely, run, seed, small, two_stages
from tui.timeline.lanes import Lane
from tui.timeline.query import KEYWORDS, Query, parse_query

SLOW = ("switch:2:4:50", "switch:4:2:300")


def late() -> SimulatedRun:
    """A run in which ranks wait for a slow one."""
    return run(two_stages(3), dim=SLOW, slow_rank=("1=1.7",))


def split() -> SimulatedRun:
    """A run whose backward is split."""
    return run(two_stages(3), dim=SLOW, schedule="zb-h1")


RUNS = [small(), late(), split(), lonely()]
TEXTS = [
    *KEYWORDS, "mlp", "row", "attention_column", "opt", "rece", "forw", "zzz", "mb 0", "mb 1", "> 1 us",
    "< 1 us",
    "forward mb 1", "mlp input grad", "exposed tp", "wait tp", "wait mlp", "bubble mb 1", "backward > 700 ns",
]  # fmt: skip


def words_of(lane: Lane, index: int) -> tuple[set[str], str, int]:
    """What a span is, in the words of a query; the name it has; its micro-batch."""
    simulation = lane.of.results.simulation
    account = ACCOUNTS[lane.of.results.accounts[lane.track_id].account[index]] if lane.stream is None else ""
    facts = find_op_facts(simulation, lane.track_id, lane.spans.op[index])
    if facts is None:
        return {account}, "", -1
    if facts.kind == "compute":
        return {"compute", facts.phase}, facts.name, facts.microbatch
    if facts.other_stage is not None:
        way = "activation" if facts.phase == "fwd" else "gradient"
        if account == "bubble":
            return {"bubble", way}, "", facts.microbatch
        found = {"pp", way, *(["exposed"] if account else [])}
        if account == "exposed pp" or facts.kind == "receive":
            found.add("receive")
        else:
            found.add("send")
        return found, "", facts.microbatch
    found = {facts.kind, facts.stream}
    if account == "wait":
        return {*found, "wait"}, facts.name, facts.microbatch
    return {*found, facts.phase, *(["exposed"] if account else [])}, facts.name, facts.microbatch


def is_meant(lane: Lane, index: int, query: Query) -> bool:
    """The query, read word by word."""
    kinds, name, microbatch = words_of(lane, index)
    length = lane.spans.end[index] - lane.spans.start[index]
    for word in query.words:
        by_name = bool(word.name) and bool(name) and word.name in name
        if not (by_name or kinds & set(word.kinds)):
            return False
    return (
        (query.microbatch is None or query.microbatch == microbatch)
        and (query.least_ns is None or length >= query.least_ns)
        and (query.most_ns is None or length <= query.most_ns)
    )


def check(lane: Lane, query: Query) -> None:
    """Flags equal the slow reading."""
    flags = lane.matches(query)
    assert len(flags) == len(lane.spans.start)
    for index, flag in enumerate(flags):
        assert flag == is_meant(lane, index, query), (lane.stream, words_of(lane, index), query)


@pytest.mark.parametrize("text", TEXTS)
def test_a_query_means_the_spans_that_read_like_it(text: str) -> None:
    for results in RUNS:
        for lane in all_lanes(results):
            check(lane, parse_query(text))


@settings(max_examples=60)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), st.integers(0, len(RUNS) - 1))
def test_of_several_words_all_have_to_hold(texts: list[str], number: int) -> None:
    for lane in all_lanes(RUNS[number]):
        check(lane, parse_query(" ".join(texts)))


def test_what_is_kept_for_the_next_search_does_not_change_it() -> None:
    lane = lane_of(seed(), 5)
    first = [lane.matches(parse_query(text)) for text in TEXTS]
    again = [lane.matches(parse_query(text)) for text in reversed(TEXTS)]
    assert first == again[::-1]


@pytest.mark.slow
def test_a_step_of_many_micro_batches_and_names_is_searched_alike() -> None:
    from tests.strategies import layer, make_workload

    rows = [layer("embedding_layer", 3, 2, 1)] + [layer(f"mlp_{number}x", 5, 4, 3) for number in range(300)]
    results = run(make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=10), microbatches=260)
    lane = lane_of(results, 1)
    for text in ("mb 257", "mb 3", "mlp_299x", "mlp_17x forward mb 258", "bubble mb 4"):
        query = parse_query(text)
        flags = lane.matches(query)
        expected = [is_meant(lane, index, query) for index in range(0, len(flags), 7)]
        assert [bool(flag) for flag in flags[::7]] == expected
        assert any(flags) or text == "bubble mb 4"
