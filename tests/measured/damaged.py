"""Damaged traces: operations in orders that no real step has; their ranks may wait in circles."""

from __future__ import annotations

from hypothesis import strategies as st

from .made_steps import Layout
from .traces import Op, Sub

_NAMES = (
    "forward_step", "backward_step", "recv_forward", "send_forward", "recv_backward", "send_backward",
    "dp_allreduce", "ep_allreduce", "pep_allreduce", "optimizer_step", "get_batch", "an_op_of_its_own",
)  # fmt: skip
_GROUPS = {"dp_allreduce": "dp", "ep_allreduce": "ep", "pep_allreduce": "pep"}
_SUBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.sampled_from(["tp", "dp", None]), st.booleans()),
    max_size=3,
)
_OPERATIONS = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.integers(0, 3), st.integers(0, 20), st.integers(0, 1), _SUBS),
    min_size=1,
    max_size=12,
)
_RANKS = st.lists(_OPERATIONS, min_size=4, max_size=4)
_BEGINS = st.lists(st.integers(0, 100), min_size=4, max_size=4)
_LAYOUTS = st.sampled_from([Layout(1, 1, 2, 1), Layout(2, 1, 1, 1), Layout(1, 2, 2, 1), Layout(2, 1, 2, 1)])
_Operation = tuple[str, int, int, int, list[tuple[int, int, str | None, bool]]]


def _text(layout: Layout, ranks: list[list[_Operation]], begins: list[int]) -> tuple[Layout, str]:
    lines = []
    for rank, (operations, begin) in enumerate(zip(ranks[: layout.world], begins, strict=False)):
        now = 1000 + begin
        for name, gap, length, batch, subs in operations:
            inner = tuple(
                Sub(f"{now + gap + at}", f"{ns}", "x_async" if is_async else "x", group=group)
                for at, ns, group, is_async in subs
            )
            now += gap + length
            group = "pp" if name.startswith(("send", "recv")) else _GROUPS.get(name)
            stage = rank // layout.tp // layout.dp
            op = Op(name, f"{now}.0", f"{length}.0", batch=batch, group=group, stage=stage, subs=inner)
            lines.append(op.line(rank) + "\n")
    return layout, "".join(lines)


# (layout, text of all ranks); durations are whole ms.
DAMAGED = st.builds(_text, _LAYOUTS, _RANKS, _BEGINS)
