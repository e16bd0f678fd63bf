"""A send and a receive in one physical operation, which a trace has as two lines."""

from __future__ import annotations

import pytest

from simcore.measured.summary import op_figures
from simcore.replay.parameters import Scales
from simcore.replay.segment_names import segment_name
from simcore.runs.measured import RecordedRun

from .test_replay_by_hand import MS, op, run_of


def test_a_send_and_a_receive_in_one_are_one_wait_for_both() -> None:
    pair = [op(0, name, 10, 20, "pp") for name in ("send_forward", "recv_backward")]
    other = [op(1, name, 16, 20, "pp", stage=1) for name in ("send_backward", "recv_forward")]
    text = (
        op(0, "forward_step", 0, 10) + "".join(pair) + op(1, "forward_step", 0, 16, stage=1) + "".join(other)
    )
    results = RecordedRun(run_of(text, 2, pp=2))
    assert [(one.ns("bubble"), one.ns("exposed pp")) for one in results.accounts] == [
        (6 * MS, 4 * MS),
        (0, 4 * MS),
    ]
    assert results.with_scales(Scales()).step_time_ns == 20 * MS
    assert results.with_scales(Scales(ranks={1: 0.5})).step_time_ns == 14 * MS
    assert results.with_scales(Scales(compute=2)).step_time_ns == 36 * MS
    # 4 ms of it are the send's: 16 from 10 on, for the receiver and for the sender itself.
    slower = results.with_scales(Scales(ops={"send_forward": 4})).run
    assert [rank.last_ns for rank in slower.ranks] == [26 * MS, 26 * MS]


@pytest.mark.parametrize("names", [("send_forward", "recv_backward"), ("recv_backward", "send_forward")])
def test_a_send_and_a_receive_in_one_wait_in_the_receive(names: tuple[str, str]) -> None:
    """Of two gradients one comes behind 200 ms that are written as a send too, in whichever order."""
    text = (
        op(0, "forward_step", 0, 100)
        + "".join(op(0, name, 100, 301, "pp") for name in names)
        + op(0, "backward_step", 301, 401)
        + op(0, "recv_backward", 401, 502, "pp", batch=1)
        + op(1, "backward_step", 0, 300, stage=1)
        + "".join(op(1, name, 300, 301, "pp", stage=1) for name in ("send_backward", "recv_forward"))
        + op(1, "backward_step", 301, 501, stage=1, batch=1)
        + op(1, "send_backward", 501, 502, "pp", stage=1, batch=1)
    )
    results = RecordedRun(run_of(text, 2, pp=2))
    assert [(one.early, one.late, one.name, one.ns) for one in results.waiting] == [
        (0, 1, "recv_backward", 300 * MS)
    ]
    figures = {one.name: one for one in op_figures(results.run)}
    receives, sends = figures["recv_backward"], figures["send_forward"]
    assert (receives.count, receives.measured, receives.most_ns) == (2, 2, 201 * MS)
    assert (sends.count, sends.measured, sends.most_ns) == (1, 0, 0)
    assert segment_name(results, *piece_at(results, 250 * MS)) == "recv_backward"


def piece_at(results: RecordedRun, time_ns: int) -> tuple[int, int]:
    """What rank 0 is at."""
    one = results.accounts[0]
    return 0, max((edge, piece) for edge, piece in zip(one.edge, one.op, strict=False) if edge <= time_ns)[1]
