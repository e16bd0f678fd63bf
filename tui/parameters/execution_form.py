"""The form of execution traces: the parameters that they have, as their flags are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.asked.choices import choices
from simcore.cluster import DEFAULT_PRESET, Cluster
from simcore.diagnostics import InputError, UsageError
from simcore.executing.executed import Execution
from simcore.executing.run import values_in_force
from simcore.names import ASTRA_SIM_2
from simcore.parameters import FLAGS, Given
from simcore.records import NamedTuple
from simcore.runs.executed import TraceResults
from simcore.units import number
from tui.parameters.fields import (
    GIVEN,
    FormField,
    ParameterField,
    Values,
    next_name,
    of_cluster,
    scrubbed_count,
    typed_value,
)
from tui.parameters.source import FormSource

_NONE = "-"


class ExecutionBasis(NamedTuple):
    """What the fields of execution traces know. world: how many ranks there are. used: what is in force of
    parameters that are not given: of the system file, of the cluster, or a default.
    """

    setup: Execution
    world: int
    used: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExecutionField(ParameterField):
    """One parameter, typed as on the command line; `-` takes it back."""

    def text(self, basis: Any) -> str:
        value = self._value(basis)
        if value is None or value == ():
            return _NONE
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return " ".join(value)
        return number(value) if isinstance(value, int | float) else str(value)

    def shown(self, basis: Any) -> str:
        if self.flag.field != "dim" or basis.setup.parameters.dim:
            return self.text(basis)
        return " x ".join(_dimension_words(dimension) for dimension in basis.used["dim"])

    def _value(self, basis: Any) -> Any:
        value = getattr(basis.setup.parameters, self.flag.field)
        return basis.used.get(self.flag.field) if value is None or value == () else value

    def scrubbed(self, basis: Any, direction: int, large: bool) -> Values:
        field, value = self.flag.field, self._value(basis)
        if self.flag.kind == "switch":
            return {field: not value}
        if self.flag.kind == "word":
            names = self._names()
            now = _NONE if value is None else value
            name = next_name(names, now, direction)
            return {field: None if name == _NONE else name}
        if self.flag.kind == "scale":
            changed = value * 2.0**direction if large else max(round(value + direction * 0.1, 3), 0.0)
            return {field: changed}
        if self.flag.kind == "count" and value is not None:
            return {field: scrubbed_count(value, direction, large, 1, 1)}
        raise UsageError(f"{self.option}: type a value with Enter")

    def _names(self) -> tuple[str, ...]:
        if self.flag.field == "dialect":
            return (_NONE, ASTRA_SIM_2)
        if self.flag.field == "network":
            return ("analytical", "links")
        return choices(self.flag.field)

    def typed(self, basis: Any, text: str) -> Values:
        if text.strip() in ("", _NONE):
            return {self.flag.field: self.flag.default}
        value = typed_value(self.flag, text.strip(), self._names() if self.flag.kind == "word" else ())
        return {self.flag.field: value}

    def origin(self, basis: Any) -> str:
        if getattr(basis.setup.parameters, self.flag.field) != self.flag.default:
            return GIVEN
        if self.flag.field not in basis.used:
            return "default"
        of_system = basis.setup.parameters.system is not None and self.flag.field != "dim"
        return "the files" if of_system else of_cluster(basis)


def _dimension_words(flag: str) -> str:
    """`switch 8 400GiB/s` of `switch:8:400GiB:300`."""
    kind, size, rate, _ = flag.split(":")
    return f"{kind} {size} {rate}{'/s' if rate.endswith('GiB') else 'GB/s'}"


class ExecutionForm(FormSource):
    """Every parameter that execution traces have."""

    def basis(self, run: TraceResults) -> ExecutionBasis:
        """Of a run that is there."""
        executed = run.executed
        return ExecutionBasis(
            run.setup, len(run.ranks), _used(executed.cluster, executed.used, run.parameters.dim)
        )

    def near(self, setup: Execution, basis: ExecutionBasis) -> ExecutionBasis:
        """Of a draft; what cannot be read leaves what was in force."""
        try:
            used = _used(*values_in_force(setup, basis.world), setup.parameters.dim)
        except (UsageError, InputError):
            used = basis.used
        return ExecutionBasis(setup, basis.world, used)

    def fields(self, basis: ExecutionBasis) -> list[FormField]:
        """Those of the table whose flag says so."""
        return [
            ExecutionField(
                flag.group,
                flag.field.replace("_", " "),
                flag.unit,
                f"{flag.option}  {flag.help}",
                flag.option,
                flag,
            )
            for flag in FLAGS
            if "execution" in flag.of
        ]

    def balanced(self, run: TraceResults, draft: Given) -> Values:
        """Stages are not known."""
        raise UsageError("balancing is of measured stages; execution traces do not tell stages")


def _used(cluster: Cluster, values: Mapping[str, Any], given: Sequence[str]) -> Mapping[str, Any]:
    used = {**values, "dim": tuple(dim.written() for dim in cluster.dims)}
    if any(cluster.algorithms):
        named = ((index, name) for index, name in enumerate(cluster.algorithms) if name is not None)
        used["algorithm"] = tuple(f"{index}={name}" for index, name in named)
    return used if given else {**used, "cluster": DEFAULT_PRESET}
