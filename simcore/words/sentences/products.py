"""The sentence on products of a measured step that take far longer than measured ones of their shape."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.replay.replayed_run import ReplayedRun
from simcore.trace.contexts import ProductLine
from simcore.units import duration, plural
from simcore.words.rules import Sentence

_NAME = 40


class SlowProduct(NamedTuple):
    """Equal products. ns, alone_ns: of one."""

    operation: str
    shape: str
    precision: str
    ns: int
    alone_ns: int


class ProductsAreSlow(Sentence, frozen=True, kw_only=True):
    """Products that take far longer than measured ones of their shape."""

    rule = "products-far-below"
    gpu: str
    slow_product: SlowProduct
    """The one that loses most."""
    others: int
    """How many other shapes there are."""
    lost_ns: int
    """What all of them take longer, of a rank."""

    @property
    def text(self) -> str:
        one = self.slow_product
        more = f", and {plural(self.others, 'other shape')} like it," if self.others else ""
        return (
            f"{short_name(one.operation, _NAME)} of {one.shape} in {one.precision}{more} takes "
            f"{one.ns / one.alone_ns:.1f} times as long as alone on {self.gpu}: {duration(one.ns)} where "
            f"{duration(one.alone_ns)} was measured, {duration(self.lost_ns)} of the step of a rank together."
        )


def find_slow_products(results: ReplayedRun) -> Iterator[ProductsAreSlow]:
    """Yields the products far below their shape's measured time, where it was asked for."""
    use = results.model.product_use
    slow_lines = [line for line in use.lines if line.is_far_below] if use is not None else []
    if use is None or not slow_lines:
        return
    worst = max(slow_lines, key=_lost)
    one = SlowProduct(
        worst.operation, worst.shape, worst.precision, worst.ns // worst.calls,
        max((worst.expected_ns or 0) // worst.calls, 1),
    )  # fmt: skip
    lost_ns = sum(map(_lost, slow_lines)) // max(len(use.ranks), 1)
    yield ProductsAreSlow(gpu=use.gpu, slow_product=one, others=len(slow_lines) - 1, lost_ns=lost_ns)


def _lost(line: ProductLine) -> int:
    return line.ns - (line.expected_ns or 0)
