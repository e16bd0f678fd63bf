"""What differs most from one run to another: ops, or kinds of time of stages and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from simcore.report.section import Field, PageAsked, field_lines, field_values
from simcore.units import difference, duration, signed

if TYPE_CHECKING:
    from simcore.analysis.beside import KindChange
    from simcore.analysis.compare import Mover
    from simcore.analysis.two_runs import Compared

# What it is in words, and the op.
_Op = tuple[str, "Mover"]
_OP: list[Field[_Op]] = [
    Field("op", lambda op: op[0], left=True),
    Field("what", lambda op: op[1].measure, "measure", lambda op: op[1].measure, left=True),
    Field(key="stage", value=lambda op: op[1].place[0]),
    Field(key="dp", value=lambda op: op[1].place[1]),
    Field(key="tp", value=lambda op: op[1].place[2]),
    Field(key="ranks", value=lambda op: op[1].ranks),
    Field(key="name", value=lambda op: op[1].name),
    Field(key="phase", value=lambda op: op[1].phase),
    Field(key="kind", value=lambda op: op[1].kind),
    Field(key="microbatch", value=lambda op: op[1].microbatch),
    Field("A", lambda op: duration(op[1].a_ns), "a_ns", lambda op: op[1].a_ns),
    Field("B", lambda op: duration(op[1].b_ns), "b_ns", lambda op: op[1].b_ns),
    Field(
        "B - A", lambda op: signed(op[1].b_ns - op[1].a_ns),
        "difference_ns", lambda op: op[1].b_ns - op[1].a_ns,
    ),
]  # fmt: skip
# Where it is, and the kind of time.
_Kind = tuple[str, "KindChange"]
_KIND: list[Field[_Kind]] = [
    Field("where", lambda kind: kind[0], left=True),
    Field(key="stage", value=lambda kind: kind[1].stage),
    Field(key="rank", value=lambda kind: kind[1].rank),
    Field("what", lambda kind: kind[1].change.name, "kind", lambda kind: kind[1].change.name, left=True),
    Field("A", lambda kind: duration(kind[1].change.a_ns), "a_ns", lambda kind: kind[1].change.a_ns),
    Field("B", lambda kind: duration(kind[1].change.b_ns), "b_ns", lambda kind: kind[1].change.b_ns),
    Field(
        "B - A", lambda kind: difference(kind[1].change.a_ns, kind[1].change.b_ns),
        "difference_ns", lambda kind: kind[1].change.ns,
    ),
]  # fmt: skip


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """A line an op, or a kind of time of a stage or a rank."""
    if compared.op_movers:
        return ["Ops that differ most", *field_lines(_OP, _chosen(compared.op_movers, asked.rows))]
    if not compared.kind_movers:
        return []
    shown = compared.kind_movers[: asked.rows]
    left = len(compared.kind_movers) - len(shown)
    more = f" ({left} more: --all)" if left else ""
    alone = ", or a rank that does much more" if any(mover.rank is not None for _, mover in shown) else ""
    return [f"What differs most, the mean of a stage's ranks{alone}{more}", *field_lines(_KIND, shown)]


def _chosen(movers: Sequence[_Op], most: int | None) -> list[_Op]:
    """Ops from each measure in turn until there are `most`, listed in the order of the comparison."""
    by_measure: dict[str, list[_Op]] = {}
    for mover in movers:
        by_measure.setdefault(mover[1].measure, []).append(mover)
    in_turn = [op for several in zip_longest(*by_measure.values()) for op in several if op is not None]
    return [mover for mover in movers if mover in in_turn[:most]]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`movers`."""
    ops = field_values(_OP, compared.op_movers or ())
    return {"movers": [*ops, *field_values(_KIND, compared.kind_movers or ())]}
