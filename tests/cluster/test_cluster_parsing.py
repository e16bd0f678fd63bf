"""`--dim` and `--algorithm`: what fits, and the exact words when something does not."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cluster import ALGORITHM_NAMES, Dimension, parse_algorithm, parse_dimension
from simcore.cluster.model import bytes_per_ns
from simcore.diagnostics import UsageError

NAMES = (
    "ring, direct, direct<W>, halving-doubling, double-binary-tree, "
    "one-ring, one-direct or one-halving-doubling"
)
DIMS = (Dimension("ring", 4, 50.0, 500.0), Dimension("switch", 8, 50.0, 500.0))


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("ring:4:50:500", Dimension("ring", 4, 50.0, 500.0)),
        ("fully-connected:8:429.4967296:0", Dimension("fully-connected", 8, 429.4967296, 0.0)),
        ("switch:1:1e3:0.5", Dimension("switch", 1, 1000.0, 0.5)),
        ("switch:1000000:1e-6:1e9", Dimension("switch", 10**6, 1e-6, 1e9)),
        ("fully-connected:8:400GiB:0", Dimension("fully-connected", 8, 429.4967296, 0.0)),
    ],
)
def test_a_dimension_is_kind_size_bandwidth_latency(text: str, dimension: Dimension) -> None:
    assert parse_dimension(text) == dimension


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--dim : KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500"),
        ("ring:8:50", "--dim ring:8:50: KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500"),
        ("mesh:8:50:500", "--dim mesh:8:50:500: KIND `mesh` is not ring, fully-connected or switch"),
        ("ring:0:50:500", "--dim ring:0:50:500: SIZE `0` is not a whole number from 1 to 1000000"),
        ("ring:-1:50:500", "--dim ring:-1:50:500: SIZE `-1` is not a whole number from 1 to 1000000"),
        ("ring:1_0:50:500", "--dim ring:1_0:50:500: SIZE `1_0` is not a whole number from 1 to 1000000"),
        ("ring:8.0:50:500", "--dim ring:8.0:50:500: SIZE `8.0` is not a whole number from 1 to 1000000"),
        ("ring:1000001:5:", "--dim ring:1000001:5:: SIZE `1000001` is not a whole number from 1 to 1000000"),
        ("ring:8:0:500", "--dim ring:8:0:500: GBPS `0` is not a number from 1e-6 to 1e9 (GB/s)"),
        ("ring:8:nan:500", "--dim ring:8:nan:500: GBPS `nan` is not a number from 1e-6 to 1e9 (GB/s)"),
        ("ring:8:1e999:500", "--dim ring:8:1e999:500: GBPS `1e999` is not a number from 1e-6 to 1e9 (GB/s)"),
        ("ring:8:50GB:5", "--dim ring:8:50GB:5: GBPS `50GB` is not a number from 1e-6 to 1e9 (GB/s)"),
        ("ring:8:GiB:5", "--dim ring:8:GiB:5: GBPS `GiB` is not a number from 1e-6 to 1e9 (GB/s)"),
        ("ring:8:50:", "--dim ring:8:50:: NS `` is not a number from 0 to 1e9 (ns a hop)"),
        ("ring:8:50:-1", "--dim ring:8:50:-1: NS `-1` is not a number from 0 to 1e9 (ns a hop)"),
        ("ring:8:50:\x1b", "--dim ring:8:50:\\x1b: NS `\\x1b` is not a number from 0 to 1e9 (ns a hop)"),
    ],
)  # fmt: skip
def test_a_wrong_dimension_is_refused_with_what_fits(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_dimension(text)
    assert str(error.value) == message


ALMOST = st.from_regex(r"(ring|switch):[0-9e.+-]*:[0-9e.+-]*:[0-9e.+-]*", fullmatch=True)


@given(st.text(max_size=40) | ALMOST)
def test_any_text_is_a_dimension_or_a_usage_error(text: str) -> None:
    try:
        dimension = parse_dimension(text)
    except UsageError:
        return
    assert 1 <= dimension.size <= 10**6
    assert dimension.bandwidth > 0
    assert math.isfinite(dimension.bandwidth)
    assert math.isfinite(dimension.latency_ns)


@given(st.decimals(1, 10**6, places=3), st.integers(0, 10**6))
def test_what_a_file_has_in_gibps_is_written_so_and_read_again(gibps: Decimal, latency: int) -> None:
    one = Dimension("switch", 8, bytes_per_ns(str(gibps)), float(latency))
    assert parse_dimension(one.file_unit_flag()) == one
    whole = Dimension("switch", 8, bytes_per_ns("400"), 300.0)
    assert (whole.file_unit_flag(), whole.flag()) == ("switch:8:400GiB:300", "switch:8:429.4967296:300")
    near = Dimension("switch", 8, math.nextafter(bytes_per_ns("400"), math.inf), 300.0)
    assert parse_dimension(near.file_unit_flag()) == near
    assert Dimension("ring", 4, 50.0, 500.0).file_unit_flag() == "ring:4:50:500"


@pytest.mark.parametrize("name", [*ALGORITHM_NAMES, "direct1", "direct64"])
def test_an_algorithm_belongs_to_a_dimension(name: str) -> None:
    assert parse_algorithm(f"1={name}", DIMS) == ("", 1, name)
    assert parse_algorithm(f"reduce-scatter:1={name}", DIMS) == ("REDUCESCATTER", 1, name)


@pytest.mark.parametrize(
    ("text", "dims", "message"),
    [
        ("ring", DIMS, "--algorithm ring: DIM=NAME is expected, for example 0=ring"),
        (
            "all-reduse:0=ring",
            DIMS,
            "--algorithm all-reduse:0=ring: COLLECTIVE `all-reduse` is not "
            "all-reduce, all-gather, reduce-scatter or all-to-all; did you mean all-reduce?",
        ),
        (
            ":0=ring",
            DIMS,
            "--algorithm :0=ring: COLLECTIVE `` is not all-reduce, all-gather, reduce-scatter or all-to-all",
        ),
        ("2=ring", DIMS, "--algorithm 2=ring: no dimension `2` in this cluster, 0 to 1"),
        ("=ring", DIMS, "--algorithm =ring: no dimension `` in this cluster, 0 to 1"),
        ("01=ring", DIMS, "--algorithm 01=ring: no dimension `01` in this cluster, 0 to 1"),
        ("1=ring", DIMS[:1], "--algorithm 1=ring: no dimension `1` in this cluster, only 0"),
        ("0=tree", DIMS, f"--algorithm 0=tree: NAME `tree` is not {NAMES}"),
        ("0=", DIMS, f"--algorithm 0=: NAME `` is not {NAMES}"),
        ("0=direct0", DIMS, f"--algorithm 0=direct0: NAME `direct0` is not {NAMES}; did you mean direct?"),
        ("0=direct01", DIMS, f"--algorithm 0=direct01: NAME `direct01` is not {NAMES}; did you mean direct?"),
        ("0=direct-1", DIMS, f"--algorithm 0=direct-1: NAME `direct-1` is not {NAMES}; did you mean direct?"),
        (
            "0=direct\u0663",
            DIMS,
            f"--algorithm 0=direct\u0663: NAME `direct\u0663` is not {NAMES}; did you mean direct?",
        ),
    ],
)
def test_a_wrong_algorithm_is_refused_with_what_fits(
    text: str, dims: tuple[Dimension, ...], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        parse_algorithm(text, dims)
    assert str(error.value) == message
