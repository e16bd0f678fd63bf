"""Which kinds decide which dimension, on formulas that can be solved by hand."""

from __future__ import annotations

from collections.abc import Callable

from simcore.calibration.bandwidths import Target, fit_bandwidths
from simcore.cluster import Cluster, Dimension

CLUSTER = Cluster(
    (Dimension("switch", 8, 100.0, 500.0), Dimension("switch", 4, 10.0, 1000.0)), algorithms=(None, None)
)


def bytes_over(fixed_ns: int, *sizes: int) -> Callable[[Cluster], int]:
    """A fixed time, and so many bytes over each dimension."""

    def ns(cluster: Cluster) -> int:
        return fixed_ns + round(
            sum(size / one.bandwidth for size, one in zip(sizes, cluster.dims, strict=True))
        )

    return ns


def test_a_dimension_is_fitted_by_what_crosses_it_alone_and_then_counts_for_the_next() -> None:
    # dp: 1 ms over dimension 0 at the 50 GB/s that tp says, and 4 ms for 20 MB over dimension 1.
    both = Target("dp", frozenset((0, 1)), 5_000_000, bytes_over(0, 50_000_000, 20_000_000))
    inner = Target("tp forward", frozenset((0,)), 2_000_300, bytes_over(300, 100_000_000, 0))
    found = fit_bandwidths(CLUSTER, [both, inner])
    assert [(one.gbps, one.by, one.together, one.why) for one in found] == [
        (50.0, ("tp forward",), (), ""),
        (5.0, ("dp",), (), ""),
    ]


def test_kinds_of_one_dimension_decide_it_together_by_their_sum() -> None:
    # 100 MB in 2 ms and 300 MB in 2 ms: 400 MB in 4 ms.
    kinds = [
        Target(name, frozenset((0,)), 2_000_000, bytes_over(0, size, 0))
        for name, size in (("tp forward", 100_000_000), ("dp", 300_000_000))
    ]
    first, second = fit_bandwidths(CLUSTER, kinds)
    assert (first.gbps, first.by) == (100.0, ("tp forward", "dp"))
    assert second.gbps == 10.0
    assert "crosses it" in second.why


def test_what_latency_alone_explains_fits_no_bandwidth() -> None:
    target = Target("pp forward", frozenset((1,)), 900, bytes_over(1000, 0, 10_000))
    found = fit_bandwidths(CLUSTER, [target])[1]
    assert (found.gbps, found.by) == (10.0, ("pp forward",))
    assert "latency" in found.why


def test_what_no_bandwidth_explains_is_said() -> None:
    target = Target("pp forward", frozenset((1,)), 900, bytes_over(10, 0, 0))
    assert "low enough" in fit_bandwidths(CLUSTER, [target])[1].why
