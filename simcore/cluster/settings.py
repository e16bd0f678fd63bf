"""What a user says about a cluster, in a file, by a preset or by flags, and what it makes together."""

from __future__ import annotations

from simcore.cluster.model import Cluster, Dimension
from simcore.diagnostics import Diagnostic
from simcore.names import Optimization
from simcore.records import Struct

Algorithms = tuple[str | None, ...]


class Settings(Struct, frozen=True):
    """Part of a cluster; None and () are left open. The fields are those of `Cluster`.

    diagnostics: what was ignored in the file that they come from.
    """

    dims: tuple[Dimension, ...] = ()
    algorithms: Algorithms = ()
    by_collective: tuple[tuple[str, Algorithms], ...] = ()
    endpoint_delay_ns: int | None = None
    local_mem_bandwidth: float | None = None
    alltoall_port_time: bool | None = None
    splits: int | None = None
    active_chunks: int | None = None
    optimization: Optimization | None = None
    newest_first: bool | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def over(self, other: Settings) -> Settings:
        """These settings, and where they are open those of `other`.

        Algorithms given here for all collectives replace those that `other` gives for some.
        """
        return Settings(
            self.dims or other.dims,
            self._algorithms_over(other.algorithms),
            self.by_collective
            or tuple((name, self._algorithms_over(names)) for name, names in other.by_collective),
            other.endpoint_delay_ns if self.endpoint_delay_ns is None else self.endpoint_delay_ns,
            self.local_mem_bandwidth or other.local_mem_bandwidth,
            other.alltoall_port_time if self.alltoall_port_time is None else self.alltoall_port_time,
            self.splits or other.splits,
            self.active_chunks or other.active_chunks,
            self.optimization or other.optimization,
            other.newest_first if self.newest_first is None else self.newest_first,
            (*other.diagnostics, *self.diagnostics),
        )

    def cluster(self) -> Cluster:
        """The cluster, with the defaults for what is still open."""
        return Cluster(
            self.dims,
            self.algorithms or (None,) * len(self.dims),
            10 if self.endpoint_delay_ns is None else self.endpoint_delay_ns,
            self.local_mem_bandwidth or 3350.0,
            self.alltoall_port_time is not False,
            self.splits or 1,
            self.active_chunks or 1,
            self.optimization or "localBWAware",
            self.by_collective,
            self.newest_first is not False,
        )

    def _algorithms_over(self, other: Algorithms) -> Algorithms:
        if not self.algorithms or not other:
            return self.algorithms or other
        return tuple(mine or theirs for mine, theirs in zip(self.algorithms, other, strict=True))
