"""The loops of ASTRA-sim 1.0's policies: in which order a rank computes, issues and waits.

Each takes a pass; every `change_state` costs 1 ns. In all of them the forward of a row waits for
the row's weight-gradient collective of the pass before. The pass is over before the last state
change, asynchronous collectives may still run then.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.program.ops import FWD, IG, RECOMPUTE, WG
from simcore.program.policy_builder import BY_SYSTEM, FIRST, NEWEST, OLDEST, PolicyBuilder
from simcore.workload.policies import CUSTOMIZED, DLRM, INFERENCE, MICRO, NO_POLICY, TRANSFORMER

# Row -> op of its weight-gradient collective of the pass before.
Reduced = dict[int, int | None]


def _data(rank: PolicyBuilder, reduced: Reduced) -> None:
    """Forward; then last to first: weight gradient, its collective, input gradient (not of row 0)."""
    for row in rank.rows:
        rank.wait(reduced.get(row))
        rank.compute(FWD, row)
        rank.change_state()
    for row in reversed(rank.rows):
        rank.compute(WG, row)
        reduced[row] = rank.issue(WG, row, BY_SYSTEM)
        if row:
            rank.change_state()
            rank.compute(IG, row)
            rank.change_state()
    rank.end_pass()
    rank.change_state()


def _forward(rank: PolicyBuilder, reduced: Reduced) -> None:
    """Forward of all rows with their collectives, which block."""
    for row in rank.rows:
        if row:
            rank.change_state()
        rank.wait(reduced.get(row))
        _forward_row(rank, row, None)


def _forward_row(rank: PolicyBuilder, row: int, phase: int | None) -> None:
    rank.compute(FWD, row, phase)
    rank.wait(rank.issue(FWD, row, BY_SYSTEM, phase))


def _inference(rank: PolicyBuilder, reduced: Reduced) -> None:
    """Forward only."""
    _forward(rank, reduced)
    rank.end_pass()
    rank.change_state()


def _model(rank: PolicyBuilder, reduced: Reduced) -> None:
    """As `_hybrid`, without weight-gradient collectives and without row 0's of the input gradient."""
    _overlapping_backward(rank, reduced, first_row=1, weights=False)


def _hybrid(rank: PolicyBuilder, reduced: Reduced) -> None:
    """As `_transformer`, without row 0's collective of the input gradient."""
    _overlapping_backward(rank, reduced, first_row=1, weights=True)


def _transformer(rank: PolicyBuilder, reduced: Reduced) -> None:
    """Input-gradient collectives run beside the weight gradient and are waited for before the next row."""
    _overlapping_backward(rank, reduced, first_row=0, weights=True)


def _overlapping_backward(rank: PolicyBuilder, reduced: Reduced, first_row: int, weights: bool) -> None:
    _forward(rank, reduced)
    for row in reversed(rank.rows):
        rank.change_state()
        _recompute(rank, row)
        rank.compute(IG, row)
        gradient = rank.issue(IG, row, NEWEST) if row >= first_row else None
        rank.change_state()
        rank.compute(WG, row)
        if weights:
            reduced[row] = rank.issue(WG, row, OLDEST)
        rank.wait(gradient)
    rank.end_pass()
    rank.change_state()


def _recompute(rank: PolicyBuilder, row: int) -> None:
    """Where `row` initiates one: forward again from its nearest checkpoint up to it."""
    header = rank.workload.header
    if row not in header.checkpoint_initiates:
        return
    checkpoint = max((c for c in header.checkpoints if c < row), default=row)
    if checkpoint == row:
        return
    rank.change_state()
    for again in range(checkpoint, row):
        _forward_row(rank, again, RECOMPUTE)
        rank.change_state()


def _dlrm(rank: PolicyBuilder, reduced: Reduced) -> None:
    """As `_data`, with row 0's all-to-alls: forward waited for at the last row of the bottom MLP,
    backward issued at the row after it and waited for at row 0."""
    _recommendation(rank, reduced, waits=True)


def _dlrm_enhanced(rank: PolicyBuilder, reduced: Reduced) -> None:
    """As `_dlrm`; nothing waits for row 0's backward all-to-all."""
    _recommendation(rank, reduced, waits=False)


def _recommendation(rank: PolicyBuilder, reduced: Reduced, waits: bool) -> None:
    bottom = rank.workload.header.last_bottom_layer
    if bottom is None:
        raise ValueError("HYBRID_DLRM without its last row of the bottom MLP")
    embedding = gradient = None
    for row in rank.rows:
        rank.wait(reduced.get(row))
        rank.compute(FWD, row)
        if rank.workload.fwd.collective[row] == "ALLTOALL":
            issued = rank.issue(FWD, row, FIRST)
            embedding = issued if row == 0 else embedding
        elif row == bottom:
            rank.wait(embedding)
        rank.change_state()
    for row in reversed(rank.rows):
        rank.compute(WG, row)
        reduced[row] = rank.issue(WG, row, BY_SYSTEM)
        if row:
            rank.change_state()
            rank.compute(IG, row)
            if row == bottom + 1:
                gradient = rank.issue(IG, 0, FIRST)
            rank.change_state()
        elif waits:
            rank.wait(gradient)
    rank.end_pass()
    rank.change_state()


def _micro(rank: PolicyBuilder, reduced: Reduced) -> None:
    """Row 0's weight-gradient collective and nothing else, at the start."""
    rank.issue(WG, 0, BY_SYSTEM)
    rank.end_pass()


POLICY_LOOPS: dict[str, Callable[[PolicyBuilder, Reduced], None]] = {
    "DATA": _data,
    "MODEL": _model,
    "HYBRID_DATA_MODEL": _hybrid,
    "HYBRID_MODEL_DATA": _hybrid,
    CUSTOMIZED: _hybrid,
    **dict.fromkeys((*TRANSFORMER, NO_POLICY), _transformer),
    DLRM[0]: _dlrm,
    DLRM[1]: _dlrm_enhanced,
    MICRO: _micro,
    INFERENCE: _inference,
}
