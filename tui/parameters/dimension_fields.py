"""The fields of one dimension of the cluster, and what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simcore.cluster import ALGORITHM_NAMES, Dimension, check_algorithm, parse_dimension
from simcore.diagnostics import UsageError
from simcore.parameters import Parameters, flag_of, replaced
from simcore.records import replace
from simcore.units import number
from tui.parameters.basis import Basis, basis_of
from tui.parameters.field import Field, next_name, of_cluster, scrubbed_figure


@dataclass(frozen=True, slots=True)
class DimensionField(Field):
    """Bandwidth or latency of one dimension of the cluster. attribute: of `Dimension`."""

    index: int
    attribute: str

    def words(self, text: str) -> str:
        name = "at" if self.attribute == "bandwidth" else "latency"
        return f"dim {self.index} {name} {text} {self.unit}"

    def text(self, parameters: Parameters, basis: Basis) -> str:
        try:
            dims = dims_of(parameters, basis)
        except UsageError:
            return "none"
        # Clusters differ in their number of dimensions, and the form may stand on another run's.
        return number(getattr(dims[self.index], self.attribute)) if self.index < len(dims) else "none"

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        value = getattr(self._dims(parameters, basis)[self.index], self.attribute)
        return self._with(parameters, basis, scrubbed_figure(value, direction, large))

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        dims = [dimension.flag() for dimension in self._dims(parameters, basis)]
        words = dims[self.index].split(":")
        words[2 if self.attribute == "bandwidth" else 3] = text
        dims[self.index] = parse_dimension(":".join(words)).flag()
        return replaced(parameters, "dim", tuple(dims))

    def reset(self, parameters: Parameters, opened: Basis) -> Parameters:
        value = getattr(self._dims(opened.parameters, opened)[self.index], self.attribute)
        changed = self._with(parameters, opened, value)
        bare = replaced(parameters, "dim", ())
        if not opened.parameters.dim and changed.dim == tuple(one.flag() for one in dims_of(bare, opened)):
            # As when none was given: then a preset grows with the world again.
            return bare
        return changed

    def origin(self, parameters: Parameters, basis: Basis) -> str:
        return "given" if parameters.dim else of_cluster(parameters)

    def differs(self, one: Basis, other: Basis) -> bool:
        # Of other kinds, sizes or another number of dimensions the change is that of all together.
        given = one.parameters.dim != other.parameters.dim
        alike = given and shapes_of(one) == shapes_of(other)
        return alike and self.text(one.parameters, one) != self.text(other.parameters, other)

    def moved(self, source: Basis, target: Basis) -> Parameters:
        text = self.text(source.parameters, source)
        return self.typed(target.parameters, target, text)

    def _with(self, parameters: Parameters, basis: Basis, value: float) -> Parameters:
        dims = list(self._dims(parameters, basis))
        changed = replace(dims[self.index], **{self.attribute: value})
        dims[self.index] = parse_dimension(changed.flag())
        return replaced(parameters, "dim", tuple(dimension.flag() for dimension in dims))

    def _dims(self, parameters: Parameters, basis: Basis) -> tuple[Dimension, ...]:
        """All dimensions, this one among them. Raises `UsageError`."""
        dims = dims_of(parameters, basis)
        if self.index >= len(dims):
            raise UsageError(f"{self.label}: this cluster has {len(dims)} dimensions")
        return dims


@dataclass(frozen=True, slots=True)
class AlgorithmField(Field):
    """The collective algorithm of one dimension."""

    index: int

    def is_named_by(self, words: str) -> bool:
        return words.startswith(f"{self.option} {self.index}=")

    def text(self, parameters: Parameters, basis: Basis) -> str:
        given = dict(text.partition("=")[::2] for text in parameters.algorithm)
        return given.get(str(self.index), "default")

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        names = ("default", *ALGORITHM_NAMES)
        return self.typed(parameters, basis, next_name(names, self.text(parameters, basis), direction))

    def reset(self, parameters: Parameters, opened: Basis) -> Parameters:
        return self.typed(parameters, opened, self.text(opened.parameters, opened))

    def origin(self, parameters: Parameters, basis: Basis) -> str:
        return "by kind" if self.text(parameters, basis) == "default" else "given"

    def differs(self, one: Basis, other: Basis) -> bool:
        return self.text(one.parameters, one) != self.text(other.parameters, other)

    def moved(self, source: Basis, target: Basis) -> Parameters:
        return self.reset(target.parameters, source)

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        given = f"{self.index}={text}"
        check_algorithm(given, text, also=("default",))
        others = [one for one in parameters.algorithm if one.split("=", 1)[0] != str(self.index)]
        mine = [] if text == "default" else [given]
        return replaced(parameters, "algorithm", tuple(sorted([*others, *mine])))


def dimension_place(index: int, dims: Sequence[Dimension]) -> str:
    """What a dimension is in a cluster of servers behind switches; empty for other clusters."""
    if len(dims) != 2 or dims[-1].kind == "ring":
        return ""
    return ("inside a server", "between servers")[index]


def dimension_fields(index: int, dims: Sequence[Dimension]) -> list[Field]:
    """The fields of one dimension of the cluster."""
    name, dimension = f"dim {index}", dims[index]
    where = dimension_place(index, dims)
    shape = f"{dimension.kind} {dimension.size}"
    place = f"on dimension {index} ({where or 'inner first'}, {shape})"
    dim, algorithm = flag_of("dim").option, flag_of("algorithm").option
    bandwidth = f"{dim}  bandwidth {place}"
    latency = f"{dim}  latency {place}"
    name_of = f"{algorithm}  collective algorithm {place}"
    return [
        DimensionField("cluster", f"{name}  bandwidth", "GB/s", bandwidth, dim, index, "bandwidth"),
        DimensionField("cluster", f"{name}  latency", "ns a hop", latency, dim, index, "latency_ns"),
        AlgorithmField("cluster", f"{name}  algorithm", "", name_of, algorithm, index),
    ]


def shapes_of(basis: Basis) -> list[tuple[str, int]]:
    """Kind and size of each dimension of a run."""
    return [(one.kind, one.size) for one in dims_of(basis.parameters, basis)]


def dims_of(parameters: Parameters, basis: Basis) -> tuple[Dimension, ...]:
    """The dimensions of the network of `parameters`. Raises `UsageError` for one that cannot be."""
    if parameters.dim:
        return tuple(parse_dimension(text) for text in parameters.dim)
    return basis_of(parameters, basis).cluster.dims
