"""The fields over flags that may be repeated: typed as one list, each item checked."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.cluster import parse_dimension
from simcore.diagnostics import UsageError
from simcore.forms import check_item, form_of
from simcore.parameters import Parameters, parse_value, replaced
from tui.parameters.basis import Basis, basis_of
from tui.parameters.dimension_fields import dims_of
from tui.parameters.field import of_cluster
from tui.parameters.flag_fields import FlagField


@dataclass(frozen=True, slots=True)
class ListField(FlagField):
    """A list of items; `none` or nothing typed takes all away."""

    @property
    def form(self) -> str:
        return form_of(self.flag.field)

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        return parameters

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        items: tuple[str, ...] = () if text == "none" else parse_value(self.flag, text)
        placed = basis_of(parameters, basis)
        world, dimensions = parameters.world or placed.layout.world, len(placed.cluster.dims)
        for item in items:
            check_item(self.flag.field, item, world, dimensions, "workload")
        return replaced(parameters, self.flag.field, items)


@dataclass(frozen=True, slots=True)
class DimensionsField(ListField):
    """All dimensions of the cluster, inner first: their kinds, sizes and number, which no other field has.

    With none typed they are the cluster's own.
    """

    def words(self, text: str) -> str:
        return f"{self.label} {text}"

    def text(self, parameters: Parameters, basis: Basis) -> str:
        try:
            dims = dims_of(parameters, basis)
        except UsageError:
            return " ".join(parameters.dim) or "none"
        return " ".join(one.flag() for one in dims) or "none"

    def shown(self, parameters: Parameters, basis: Basis) -> str:
        # Bandwidths and latencies have fields of their own, which are marked when they are changed.
        try:
            dims = dims_of(parameters, basis)
        except UsageError:
            return self.text(parameters, basis)
        return ", ".join(f"{one.kind} {one.size}" for one in dims) or "none"

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        changed = ListField.typed(self, parameters, basis, text)
        return replaced(changed, "dim", tuple(parse_dimension(item).flag() for item in changed.dim))

    def origin(self, parameters: Parameters, basis: Basis) -> str:
        return "given" if parameters.dim else of_cluster(parameters)

    def differs(self, one: Basis, other: Basis) -> bool:
        given = one.parameters.dim != other.parameters.dim
        return given and self.shown(one.parameters, one) != self.shown(other.parameters, other)
