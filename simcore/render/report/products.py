"""The section on how well a measured step uses its GPUs: MFU, HFU, and its products by shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
    wrap,
)
from simcore.trace.contexts import ProductLine, ProductUse, RankProducts, Throughput
from simcore.units import in_unit, plural
from simcore.words.product_facts import share_text, use_facts

if TYPE_CHECKING:
    from simcore.trace.run import Run

_ROWS = 16
_OPERATION, _SHAPE = 34, 36


def _flops_text(flops: float) -> str:
    for size, unit in ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")):
        if flops >= size:
            return f"{flops / size:.4g} {unit}"
    return f"{flops:.4g} FLOP"


def _times_text(line: ProductLine) -> str:
    return f"{line.ns / (line.expected_ns or 1):.1f} times"


_TABLE: list[Field[ProductLine]] = [
    Field("product", lambda line: short_name(line.operation.removeprefix("aten::"), _OPERATION), left=True),
    Field("shape", lambda line: printable(line.shape, _SHAPE), left=True),
    Field("type", lambda line: line.precision or "-", left=True),
    Field("calls", lambda line: str(line.calls)),
    Field("ms", lambda line: in_unit(line.ns, 10**6, 1000) if line.ns else "-"),
    Field("TFLOP/s", lambda line: "-" if line.tflops is None else f"{line.tflops:.4g}"),
    Field("% of peak", lambda line: share_text(line.peak_share)),
    Field(
        "alone ms",
        lambda line: "-" if line.expected_ns is None else in_unit(line.expected_ns, 10**6, 1000),
    ),
    Field("", lambda line: _times_text(line) if line.is_far_below else "", left=True),
]


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns MFU and HFU, what was assumed, and the products by shape."""
    use = run.model.product_use
    if use is None:
        return []
    facts = use_facts(use)
    page = [f"Use of the GPUs, {use.gpu}{f', by {printable(use.model, 40)}' if use.model else ''}"]
    page += wrap(", ".join(facts) or "not known", "  ", "    ")
    if use.lines:
        most = max(use.ranks, key=lambda rank: rank.flops)
        text = f"products of a rank: {_flops_text(most.flops)}"
        if most.causal_flops != most.flops:
            text += f", {_flops_text(most.causal_flops)} without what causal masks leave out"
        page += wrap(text + "; HFU counts what is recomputed, MFU does not", "  ", "    ")
    for words in (*use.assumed, use.reason, _left_out(use)):
        page += wrap(words, "  ", "    ") if words else []
    if not use.lines:
        return page
    rows = use.lines if options.every_layer else use.lines[:_ROWS]
    page += [
        "Products by shape, of all ranks; alone: what measured ones of the shape take on such a GPU",
        *field_lines(_TABLE, rows),
        *remaining_line(len(use.lines) - len(rows), "more shapes", "--all-layers has all"),
    ]
    return page


def _left_out(use: ProductUse) -> str:
    count = sum(rank.without_shapes for rank in use.ranks)
    ns = sum(rank.without_shapes_ns for rank in use.ranks)
    parts = []
    if count:
        parts.append(f"{plural(count, 'kernel')} of products without shapes, {in_unit(ns, 10**6, 1000)} ms")
    without = sum(rank.flops_without_peak for rank in use.ranks)
    if without:
        parts.append(f"{_flops_text(without)} of types whose peak is not known, not in MFU and HFU")
    return "; ".join(parts)


_LINE = keys("operation", "kind", "shape", "precision", "calls", "flops", "causal_flops", "ns", "tflops",
             "peak_share", "expected_ns", "is_far_below")  # fmt: skip
_RANK: list[Field[RankProducts]] = keys(*RankProducts._fields)


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `throughput` and `products`."""
    use = run.model.product_use
    if use is None:
        return {}
    of_products = dict.fromkeys(Throughput._fields) | {"mfu": use.mfu, "hfu": use.hfu}
    of_model = {} if use.throughput is None else use.throughput._asdict()
    return {
        "throughput": of_products | (of_model if use.lines else of_model | {"hfu": None}),
        "products": {
            "gpu": use.gpu,
            "model": use.model,
            "by_rank": field_values(_RANK, use.ranks),
            "by_shape": field_values(_LINE, use.lines),
            "assumed": list(use.assumed),
            "unknown": use.reason or None,
        },
    }


SECTION: Section[Run] = Section("products", lines, values)
