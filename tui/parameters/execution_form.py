"""The form of execution traces: the parameters that they have, declared by their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simcore.cluster import DEFAULT_PRESET, Cluster
from simcore.diagnostics import InputError, UsageError
from simcore.executing.execution_result import Execution
from simcore.executing.run import values_in_force
from simcore.names import ASTRA_SIM_2
from simcore.parameter_values.choices import choices
from simcore.parameters import DEFAULT_NETWORK, FLAGS, RunInput
from simcore.records import NamedTuple
from simcore.runs.executed import ExecutedRun
from simcore.units import format_number
from tui.parameters.fields import (
    FROM_USER,
    FormField,
    ParameterField,
    Values,
    cluster_origin,
    next_name,
    parse_typed,
    scrubbed_count,
)
from tui.parameters.source import FormSource

_NONE = "-"


class ExecutionContext(NamedTuple):
    """What the fields of execution traces need."""

    setup: Execution
    world: int
    """The number of ranks."""
    used: Mapping[str, Any]
    """The values in force of parameters that are not given: of the system file, of the cluster, or
    a default.
    """


@dataclass(frozen=True, slots=True)
class ExecutionField(ParameterField):
    """One parameter, typed as on the command line; `-` resets it."""

    def text(self, context: Any) -> str:
        value = self._value(context)
        if value is None or value == ():
            return _NONE
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return " ".join(value)
        return format_number(value) if isinstance(value, int | float) else str(value)

    def displayed_value(self, context: Any) -> str:
        if self.flag.field != "dim" or context.setup.parameters.dim:
            return self.text(context)
        return " x ".join(_dimension_words(dimension) for dimension in context.used["dim"])

    def _value(self, context: Any) -> Any:
        value = getattr(context.setup.parameters, self.flag.field)
        if self.flag.field == "network":
            return context.setup.network_name
        return context.used.get(self.flag.field) if value is None or value == () else value

    def scrubbed(self, context: Any, direction: int, large: bool) -> Values:
        field, value = self.flag.field, self._value(context)
        if self.flag.kind == "switch":
            return {field: not value}
        if self.flag.kind == "word":
            names = self._names()
            now = _NONE if value is None else value
            name = next_name(names, now, direction)
            return {field: None if name in (_NONE, DEFAULT_NETWORK) else name}
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
            return (DEFAULT_NETWORK, "links")
        return choices(self.flag.field)

    def parse_text(self, context: Any, text: str) -> Values:
        if text.strip() in ("", _NONE):
            return {self.flag.field: self.flag.default}
        value = parse_typed(self.flag, text.strip(), self._names() if self.flag.kind == "word" else ())
        is_default = self.flag.field == "network" and value == DEFAULT_NETWORK
        return {self.flag.field: None if is_default else value}

    def origin(self, context: Any) -> str:
        if getattr(context.setup.parameters, self.flag.field) != self.flag.default:
            return FROM_USER
        if self.flag.field not in context.used:
            return "default"
        of_system = context.setup.parameters.system is not None and self.flag.field != "dim"
        return "the files" if of_system else cluster_origin(context)


def _dimension_words(flag: str) -> str:
    """Returns `switch 8 400GiB/s` of `switch:8:400GiB:300`."""
    kind, size, rate, _ = flag.split(":")
    return f"{kind} {size} {rate}{'/s' if rate.endswith('GiB') else 'GB/s'}"


class ExecutionForm(FormSource):
    """Every parameter that execution traces have."""

    def make_context(self, run: ExecutedRun) -> ExecutionContext:
        """Returns the context of a finished run."""
        executed = run.executed
        return ExecutionContext(
            run.setup, len(run.ranks), _used_values(executed.cluster, executed.used, run.parameters.dim)
        )

    def make_draft_context(self, setup: Execution, context: ExecutionContext) -> ExecutionContext:
        """Returns the context of a draft; where it cannot be read, the values in force stay."""
        try:
            used = _used_values(*values_in_force(setup, context.world), setup.parameters.dim)
        except (UsageError, InputError):
            used = context.used
        return ExecutionContext(setup, context.world, used)

    def fields(self, context: ExecutionContext) -> list[FormField]:
        """Returns the fields of the flags that apply to execution traces."""
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

    def balance_stages(self, run: ExecutedRun, draft: RunInput) -> Values:
        """Raises `UsageError`: execution traces have no stages."""
        raise UsageError("balancing is of measured stages; execution traces do not tell stages")


def _used_values(
    cluster: Cluster, values: Mapping[str, Any], stated_dims: Sequence[str]
) -> Mapping[str, Any]:
    used = {**values, "dim": tuple(dim.file_unit_flag() for dim in cluster.dims)}
    if any(cluster.algorithms):
        set_algorithms = ((index, name) for index, name in enumerate(cluster.algorithms) if name is not None)
        used["algorithm"] = tuple(f"{index}={name}" for index, name in set_algorithms)
    return used if stated_dims else {**used, "cluster": DEFAULT_PRESET}
