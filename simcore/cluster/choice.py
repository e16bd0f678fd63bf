"""The cluster that the parameters choose: a preset or a file, a system file, and flags over both."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from simcore.cluster.model import Cluster, Dimension
from simcore.cluster.parsing import Settings, either, parse_algorithm, parse_dimension
from simcore.cluster.presets import DEFAULT_PRESET, PRESETS
from simcore.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from simcore.names import OPTIMIZATIONS, TOPOLOGY_NAMES, Optimization
from simcore.records import Struct, replace
from simcore.units import format_number

if TYPE_CHECKING:
    from simcore.workload.model import InputNetwork


class ClusterChoice(Struct, frozen=True):
    """A cluster before the number of ranks is known."""

    settings: Settings
    """All that the user stated."""
    preset: Callable[[int], Settings] | None
    """Makes the rest for a number of ranks, None where the dimensions are stated."""
    is_default: bool
    """Whether nothing was stated."""

    @property
    def npus(self) -> int | None:
        """The number of NPUs of the cluster; None for a preset, which is as large as the world."""
        if self.preset is not None:
            return None
        product = 1
        for dimension in self.settings.dims:
            product *= dimension.size
        return product

    def first_dimension(self, world: int) -> int:
        """Returns the NPUs on the first dimension of the cluster for `world` ranks."""
        dims = self.settings.dims if self.preset is None else self.preset(world).dims
        return dims[0].size

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of what was ignored in the files."""
        return self.settings.diagnostics

    def cluster(self, world: int) -> Cluster:
        """Returns the cluster for `world` ranks. Raises UsageError when they do not fit."""
        cluster = self.unchecked(world)
        cluster.check_world(world)
        return cluster

    def unchecked(self, world: int) -> Cluster:
        """Returns the cluster for `world` ranks, whether they fit or not."""
        settings = self.settings if self.preset is None else self.settings.over(self.preset(world))
        return settings.cluster()


class ClusterParameters(Struct, frozen=True):
    """The parameters of the cluster; None and () where the user stated nothing."""

    cluster: str | None = None
    system: str | None = None
    dim: tuple[str, ...] = ()
    algorithm: tuple[str, ...] = ()
    splits: int | None = None
    active_chunks: int | None = None
    endpoint_delay: int | None = None
    local_mem_bw: float | None = None
    collective_optimization: str | None = None
    link_rate: tuple[str, ...] = ()


def choose_cluster(parameters: ClusterParameters, input_network: InputNetwork | None = None) -> ClusterChoice:
    """Returns the choice that the parameters make; flags count over the system file, that over the cluster.

    input_network: the network that comes with the input.
    Raises UsageError for an impossible value, InputError for a file that cannot be read.
    """
    dims = tuple(parse_dimension(text) for text in parameters.dim)
    base, preset = _base_settings(parameters.cluster)
    if parameters.link_rate:
        base = _with_link_rates(base, parameters.link_rate)
    if input_network is not None:
        dims = tuple(parse_dimension(text) for text in input_network.dims)
        choices = [parse_algorithm(text, dims) for text in input_network.algorithms]
        base = Settings(local_mem_bandwidth=input_network.memory).with_algorithms(choices, len(dims))
    is_default = parameters.cluster is None and not dims
    if dims:
        if base.algorithms and len(base.algorithms) != len(dims):
            file = printable(parameters.cluster or "", 60)
            raise UsageError(
                f"--dim gives {len(dims)} dimensions, and --cluster {file} has algorithms for "
                f"{len(base.algorithms)}: give as many"
            )
        if preset is not None and parameters.cluster is not None:
            # The dimensions are stated, the memory is the preset's.
            base = Settings(local_mem_bandwidth=preset(1).local_mem_bandwidth)
        base = Settings(dims=dims).over(base)
        preset = None
    known_dims = base.dims if preset is None else preset(1).dims
    if parameters.system is not None:
        from simcore.cluster.files import read_system_file

        base = read_system_file(parameters.system, len(known_dims)).over(base)
    algorithms = [parse_algorithm(text, known_dims) for text in parameters.algorithm]
    flags = Settings(
        endpoint_delay_ns=parameters.endpoint_delay,
        local_mem_bandwidth=parameters.local_mem_bw,
        splits=parameters.splits,
        active_chunks=parameters.active_chunks,
        optimization=_parse_optimization(parameters.collective_optimization),
    )
    settings = flags.over(base).with_algorithms(algorithms, len(known_dims))
    return ClusterChoice(settings, preset, is_default)


def changes_of_default(dims: Sequence[Dimension], world: int) -> list[str] | None:
    """Returns how dimensions differ from the default cluster's for `world` ranks: `dim 1 bandwidth 100 GB/s
    (not 50)`; None where their kinds or sizes do, or where no figure is the default's.
    """
    default = PRESETS[DEFAULT_PRESET](world).dims
    if [(dim.kind, dim.size) for dim in dims] != [(dim.kind, dim.size) for dim in default]:
        return None
    changed = []
    for index, (dimension, other) in enumerate(zip(dims, default, strict=True)):
        if dimension.bandwidth != other.bandwidth:
            changed.append(
                f"dim {index} bandwidth {dimension.bandwidth_text()} (not {format_number(other.bandwidth)})"
            )
        if dimension.latency_ns != other.latency_ns:
            hop, was = format_number(dimension.latency_ns), format_number(other.latency_ns)
            changed.append(f"dim {index} latency {hop} ns a hop (not {was})")
    return None if len(changed) == 2 * len(default) else changed


def parameter_values(cluster: Cluster) -> dict[str, Any]:
    """Returns the cluster's part of `Parameters` that has one value each, as this cluster has it."""
    return {
        "splits": cluster.splits,
        "active_chunks": cluster.active_chunks,
        "endpoint_delay": cluster.endpoint_delay_ns,
        "local_mem_bw": cluster.local_mem_bandwidth,
        "collective_optimization": cluster.optimization,
    }


def _base_settings(name: str | None) -> tuple[Settings, Callable[[int], Settings] | None]:
    """Returns what `--cluster` names: the settings of a file, or none and a preset."""
    if name is None or name in PRESETS:
        return Settings(), PRESETS[name or DEFAULT_PRESET]
    generators = [text.partition(":")[0] for text in TOPOLOGY_NAMES]
    if ":" in name and name.partition(":")[0] in generators:
        from simcore.cluster.files.simai_topology import topology_settings
        from simcore.topology import generate_topology

        return topology_settings(generate_topology(name)), None
    if not os.path.lexists(name):
        names = (*PRESETS, *TOPOLOGY_NAMES)
        raise UsageError(f"--cluster {printable(name, 60)}: no file, and none of {', '.join(names)}"
                         f"{did_you_mean(name, names)}")  # fmt: skip
    # Imported here: most runs read no file, and re and json would be start-up time.
    from simcore.cluster.files import read_cluster_file

    return read_cluster_file(name), None


def _with_link_rates(settings: Settings, texts: Sequence[str]) -> Settings:
    """Returns the settings of a topology with other rates of some links. Raises UsageError."""
    from simcore.cluster.files.simai_topology import topology_settings
    from simcore.topology import missing_link, parse_link_rates, with_link_rates

    factors = parse_link_rates(texts)
    if settings.topology is None:
        raise UsageError(
            f"--link-rate {printable(texts[0], 60)}: the cluster has no links by number; a topology as "
            "--cluster would fit"
        )
    missing = missing_link(settings.topology, factors)
    if missing is not None:
        names = " and ".join(map(str, sorted(missing)))
        raise UsageError(f"--link-rate: the topology has no link between nodes {names}")
    changed = topology_settings(with_link_rates(settings.topology, factors))
    return changed.over(replace(settings, diagnostics=()))


def _parse_optimization(name: str | None) -> Optimization | None:
    if name is None:
        return None
    for option in OPTIMIZATIONS:
        if name == option:
            return option
    name_text = printable(name, 60)
    raise UsageError(f"--collective-optimization {name_text}: {either(OPTIMIZATIONS)} is expected"
                     f"{did_you_mean(name, OPTIMIZATIONS)}")  # fmt: skip
