"""Why what runs could not begin earlier: each reason of the list is one of some neighbours, in its words."""

from __future__ import annotations

import pytest

from simcore.trace.graph import BEFORE, BUSY, JOINS, QUEUED, RECEIVED
from simcore.trace.reasons import REASONS, Facts, find_reason, reason_words

SAID = [
    ("late", Facts(BEFORE, True, 3), "rank 3 came last"),
    ("late", Facts(RECEIVED, True, 3, own="tp all-reduce"), "rank 3 comes late to the tp all-reduce"),
    ("seen", Facts(JOINS, what="dp sum", seen_after="10 ns"), "the dp sum is seen 10 ns after its end"),
    ("paused", Facts(BEFORE, passes="10 ns"), "a state change of 10 ns"),
    ("received", Facts(RECEIVED, rank=3), "waiting for data from rank 3"),
    ("received", Facts(RECEIVED, payload="gradient", stage=2), "stage 2 sends the gradient"),
    ("queued", Facts(QUEUED, what="tp all-gather"), "the queues serve another tp all-gather first"),
    ("needs", Facts(BEFORE, what="mlp", is_needed=True), "waiting for data from mlp"),
    ("needs", Facts(BEFORE, is_needed=True), "waiting for its data"),
    ("named", Facts(BEFORE, what="mlp", is_named=True), "waiting for mlp, a control dependency"),
    ("named", Facts(BEFORE, is_named=True), "waiting for its end, a control dependency"),
    ("busy", Facts(BUSY, where="its stream", what="mlp"), "its stream is busy with mlp"),
    ("busy", Facts(BUSY), "waiting for the collective before it"),
    ("in a call", Facts(BEFORE, idles=True, call="is in cudaFree"), "its host is in cudaFree"),
    ("in a call", Facts(None, idles=True, call="waits in cudaFree"), "its host waits in cudaFree"),
    ("first", Facts(None, idles=True, is_queued=True), "the step begins"),
    ("queued already", Facts(BEFORE, idles=True, is_queued=True), "its next kernel was queued already"),
    ("host late", Facts(BEFORE, idles=True, is_queued=False), "its host was late: no kernel queued"),
    ("idles", Facts(BEFORE, idles=True), "its rank ran nothing"),
    ("was idle", Facts(BEFORE, was_idle=True), "its rank was idle before it"),
    ("joined", Facts(JOINS, what="dp all-reduce"), "it waits for the dp all-reduce"),
    ("behind", Facts(BEFORE, what="compute"), "compute before it"),
    ("behind", Facts(BEFORE, what="tp all-gather"), "the tp all-gather before it"),
    ("behind", Facts(JOINS), "its rank was busy before it"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts", "words"), SAID, ids=[words for *_, words in SAID])
def test_the_first_reason_that_the_facts_have_is_said(name: str, facts: Facts, words: str) -> None:
    assert (find_reason(facts).name, reason_words(facts)) == (name, words)


def test_each_reason_is_said_of_some_neighbours() -> None:
    assert [*dict.fromkeys(name for name, *_ in SAID)] == [reason.name for reason in REASONS]
