"""A cluster as ASTRA-sim describes one: a list of network dimensions, inner first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from simcore.diagnostics import UsageError
from simcore.names import ALGORITHM_NAMES, Optimization
from simcore.records import Struct, replace
from simcore.units import format_number, short_number, without_noise

if TYPE_CHECKING:
    from simcore.topology import PacketRules, Topology

Kind = Literal["ring", "fully-connected", "switch"]
KINDS: tuple[Kind, ...] = ("ring", "fully-connected", "switch")


def direct_window(name: str) -> int:
    """Returns W of `direct<W>` or `one-direct<W>`, at most W messages in flight; 0 for any other name."""
    _, direct, digits = name.removeprefix("one-").partition("direct")
    if not direct or not digits.isascii() or not digits.isdecimal() or digits[0] == "0" or len(digits) > 7:
        return 0
    return int(digits) if name in (f"direct{digits}", f"one-direct{digits}") else 0


def is_algorithm(name: str) -> bool:
    """Returns whether users may choose an algorithm by this name."""
    return name in ALGORITHM_NAMES or direct_window(name) > 0


def bytes_per_ns(gibps: str) -> float:
    """Returns a decimal number of GiB/s as GB/s, the nearest float to the exact product.

    >>> bytes_per_ns("50"), bytes_per_ns("370.67")
    (53.6870912, 398.00388190208)
    """
    # Imported here: it takes longer than a price, and most runs have no such file.
    from fractions import Fraction

    return float(Fraction(gibps) * 2**30 / 10**9)


class Dimension(Struct, frozen=True):
    """One dimension of the network."""

    kind: Kind
    """Its topology."""
    size: int
    """NPUs along it."""
    bandwidth: float
    """What one message gets, bytes per ns (= GB/s, 10^9)."""
    latency_ns: float
    """The latency of one hop; a switch is 2 hops, a fully-connected peer 1, a ring the shorter way round."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The kinds of groups that cross it; none where no layout is known."""
        return ()

    def name(self, index: int, figure: str = "") -> str:
        """Returns what it is called as dimension `index`: `dim 1 (dp, pp)`; with a figure of it `dim 1 (dp,
        pp; 50 GB/s)`.
        """
        inside = "; ".join(filter(None, (", ".join(self.groups), figure)))
        return f"dim {index} ({inside})" if inside else f"dim {index}"

    def flag(self) -> str:
        """Returns the dimension as `--dim` takes it: `switch:8:450:500`."""
        return f"{self.kind}:{self.size}:{format_number(self.bandwidth)}:{format_number(self.latency_ns)}"

    def exact_flag(self) -> str:
        """Returns the text of `flag`, to the last digit."""
        return f"{self.kind}:{self.size}:{self.bandwidth!r}:{self.latency_ns!r}"

    def cheaper(self, attribute: str, factor: float, no_time_gbps: float) -> Dimension:
        """Returns the dimension with its `latency` times `factor`, or its `bandwidth` over it; a factor of 0
        makes a bandwidth of `no_time_gbps`.
        """
        if attribute == "latency":
            return replace(self, latency_ns=without_noise(self.latency_ns * factor))
        return replace(self, bandwidth=self.bandwidth / factor if factor else no_time_gbps)

    def file_unit_flag(self) -> str:
        """Returns the text of `flag` in the unit of the file that it is from: `switch:8:400GiB:300`."""
        unit = self.bandwidth_text().partition(" (")[0].removesuffix("/s").replace(" ", "")
        if unit.endswith("GiB") and bytes_per_ns(unit[:-3]) == self.bandwidth:
            return f"{self.kind}:{self.size}:{unit}:{format_number(self.latency_ns)}"
        return self.flag()

    def text(self) -> str:
        """Returns the dimension in words: `switch 8, 450 GB/s, 500 ns a hop`."""
        return f"{self.kind} {self.size}, {self.bandwidth_text()}, {format_number(self.latency_ns)} ns a hop"

    def bandwidth_text(self) -> str:
        """Returns the bandwidth in words: `450 GB/s`; `400 GiB/s (429.5 GB/s)` for a file's GiB/s."""
        # 400 GiB/s are 429.4967296 GB/s, and 450 GB/s stand in a network.yml as 419.09515857696533: the
        # shorter figure is the intended one, to the twelve digits that survive both conversions.
        gbps, gibps = (
            format_number(float(f"{rate:.12g}")) for rate in (self.bandwidth, self.bandwidth * 1e9 / 2**30)
        )
        if len(gibps) < len(gbps):
            return f"{gibps} GiB/s ({self.bandwidth:.4g} GB/s)"
        return f"{short_number(float(gbps))} GB/s"


class Cluster(Struct, frozen=True):
    """All dimensions of a network and what is set for it as a whole.

    Raises ValueError when a list of algorithms has not one entry a dimension.
    """

    dims: tuple[Dimension, ...]
    """Inner first; rank r has the d-th mixed-radix digit of r as its position on dimension d."""
    algorithms: tuple[str | None, ...]
    """One entry a dimension: a name of `ALGORITHM_NAMES` or `direct<W>`, None for the default of its kind."""
    endpoint_delay_ns: int = 10
    """What a rank pays before its first send and after each receive."""
    local_mem_bandwidth: float = 3350.0
    """Bytes per ns, for reductions."""
    alltoall_port_time: bool = True
    """Whether the messages of a direct all-to-all share the port of a ring or switch; False gives each of
    them the whole bandwidth, as ASTRA-sim's congestion-unaware backend does.
    """
    splits: int = 1
    """The number of chunks that a collective is split into."""
    active_chunks: int = 1
    """How many of them a dimension runs at a time."""
    optimization: Optimization = "localBWAware"
    """`localBWAware`, or `baseline`, a whole all-reduce on each dimension."""
    by_collective: tuple[tuple[str, tuple[str | None, ...]], ...] = ()
    """(`ALLREDUCE` etc., algorithms) where collectives differ; the others run by `algorithms`."""
    newest_first: bool = True
    """Whether, of collectives that wait for a dimension without a preference of their own, the newest goes
    first (dialect astra-sim-1).
    """
    last_chunk_is_rest: bool = False
    """Whether the last chunk is the remainder, as in ASTRA-sim 1.0, not another full one, as in 2.0."""
    topology: Topology | None = None
    """Nodes and links, where they are known; `dims` are those of servers then."""
    packets: PacketRules | None = None
    """How flows become packets on these links; None for the defaults."""

    def __post_init__(self) -> None:
        for names in (self.algorithms, *[names for _, names in self.by_collective]):
            if len(names) != len(self.dims):
                raise ValueError(f"{len(names)} algorithms for {len(self.dims)} dimensions")

    def algorithms_for(self, collective: str) -> tuple[str | None, ...]:
        """Returns the algorithms of a collective, one a dimension."""
        for name, algorithms in self.by_collective:
            if name == collective:
                return algorithms
        return self.algorithms

    def slowed(self, factors: tuple[float, ...]) -> Cluster:
        """Returns the cluster with each dimension's bandwidth times its factor; () changes nothing."""
        if not factors:
            return self
        dims = zip(self.dims, factors, strict=True)
        slowed = tuple(
            replace(dimension, bandwidth=dimension.bandwidth * factor) for dimension, factor in dims
        )
        return replace(self, dims=slowed)

    @property
    def npus(self) -> int:
        """The number of NPUs of the cluster: the product of its dimensions."""
        product = 1
        for dimension in self.dims:
            product *= dimension.size
        return product

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Returns the position of `rank` on each dimension, inner first.

        Raises ValueError when the cluster has no such NPU.
        """
        if not 0 <= rank < self.npus:
            raise ValueError(f"no rank {rank} on {self.npus} NPUs")
        digits = []
        for dimension in self.dims:
            rank, digit = divmod(rank, dimension.size)
            digits.append(digit)
        return tuple(digits)

    def check_world(self, world: int) -> None:
        """Raises UsageError when `world` ranks do not fit; a larger cluster is filled from rank 0."""
        if world > self.npus:
            sizes = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in self.dims)
            raise UsageError(
                f"the cluster has {self.npus} NPUs ({sizes}), too few for {world} ranks: "
                f"give dimensions whose product is {world} or more"
            )
