"""The fields of the form: what each shows, and what scrubbing or typing makes of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from simcore.choices import choices
from simcore.cluster import (
    ALGORITHM_NAMES,
    DEFAULT_PRESET,
    PRESETS,
    Dimension,
    is_algorithm,
    parameter_values,
    parse_dimension,
)
from simcore.diagnostics import UsageError
from simcore.networks import NETWORKS, network_model
from simcore.networks.simai_inputs import simai_bandwidths
from simcore.parameters import FLAGS, Flag, Parameters, flag_of, parse_value, replaced
from simcore.simulation import Simulation
from simcore.units import number

# Names that would fill their column.
_SHORT = {"overlap_grad_reduce": "overlap reduce", "overlap_param_gather": "overlap gather"}
_DEGREES = ("world", "tp", "ep", "pp")
# What the type of the GPU or NIC gives where it is not given.
_OF_TYPE = ("nvlink", "nic")
# What a file says where nothing is given.
_IN_THE_FILE = ("world", "tp", "ep", "pp", "microbatches", "dialect")


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter in the form. label, unit, help: what is shown of it."""

    group: str
    label: str
    unit: str
    help: str

    def words(self, text: str) -> str:
        """The parameter with a value, in a few words."""
        return " ".join(f"{self.label} {text} {self.unit}".split())

    def text(self, parameters: Parameters, simulation: Simulation) -> str:
        """The value now. simulation: the run on the screen, for what is not given."""
        raise NotImplementedError

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        """The parameters with the value one step (or a factor of 2, `large`) up or down."""
        raise NotImplementedError

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        """The parameters with the value that was typed. Raises `UsageError`."""
        raise NotImplementedError

    def reset(self, parameters: Parameters, opened: Simulation) -> Parameters:
        """The parameters with this value as it was when the file was opened."""
        raise NotImplementedError

    def origin(self, parameters: Parameters, simulation: Simulation) -> str:
        """Where the value comes from, in a word or three."""
        raise NotImplementedError

    def differs(self, one: Simulation, other: Simulation) -> bool:
        """Whether the two runs were given different values."""
        raise NotImplementedError

    def moved(self, source: Simulation, target: Simulation) -> Parameters:
        """The target's parameters with this value of the source's. Raises `UsageError`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FlagField(Field):
    """A field over one flag of the command line."""

    flag: Flag

    def _value(self, parameters: Parameters, simulation: Simulation) -> Any:
        value = getattr(parameters, self.flag.field)
        if value is not None:
            return value
        if self.flag.field in _DEGREES:
            return getattr(simulation.layout, self.flag.field)
        if self.flag.field == "dialect":
            return simulation.workload.dialect
        if self.flag.kind == "text":
            return "none"
        if self.flag.field in _OF_TYPE:
            return simai_bandwidths(parameters)[self.flag.field]
        of_cluster = parameter_values(simulation.cluster)
        if self.flag.field in of_cluster:
            return of_cluster[self.flag.field]
        return getattr(simulation.program, self.flag.field)

    def text(self, parameters: Parameters, simulation: Simulation) -> str:
        value = self._value(parameters, simulation)
        if self.flag.field in parameter_values(simulation.cluster):
            given, now = getattr(simulation.parameters, self.flag.field), getattr(parameters, self.flag.field)
            if now is None and given is not None:
                # Taken back, and the run that shows what it is then has not ended.
                return "default"
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return " ".join(value) or "none"
        return number(value) if isinstance(value, int | float) else str(value)

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        flag = self.flag
        value = self._value(parameters, simulation)
        if flag.kind == "switch":
            return replaced(parameters, flag.field, not value)
        if flag.kind == "words":
            return parameters
        if flag.kind == "word":
            return replaced(parameters, flag.field, _next(choices(flag.field), value, direction))
        if flag.field in _DEGREES:
            return self._checked(parameters, max(value * 2 if direction > 0 else value // 2, 1))
        if flag.kind == "count":
            step = 10 if flag.field == "endpoint_delay" else 1
            changed = _scrubbed_count(
                value, direction, large, step, 0 if flag.field == "endpoint_delay" else 1
            )
            return self._checked(parameters, changed)
        if flag.kind == "scale":
            changed_scale = value * 2.0**direction if large else value + direction * 0.1
            return self._checked(parameters, max(round(changed_scale, 4), 0.0))
        return self._checked(parameters, scrubbed_figure(value, direction, large))

    def origin(self, parameters: Parameters, simulation: Simulation) -> str:
        field = self.flag.field
        value = getattr(parameters, field)
        if value is not None:
            return "default" if value == self.flag.default else "given"
        if field in _IN_THE_FILE:
            return "in the file"
        return _of_cluster(parameters) if field in parameter_values(simulation.cluster) else "default"

    def differs(self, one: Simulation, other: Simulation) -> bool:
        return bool(getattr(one.parameters, self.flag.field) != getattr(other.parameters, self.flag.field))

    def moved(self, source: Simulation, target: Simulation) -> Parameters:
        value = getattr(source.parameters, self.flag.field)
        return replaced(target.parameters, self.flag.field, value)

    def _checked(self, parameters: Parameters, value: int | float) -> Parameters:
        """The parameters with a value that the command line takes too. Raises `UsageError`."""
        return replaced(parameters, self.flag.field, parse_value(self.flag, repr(value)))

    def reset(self, parameters: Parameters, opened: Simulation) -> Parameters:
        return replaced(parameters, self.flag.field, getattr(opened.parameters, self.flag.field))

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        flag = self.flag
        if flag.kind == "switch":
            if text not in ("on", "off"):
                raise UsageError(f"{flag.option}: on or off is expected")
            return replaced(parameters, flag.field, text == "on")
        if flag.kind == "words":
            return replaced(parameters, flag.field, () if text == "none" else parse_value(flag, text))
        if flag.kind == "word" and text not in choices(flag.field):
            raise UsageError(f"{flag.option}: one of {', '.join(choices(flag.field))} is expected")
        return replaced(parameters, flag.field, parse_value(flag, text))


@dataclass(frozen=True, slots=True)
class TextField(FlagField):
    """A preset or a file; the presets are the choices. Dimensions that were changed go with it."""

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        if self.flag.field != "cluster":
            raise UsageError(f"{self.flag.option}: type the name of a file")
        name = _next(tuple(PRESETS), parameters.cluster or DEFAULT_PRESET, direction)
        return replaced(replaced(parameters, "cluster", name), "dim", ())

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        name = None if text in ("", "none") else text
        changed = replaced(parameters, self.flag.field, name)
        return replaced(changed, "dim", ()) if self.flag.field == "cluster" and name else changed

    def reset(self, parameters: Parameters, opened: Simulation) -> Parameters:
        changed = replaced(parameters, self.flag.field, getattr(opened.parameters, self.flag.field))
        return replaced(changed, "dim", opened.parameters.dim) if self.flag.field == "cluster" else changed

    def moved(self, source: Simulation, target: Simulation) -> Parameters:
        return self.reset(target.parameters, source)


@dataclass(frozen=True, slots=True)
class NetworkField(FlagField):
    """The network model; one that needs a file is typed: `busbw:FILE`."""

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        names = tuple(name for name, model in NETWORKS.items() if model.argument is None)
        return replaced(parameters, self.flag.field, _next(names, parameters.network, direction))

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        changed = replaced(parameters, self.flag.field, text)
        network_model(changed)
        return changed


@dataclass(frozen=True, slots=True)
class DimensionField(Field):
    """Bandwidth or latency of one dimension of the cluster. attribute: of `Dimension`."""

    index: int
    attribute: str

    def words(self, text: str) -> str:
        name = "at" if self.attribute == "bandwidth" else "latency"
        return f"dim {self.index} {name} {text} {self.unit}"

    def text(self, parameters: Parameters, simulation: Simulation) -> str:
        dims = _dims(parameters, simulation)
        # Clusters differ in their number of dimensions, and the form may stand on another run's.
        return number(getattr(dims[self.index], self.attribute)) if self.index < len(dims) else "none"

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        value = getattr(self._dims(parameters, simulation)[self.index], self.attribute)
        return self._with(parameters, simulation, scrubbed_figure(value, direction, large))

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        dims = [dimension.flag() for dimension in self._dims(parameters, simulation)]
        words = dims[self.index].split(":")
        words[2 if self.attribute == "bandwidth" else 3] = text
        dims[self.index] = parse_dimension(":".join(words)).flag()
        return replaced(parameters, "dim", tuple(dims))

    def reset(self, parameters: Parameters, opened: Simulation) -> Parameters:
        value = getattr(self._dims(opened.parameters, opened)[self.index], self.attribute)
        changed = self._with(parameters, opened, value)
        if not opened.parameters.dim and changed.dim == tuple(one.flag() for one in opened.cluster.dims):
            # As when none was given: then the default cluster grows with the world again.
            return replaced(changed, "dim", ())
        return changed

    def origin(self, parameters: Parameters, simulation: Simulation) -> str:
        return "given" if parameters.dim else _of_cluster(parameters)

    def differs(self, one: Simulation, other: Simulation) -> bool:
        given = one.parameters.dim != other.parameters.dim
        return given and self.text(one.parameters, one) != self.text(other.parameters, other)

    def moved(self, source: Simulation, target: Simulation) -> Parameters:
        text = self.text(source.parameters, source)
        return self.typed(target.parameters, target, text)

    def _with(self, parameters: Parameters, simulation: Simulation, value: float) -> Parameters:
        dims = list(self._dims(parameters, simulation))
        changed = replace(dims[self.index], **{self.attribute: value})  # type: ignore[arg-type]
        dims[self.index] = parse_dimension(changed.flag())
        return replaced(parameters, "dim", tuple(dimension.flag() for dimension in dims))

    def _dims(self, parameters: Parameters, simulation: Simulation) -> tuple[Dimension, ...]:
        """All dimensions, this one among them. Raises `UsageError`."""
        dims = _dims(parameters, simulation)
        if self.index >= len(dims):
            raise UsageError(f"{self.label}: this cluster has {len(dims)} dimensions")
        return dims


@dataclass(frozen=True, slots=True)
class AlgorithmField(Field):
    """The collective algorithm of one dimension."""

    index: int

    def text(self, parameters: Parameters, simulation: Simulation) -> str:
        given = dict(text.partition("=")[::2] for text in parameters.algorithm)
        return given.get(str(self.index), "default")

    def scrubbed(
        self, parameters: Parameters, simulation: Simulation, direction: int, large: bool
    ) -> Parameters:
        names = ("default", *ALGORITHM_NAMES)
        return self.typed(parameters, simulation, _next(names, self.text(parameters, simulation), direction))

    def reset(self, parameters: Parameters, opened: Simulation) -> Parameters:
        return self.typed(parameters, opened, self.text(opened.parameters, opened))

    def origin(self, parameters: Parameters, simulation: Simulation) -> str:
        return "by kind" if self.text(parameters, simulation) == "default" else "given"

    def differs(self, one: Simulation, other: Simulation) -> bool:
        return self.text(one.parameters, one) != self.text(other.parameters, other)

    def moved(self, source: Simulation, target: Simulation) -> Parameters:
        return self.reset(target.parameters, source)

    def typed(self, parameters: Parameters, simulation: Simulation, text: str) -> Parameters:
        if text != "default" and not is_algorithm(text):
            raise UsageError(f"{self.label}: one of default, {', '.join(ALGORITHM_NAMES)} is expected")
        others = [one for one in parameters.algorithm if one.split("=", 1)[0] != str(self.index)]
        mine = [] if text == "default" else [f"{self.index}={text}"]
        return replaced(parameters, "algorithm", tuple(sorted([*others, *mine])))


def fields_for(simulation: Simulation) -> list[Field]:
    """The fields of a run, in the groups of the command line.

    Choices of one are left out, what the run's network has no use for, and the layers of a file
    that is no op table.
    """
    found: list[Field] = []
    model = network_model(simulation.parameters)
    for flag in FLAGS:
        if flag.group == "cluster" and not simulation.has_dimensions:
            continue
        if flag.group == "network" and flag.field not in ("network", *model.flags):
            continue
        if flag.field == "dim":
            for index in range(len(simulation.cluster.dims)):
                found += _dimension_fields(index, simulation.cluster.dims)
        elif not _is_left_out(flag, simulation):
            # A label has 22 columns.
            label = _SHORT.get(flag.field) or flag.field.replace("_", " ").removeprefix("collective ")
            kind = {"text": TextField}.get(flag.kind, FlagField)
            if flag.field == "network":
                kind = NetworkField
            found.append(kind(flag.group, label, flag.unit, f"{flag.option}  {flag.help}", flag))
    return found


def _is_left_out(flag: Flag, simulation: Simulation) -> bool:
    if flag.field == "layers":
        return simulation.workload.format != "op-table"
    return flag.field == "algorithm" or (flag.kind == "word" and len(choices(flag.field)) == 1)


def dimension_place(index: int, dims: Sequence[Dimension]) -> str:
    """What a dimension is in a cluster of servers behind switches; empty for other clusters."""
    if len(dims) != 2 or dims[-1].kind == "ring":
        return ""
    return ("inside a server", "between servers")[index]


def _dimension_fields(index: int, dims: Sequence[Dimension]) -> list[Field]:
    """The fields of one dimension of the cluster."""
    name, dimension = f"dim {index}", dims[index]
    where = dimension_place(index, dims)
    shape = f"{dimension.kind} {dimension.size}"
    place = f"on dimension {index} ({where or 'inner first'}, {shape})"
    bandwidth = f"{flag_of('dim').option}  bandwidth {place}"
    latency = f"{flag_of('dim').option}  latency {place}"
    algorithm = f"{flag_of('algorithm').option}  collective algorithm {place}"
    return [
        DimensionField("cluster", f"{name}  bandwidth", "GB/s", bandwidth, index, "bandwidth"),
        DimensionField("cluster", f"{name}  latency", "ns a hop", latency, index, "latency_ns"),
        AlgorithmField("cluster", f"{name}  algorithm", "", algorithm, index),
    ]


def _of_cluster(parameters: Parameters) -> str:
    """Where the values of the cluster come from."""
    if parameters.cluster is None:
        return "default" if parameters.system is None else "the files"
    return "preset" if parameters.cluster in PRESETS else "the file"


def _dims(parameters: Parameters, simulation: Simulation) -> tuple[Dimension, ...]:
    if parameters.dim:
        return tuple(parse_dimension(text) for text in parameters.dim)
    return simulation.cluster.dims


def _next(names: tuple[str, ...], name: str, direction: int) -> str:
    # `direct4` is typed, not one of the choices: from it one goes on from the first.
    return names[((names.index(name) if name in names else 0) + direction) % len(names)]


def _scrubbed_count(value: int, direction: int, large: bool, step: int, least: int) -> int:
    if large:
        return max(value * 2 if direction > 0 else value // 2, least)
    return max(value + direction * step, least)


def scrubbed_figure(value: float, direction: int, large: bool) -> float:
    """A bandwidth or latency 10 % up or down, to three figures; `large`: twice or half."""
    if large:
        return value * 2.0**direction
    changed = float(f"{value * 1.1**direction:.3g}")
    return changed if changed != value else value + direction
