"""The fields over one flag of the command line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simcore.choices import choices, may_be_file
from simcore.cluster import DEFAULT_PRESET, PRESETS, parameter_values
from simcore.diagnostics import UsageError
from simcore.names import WORKLOAD_DIALECTS
from simcore.networks import NETWORKS, network_model
from simcore.networks.simai import simai_bandwidths
from simcore.parameters import Flag, Parameters, least_count, parse_value, replaced
from simcore.stated import Origin, origin_of
from simcore.units import number
from tui.parameters.basis import Basis, basis_of, is_one_loop, not_given, values_of_model
from tui.parameters.field import Field, next_name, of_cluster, scrubbed_count, scrubbed_figure

_DEGREES = ("world", "tp", "ep", "pp", "cp")
# What the type of the GPU or NIC gives where it is not given.
_OF_TYPE = ("nvlink", "nic")
_ORIGINS: dict[Origin, str] = {"stated": "in the file", "counted": "counted", "assumed": "assumed"}


@dataclass(frozen=True, slots=True)
class FlagField(Field):
    """A field over one flag of the command line."""

    flag: Flag

    def _value(self, parameters: Parameters, basis: Basis) -> Any:
        value = getattr(parameters, self.flag.field)
        if value is not None:
            return value
        of_model = values_of_model(parameters, basis)
        if self.flag.field in of_model:
            return of_model[self.flag.field]
        basis = basis_of(parameters, basis)
        if self.flag.field in _DEGREES:
            return getattr(basis.layout, self.flag.field)
        if self.flag.field == "dialect":
            return (basis.workload.as_read or basis.workload).dialect
        if self.flag.kind == "text":
            return "none"
        if self.flag.field in _OF_TYPE:
            return simai_bandwidths(parameters)[self.flag.field]
        values = parameter_values(basis.cluster)
        return values[self.flag.field] if self.flag.field in values else not_given(self.flag.field, basis)

    def text(self, parameters: Parameters, basis: Basis) -> str:
        try:
            value = self._value(parameters, basis)
        except UsageError:
            # What it would be taken from cannot be.
            return "default"
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return " ".join(value) or "none"
        return number(value) if isinstance(value, int | float) else str(value)

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        flag = self.flag
        value = self._value(parameters, basis)
        if flag.kind == "switch":
            return replaced(parameters, flag.field, not value)
        if flag.kind == "word":
            return replaced(parameters, flag.field, next_name(_of_workloads(flag), value, direction))
        if flag.field in _DEGREES:
            return self._checked(parameters, max(value * 2 if direction > 0 else value // 2, 1))
        if flag.kind == "count":
            step = 10 if flag.field == "endpoint_delay" else 1
            changed = scrubbed_count(value, direction, large, step, least_count(flag))
            return self._checked(parameters, changed)
        if flag.kind == "scale":
            changed_scale = value * 2.0**direction if large else value + direction * 0.1
            return self._checked(parameters, max(round(changed_scale, 4), 0.0))
        return self._checked(parameters, scrubbed_figure(value, direction, large))

    def origin(self, parameters: Parameters, basis: Basis) -> str:
        field = self.flag.field
        value = getattr(parameters, field)
        if value is not None:
            return "default" if value == self.flag.default else "given"
        if basis.workload.maker is not None and (self.flag.in_file or "workload" not in self.flag.of):
            return "assumed"
        if self.flag.in_file:
            here = basis_of(parameters, basis)
            workload = here.workload.as_read or here.workload
            in_blocks = not is_one_loop(here)
            return _ORIGINS[origin_of(workload, field, self._value(parameters, here), in_blocks)]
        return of_cluster(parameters) if field in parameter_values(basis.cluster) else "default"

    def differs(self, one: Basis, other: Basis) -> bool:
        return bool(getattr(one.parameters, self.flag.field) != getattr(other.parameters, self.flag.field))

    def moved(self, source: Basis, target: Basis) -> Parameters:
        value = getattr(source.parameters, self.flag.field)
        return replaced(target.parameters, self.flag.field, value)

    def _checked(self, parameters: Parameters, value: int | float) -> Parameters:
        """The parameters with a value that the command line takes too. Raises `UsageError`."""
        return replaced(parameters, self.flag.field, parse_value(self.flag, repr(value)))

    def reset(self, parameters: Parameters, opened: Basis) -> Parameters:
        return replaced(parameters, self.flag.field, getattr(opened.parameters, self.flag.field))

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        flag = self.flag
        if flag.kind == "switch":
            if text not in ("on", "off"):
                raise UsageError(f"{flag.option}: on or off is expected")
            return replaced(parameters, flag.field, text == "on")
        fits = text in _of_workloads(flag) or may_be_file(flag.field, text)
        if flag.kind == "word" and not fits:
            raise UsageError(f"{flag.option}: one of {', '.join(_of_workloads(flag))} is expected")
        return replaced(parameters, flag.field, parse_value(flag, text))


@dataclass(frozen=True, slots=True)
class TextField(FlagField):
    """A preset or a file; the presets are the choices. Dimensions that were changed go with it."""

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        if self.flag.field != "cluster":
            raise UsageError(f"{self.flag.option}: type the name of a file")
        name = next_name(tuple(PRESETS), parameters.cluster or DEFAULT_PRESET, direction)
        return replaced(replaced(parameters, "cluster", name), "dim", ())

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        name = None if text in ("", "none") else text
        changed = replaced(parameters, self.flag.field, name)
        return replaced(changed, "dim", ()) if self.flag.field == "cluster" and name else changed

    def reset(self, parameters: Parameters, opened: Basis) -> Parameters:
        changed = replaced(parameters, self.flag.field, getattr(opened.parameters, self.flag.field))
        return replaced(changed, "dim", opened.parameters.dim) if self.flag.field == "cluster" else changed

    def moved(self, source: Basis, target: Basis) -> Parameters:
        return self.reset(target.parameters, source)


@dataclass(frozen=True, slots=True)
class NetworkField(FlagField):
    """The network model; one that needs a file is typed: `busbw:FILE`."""

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        names = tuple(name for name, model in NETWORKS.items() if model.argument is None)
        return replaced(parameters, self.flag.field, next_name(names, parameters.network, direction))

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        changed = replaced(parameters, self.flag.field, text)
        network_model(changed)
        return changed


def _of_workloads(flag: Flag) -> tuple[str, ...]:
    """The words of a parameter that a workload can have: one dialect is of execution traces alone."""
    return WORKLOAD_DIALECTS if flag.field == "dialect" else choices(flag.field)
