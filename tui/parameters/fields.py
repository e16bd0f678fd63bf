"""The fields of the form: what each shows, and how scrubbing or typing changes the parameters.

A field is over one flag, over a dimension of the cluster, or over flags that may be repeated: typed as one
list, each item checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simcore.cached_methods import cached_on
from simcore.cluster import (
    ALGORITHM_NAMES,
    DEFAULT_PRESET,
    PRESETS,
    ClusterChoice,
    ClusterParameters,
    Dimension,
    check_algorithm,
    choose_cluster,
    name_groups,
    parameter_values,
    parse_dimension,
)
from simcore.compat.simai_network import simai_bandwidths
from simcore.diagnostics import InputError, UsageError
from simcore.names import WORKLOAD_DIALECTS
from simcore.networks import NETWORKS, check_network, unused_fields
from simcore.parameter_values.choices import choices
from simcore.parameter_values.values import InvalidValue, check_item, form_of, text_value
from simcore.parameters import (
    DEFAULT_NETWORK,
    FLAGS,
    FLOW_FIELDS,
    Flag,
    applies_to,
    flag_of,
    least_count,
    parse_value,
)
from simcore.records import replace
from simcore.units import format_number, short_number
from tui.parameters.form_context import (
    FormContext,
    HasSetup,
    Origin,
    default_value,
    is_one_loop,
    make_draft_context,
    model_defaults,
    origin_of,
)

# New values by field of the parameters.
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FormField:
    """A parameter in the form. Its methods take a context: parameters with the run or draft that
    they are of.
    """

    group: str
    label: str
    """Its name in the form."""
    unit: str
    """The unit of its value."""
    help: str
    """One line on what it means."""
    option: str
    """Its flag."""

    def words(self, text: str) -> str:
        """Returns the parameter with a value, in a few words."""
        return " ".join(f"{self.label} {text} {self.unit}".split())

    @property
    def form(self) -> str:
        """How the value of a list is written, for a field that can only be typed; empty for the others."""
        return ""

    @property
    def is_choice(self) -> bool:
        """Whether its value is one of several words, and no number."""
        return False

    def displayed_value(self, context: FormContext) -> str:
        """Returns the value as the form has it, where that is shorter than what is typed."""
        return self.text(context)

    def is_named_by(self, refusal: str) -> bool:
        """Returns whether a refusal begins with the flag of the field."""
        return refusal.startswith((f"{self.option} ", f"{self.option}:"))

    def text(self, context: FormContext) -> str:
        """Returns the text of the value now. Never raises."""
        raise NotImplementedError

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        """Returns the parameters that change with the value one step (or a factor of 2, `large`) up
        or down.
        """
        raise NotImplementedError

    def parse_text(self, context: FormContext, text: str) -> Values:
        """Returns the parameters that change with the typed value. Raises `UsageError`."""
        raise NotImplementedError

    def reset(self, context: FormContext, opened: FormContext) -> Values:
        """Returns the parameters that change with the value as it was when the file was opened."""
        raise NotImplementedError

    def origin(self, context: FormContext) -> str:
        """Returns where the value comes from, in one to three words."""
        raise NotImplementedError

    def implied(self, context: FormContext) -> str:
        """Returns what other parameters do instead of this one, shown as the origin of its value; "" for
        nothing.
        """
        return ""

    def differs(self, context: FormContext, other: FormContext) -> bool:
        """Returns whether the two runs were given different values."""
        raise NotImplementedError

    def copy_value(self, source: FormContext, target: FormContext) -> Values:
        """Returns the parameters of the target that change with the source's value. Raises `UsageError`."""
        raise NotImplementedError


# The origin of a value that the command line or a file of parameters states.
FROM_USER = "given"


def cluster_origin(context: HasSetup) -> str:
    """Returns where the values of the cluster come from."""
    parameters = context.setup.parameters
    if parameters.cluster is None:
        return "default" if parameters.system is None else "the files"
    return "preset" if parameters.cluster in PRESETS else "the file"


# The attribute of `Settings` by field, of which each field but the dimensions is.
_SETTINGS = {
    "splits": "splits", "active_chunks": "active_chunks", "endpoint_delay": "endpoint_delay_ns",
    "local_mem_bw": "local_mem_bandwidth", "collective_optimization": "optimization",
}  # fmt: skip


def _setting_origin(context: FormContext, field: str) -> str:
    """Returns where a value of the cluster comes from: a preset or a file states only some of them."""
    choice = cached_on(context.setup, "cluster choice", lambda: _find_choice(context))
    if choice is None:
        return "default"
    parameters, attribute = context.setup.parameters, _SETTINGS[field]
    if getattr(choice.settings, attribute) is not None:
        return cluster_origin(context) if parameters.system is None else "the files"
    of_preset = choice.preset is not None and getattr(choice.preset(1), attribute) is not None
    return "preset" if of_preset and parameters.cluster is not None else "default"


def _find_choice(context: FormContext) -> ClusterChoice | None:
    """Returns what the parameters state of the cluster; None where that cannot be read."""
    try:
        return choose_cluster(context.setup.parameters.part(ClusterParameters))
    except (UsageError, InputError):
        return None


def _own_dimensions(context: FormContext) -> tuple[Dimension, ...]:
    """Returns the dimensions that the cluster would have if none were given."""
    if not context.setup.parameters.dim:
        return context.cluster.dims

    def find() -> tuple[Dimension, ...]:
        return make_draft_context(context.setup.with_changes(dim=()), context).cluster.dims

    return cached_on(context.setup, "own dimensions", find)


def _has_own_shapes(context: FormContext) -> bool:
    """Returns whether kinds, sizes and number of the dimensions are those that the cluster has anyway."""
    try:
        return _shapes(_own_dimensions(context)) == dimension_shapes(context)
    except UsageError:
        return False


def next_name(names: tuple[str, ...], name: str, direction: int) -> str:
    """Returns the name before or after `name`, wrapping around."""
    # A typed name such as `direct4` is not one of the choices: it counts as the first.
    return names[((names.index(name) if name in names else 0) + direction) % len(names)]


def scrubbed_count(value: int, direction: int, large: bool, step: int, least: int) -> int:
    """Returns a count `step` up or down, or doubled or halved, and at least `least`."""
    if large:
        return max(value * 2 if direction > 0 else value // 2, least)
    return max(value + direction * step, least)


def scrubbed_figure(value: float, direction: int, large: bool) -> float:
    """Returns a bandwidth or latency 10 % up or down, to three figures; `large`: doubled or halved."""
    if large:
        return value * 2.0**direction
    changed = float(f"{value * 1.1**direction:.3g}")
    return changed if changed != value else value + direction


_DEGREES = ("world", "tp", "ep", "pp", "cp")
# Parameters of flows whose default is that of their model.
_OF_FLOW_MODEL = ("send_latency", "ecmp")
# Parameters whose values follow from the type of the GPU or NIC unless they are given.
_OF_TYPE = ("nvlink", "nic")
_ORIGINS: dict[Origin, str] = {"stated": "in the file", "counted": "counted", "assumed": "assumed"}


@dataclass(frozen=True, slots=True)
class ParameterField(FormField):
    """A field over the parameter of one flag."""

    flag: Flag

    def differs(self, context: FormContext, other: FormContext) -> bool:
        values = (getattr(one.setup.parameters, self.flag.field) for one in (context, other))
        return len({*values}) > 1

    def copy_value(self, source: FormContext, target: FormContext) -> Values:
        return self.reset(target, source)

    def reset(self, context: FormContext, opened: FormContext) -> Values:
        return {self.flag.field: getattr(opened.setup.parameters, self.flag.field)}


@dataclass(frozen=True, slots=True)
class FlagField(ParameterField):
    """A field over one flag of a workload's command line."""

    @property
    def is_choice(self) -> bool:
        return self.flag.kind in ("switch", "word", "text")

    def _value(self, context: FormContext) -> Any:
        value = getattr(context.setup.parameters, self.flag.field)
        if value is not None:
            return value
        of_model = model_defaults(context)
        if self.flag.field in of_model:
            return of_model[self.flag.field]
        if self.flag.field in _DEGREES:
            return getattr(context.layout, self.flag.field)
        if self.flag.field == "dialect":
            return context.workload.as_written.dialect
        if self.flag.kind == "text":
            return "none"
        if self.flag.field in _OF_FLOW_MODEL:
            # Imported here: most runs send no flows.
            from simcore.flows.traffic import rules_of

            return getattr(rules_of(context.cluster.packets, context.setup.network), self.flag.field)
        if self.flag.field in _OF_TYPE:
            return simai_bandwidths(context.setup.network)[self.flag.field]
        if self.flag.field in FLOW_FIELDS:
            # Imported here: other networks have no flows.
            from simcore.flows.traffic import rules_of

            rules = rules_of(None, context.setup.network)
            return getattr(rules, self.flag.field)
        values = parameter_values(context.cluster)
        return (
            values[self.flag.field] if self.flag.field in values else default_value(self.flag.field, context)
        )

    def text(self, context: FormContext) -> str:
        try:
            value = self._value(context)
        except (UsageError, InputError):
            # What the default is computed from is not valid, as a schedule file that is not there.
            return "default"
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, tuple):
            return " ".join(value) or "none"
        return format_number(value) if isinstance(value, int | float) else str(value)

    def displayed_value(self, context: FormContext) -> str:
        value = getattr(context.setup.parameters, self.flag.field)
        return short_number(value) if isinstance(value, float) else self.text(context)

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        flag = self.flag
        value = self._value(context)
        if flag.kind == "switch":
            return {flag.field: not value}
        if flag.kind == "word":
            return {flag.field: next_name(_of_workloads(flag), value, direction)}
        if value is None or isinstance(value, str | tuple):
            raise UsageError(f"{flag.option}: found {value}, expected a number to change; Enter types one")
        if flag.field in _DEGREES:
            return self._checked(max(value * 2 if direction > 0 else value // 2, 1))
        if flag.kind == "count":
            step = 10 if flag.field == "endpoint_delay" else 1
            changed = scrubbed_count(value, direction, large, step, least_count(flag))
            return self._checked(changed)
        if flag.kind == "scale":
            changed_scale = value * 2.0**direction if large else value + direction * 0.1
            return self._checked(max(round(changed_scale, 4), 0.0))
        return self._checked(scrubbed_figure(value, direction, large))

    def origin(self, context: FormContext) -> str:
        field = self.flag.field
        value = getattr(context.setup.parameters, field)
        if value is not None:
            return "default" if value == self.flag.default else FROM_USER
        if context.workload.maker is not None and (self.flag.in_file or "workload" not in self.flag.of):
            return "assumed"
        if self.flag.in_file:
            workload = context.workload.as_written
            in_blocks = not is_one_loop(context)
            return _ORIGINS[origin_of(workload, field, self._value(context), in_blocks)]
        return _setting_origin(context, field) if field in _SETTINGS else "default"

    def _checked(self, value: int | float) -> Values:
        """Returns a value that the command line takes too. Raises `UsageError`."""
        return {self.flag.field: parse_value(self.flag, repr(value))}

    def parse_text(self, context: FormContext, text: str) -> Values:
        value = parse_typed(self.flag, text, _of_workloads(self.flag))
        return {self.flag.field: value}


def parse_typed(flag: Flag, text: str, allowed: tuple[str, ...]) -> Any:
    """Returns what is typed as a value of `flag`. allowed: the choices, for a word. Raises `UsageError`."""
    try:
        return text_value(flag, text, allowed)
    except InvalidValue as unfit:
        reason = f" {unfit.message}" if unfit.message else f": {unfit.expected} is expected"
        raise UsageError(f"{flag.option}{reason}") from None


@dataclass(frozen=True, slots=True)
class TextField(FlagField):
    """A preset or a file; the presets are the choices. Changes of single dimensions are reset with it."""

    def origin(self, context: FormContext) -> str:
        parameters = context.setup.parameters
        stated_cluster = parameters.cluster or parameters.system
        is_assumed = not stated_cluster and context.workload.maker is None and _has_own_shapes(context)
        if self.flag.field == "cluster" and is_assumed:
            # `none` would contradict the note that names the default preset.
            return f"{DEFAULT_PRESET} assumed"
        return FlagField.origin(self, context)

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        if self.flag.field != "cluster":
            raise UsageError(f"{self.flag.option}: type the name of a file")
        name = next_name(tuple(PRESETS), context.setup.parameters.cluster or DEFAULT_PRESET, direction)
        return {"cluster": name, "dim": ()}

    def parse_text(self, context: FormContext, text: str) -> Values:
        name = None if text in ("", "none") else text
        changed = {self.flag.field: name}
        return changed | {"dim": ()} if self.flag.field == "cluster" and name else changed

    def reset(self, context: FormContext, opened: FormContext) -> Values:
        changed = {self.flag.field: getattr(opened.setup.parameters, self.flag.field)}
        return changed | {"dim": opened.setup.parameters.dim} if self.flag.field == "cluster" else changed


@dataclass(frozen=True, slots=True)
class NetworkField(FlagField):
    """The network model; one that needs a file is typed: `busbw:FILE`."""

    def _value(self, context: FormContext) -> str:
        return context.setup.network_name

    def origin(self, context: FormContext) -> str:
        is_chosen = context.setup.network_name != DEFAULT_NETWORK
        if context.setup.parameters.network is None and is_chosen:
            return "the topology"
        return FlagField.origin(self, context)

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        names = tuple(name for name, model in NETWORKS.items() if model.argument is None)
        return self._network_of(context, next_name(names, context.setup.network_name, direction))

    def parse_text(self, context: FormContext, text: str) -> Values:
        check_network(text)
        return self._network_of(context, text)

    def _network_of(self, context: FormContext, name: str) -> Values:
        """Returns the network of a name: none where the cluster chooses that one by itself."""
        default_name = context.setup.with_changes(network=None).network_name
        return {self.flag.field: None if name == default_name else name}


def _of_workloads(flag: Flag) -> tuple[str, ...]:
    """Returns the words of a parameter that a workload can have: one dialect is only for execution traces."""
    return WORKLOAD_DIALECTS if flag.field == "dialect" else choices(flag.field)


@dataclass(frozen=True, slots=True)
class DimensionField(FormField):
    """Bandwidth or latency of one dimension of the cluster."""

    index: int
    attribute: str
    """The attribute of `Dimension`."""

    def words(self, text: str) -> str:
        name = "at" if self.attribute == "bandwidth" else "latency"
        figure = text if text == "none" else short_number(float(text))
        return f"dim {self.index} {name} {figure} {self.unit}"

    def text(self, context: FormContext) -> str:
        try:
            dims = find_dimensions(context)
        except UsageError:
            return "none"
        # Clusters differ in their number of dimensions, and the context may be that of another run.
        return format_number(getattr(dims[self.index], self.attribute)) if self.index < len(dims) else "none"

    def displayed_value(self, context: FormContext) -> str:
        text = self.text(context)
        return text if text == "none" else short_number(float(text))

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        value = getattr(self._dims(context)[self.index], self.attribute)
        return self._with(context, scrubbed_figure(value, direction, large))

    def parse_text(self, context: FormContext, text: str) -> Values:
        dims = [dimension.flag() for dimension in self._dims(context)]
        parts = dims[self.index].split(":")
        parts[2 if self.attribute == "bandwidth" else 3] = text
        dims[self.index] = parse_dimension(":".join(parts)).flag()
        return {"dim": tuple(dims)}

    def reset(self, context: FormContext, opened: FormContext) -> Values:
        value = getattr(self._dims(opened)[self.index], self.attribute)
        changed = self._with(context, value)
        own_flags = tuple(dimension.flag() for dimension in _own_dimensions(context))
        if not opened.setup.parameters.dim and changed["dim"] == own_flags:
            # As if none had been given: then a preset grows with the world again.
            return {"dim": ()}
        return changed

    def origin(self, context: FormContext) -> str:
        # One figure is given by a list of all: those that the cluster has anyway are the cluster's.
        is_own = _has_own_shapes(context) and self.index < len(_own_dimensions(context))
        own = getattr(_own_dimensions(context)[self.index], self.attribute) if is_own else None
        is_own = is_own and getattr(find_dimensions(context)[self.index], self.attribute) == own
        return cluster_origin(context) if is_own else FROM_USER

    def differs(self, context: FormContext, other: FormContext) -> bool:
        # If kinds, sizes or the number of dimensions differ, the change belongs to the field of all
        # dimensions.
        has_other_dims = context.setup.parameters.dim != other.setup.parameters.dim
        has_same_shapes = has_other_dims and dimension_shapes(context) == dimension_shapes(other)
        return has_same_shapes and self.text(context) != self.text(other)

    def copy_value(self, source: FormContext, target: FormContext) -> Values:
        text = self.text(source)
        return self.parse_text(target, text)

    def _with(self, context: FormContext, value: float) -> Values:
        dims = list(self._dims(context))
        changed = replace(dims[self.index], **{self.attribute: value})
        dims[self.index] = parse_dimension(changed.flag())
        return {"dim": tuple(dimension.flag() for dimension in dims)}

    def _dims(self, context: FormContext) -> tuple[Dimension, ...]:
        """Returns all dimensions, this one among them. Raises `UsageError`."""
        dims = find_dimensions(context)
        if self.index >= len(dims):
            raise UsageError(f"{self.label}: this cluster has {len(dims)} dimensions")
        return dims


@dataclass(frozen=True, slots=True)
class AlgorithmField(FormField):
    """The collective algorithm of one dimension."""

    index: int

    @property
    def is_choice(self) -> bool:
        return True

    def is_named_by(self, refusal: str) -> bool:
        return refusal.startswith(f"{self.option} {self.index}=")

    def text(self, context: FormContext) -> str:
        name_by_dimension = dict(text.partition("=")[::2] for text in context.setup.parameters.algorithm)
        return name_by_dimension.get(str(self.index), "default")

    def displayed_value(self, context: FormContext) -> str:
        """Returns the algorithm, and those of single collectives: `default, all-reduce ring`."""
        parts = [text.partition("=") for text in context.setup.parameters.algorithm]
        collective_choices = [f"{which.partition(':')[0]} {name}" for which, _, name in parts
               if which.endswith(f":{self.index}")]  # fmt: skip
        return ", ".join([self.text(context), *collective_choices])

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        names = ("default", *ALGORITHM_NAMES)
        return self.parse_text(context, next_name(names, self.text(context), direction))

    def reset(self, context: FormContext, opened: FormContext) -> Values:
        return self.parse_text(context, self.text(opened))

    def origin(self, context: FormContext) -> str:
        return "by kind" if self.displayed_value(context) == "default" else FROM_USER

    def differs(self, context: FormContext, other: FormContext) -> bool:
        return self.displayed_value(context) != self.displayed_value(other)

    def copy_value(self, source: FormContext, target: FormContext) -> Values:
        return self.reset(target, source)

    def parse_text(self, context: FormContext, text: str) -> Values:
        item = f"{self.index}={text}"
        check_algorithm(item, text, also=("default",))
        others = [
            choice
            for choice in context.setup.parameters.algorithm
            if choice.split("=", 1)[0] != str(self.index)
        ]
        own_items = [] if text == "default" else [item]
        return {"algorithm": tuple(sorted([*others, *own_items]))}


def dimension_role(index: int, dims: Sequence[Dimension]) -> str:
    """Returns what a dimension is in a cluster of servers behind switches; empty for other clusters."""
    if len(dims) != 2 or dims[-1].kind == "ring":
        return ""
    return ("inside a server", "between servers")[index]


def dimension_fields(index: int, dims: Sequence[Dimension]) -> list[FormField]:
    """Returns the fields of one dimension of the cluster."""
    name, dimension = f"dim {index}", dims[index]
    where = dimension_role(index, dims)
    shape = f"{dimension.kind} {dimension.size}"
    where_words = f"on {dimension.name(index)}, {where or 'inner first'}, {shape}"
    dim, algorithm = flag_of("dim").option, flag_of("algorithm").option
    bandwidth = f"{dim}  bandwidth {where_words}"
    latency = f"{dim}  latency {where_words}"
    name_of = f"{algorithm}  collective algorithm {where_words}"
    return [
        DimensionField("cluster", f"{name}  bandwidth", "GB/s", bandwidth, dim, index, "bandwidth"),
        DimensionField("cluster", f"{name}  latency", "ns a hop", latency, dim, index, "latency_ns"),
        AlgorithmField("cluster", f"{name}  algorithm", "", name_of, algorithm, index),
    ]


def dimension_shapes(context: FormContext) -> list[tuple[str, int]]:
    """Returns kind and size of each dimension of a run. Raises `UsageError` for an invalid one."""
    return _shapes(find_dimensions(context))


def _shapes(dims: Sequence[Dimension]) -> list[tuple[str, int]]:
    return [(dimension.kind, dimension.size) for dimension in dims]


def find_dimensions(context: FormContext) -> tuple[Dimension, ...]:
    """Returns the dimensions of its network. Raises `UsageError` for an invalid one."""
    if context.setup.parameters.dim:
        return tuple(parse_dimension(text) for text in context.setup.parameters.dim)
    return context.cluster.dims


@dataclass(frozen=True, slots=True)
class ListField(FlagField):
    """A list of items; `none` or an empty text removes all."""

    @property
    def form(self) -> str:
        return form_of(self.flag.field)

    def scrubbed(self, context: FormContext, direction: int, large: bool) -> Values:
        return {}

    def parse_text(self, context: FormContext, text: str) -> Values:
        items: tuple[str, ...] = () if text == "none" else parse_value(self.flag, text)
        world, dimensions = context.setup.parameters.world or context.layout.world, len(context.cluster.dims)
        for item in items:
            check_item(self.flag.field, item, world, dimensions, "workload")
        return {self.flag.field: items}


@dataclass(frozen=True, slots=True)
class DimensionsField(ListField):
    """All dimensions of the cluster, inner first: their kinds, sizes and number, which no other field has.

    Where none are typed they are the cluster's own.
    """

    def words(self, text: str) -> str:
        return f"{self.label} {text}"

    def text(self, context: FormContext) -> str:
        try:
            dims = find_dimensions(context)
        except UsageError:
            return " ".join(context.setup.parameters.dim) or "none"
        return " ".join(dim.flag() for dim in dims) or "none"

    def displayed_value(self, context: FormContext) -> str:
        # Bandwidths and latencies have fields of their own, which are marked when they are changed.
        try:
            dims = find_dimensions(context)
        except UsageError:
            return self.text(context)
        return ", ".join(f"{dim.kind} {dim.size}" for dim in dims) or "none"

    def parse_text(self, context: FormContext, text: str) -> Values:
        items = ListField.parse_text(self, context, text)["dim"]
        return {"dim": tuple(parse_dimension(item).flag() for item in items)}

    def origin(self, context: FormContext) -> str:
        return cluster_origin(context) if _has_own_shapes(context) else FROM_USER

    def differs(self, context: FormContext, other: FormContext) -> bool:
        has_other_dims = context.setup.parameters.dim != other.setup.parameters.dim
        return has_other_dims and self.displayed_value(context) != self.displayed_value(other)


_KINDS: dict[str, type[FlagField]] = {"text": TextField, "words": ListField}
# Fields of files only, or of another form of the same run: a model makes its own rows.
_NOT_OF_MODELS = ("dialect", "passes", "stage_layout", "microbatches", "as_aicb", "aicb_args")
# Names that would fill their column.
_SHORT = {
    "overlap_fwd_bwd": "overlap f+b",
    "overlap_grad_reduce": "overlap reduce",
    "overlap_param_gather": "overlap gather",
}


def fields_for(context: FormContext) -> list[FormField]:
    """Returns the fields of a run or a draft, in the groups of the command line.

    Left out are choices of one, fields that the run's network does not use, and the layers of a file that is
    no op table. Raises `UsageError` for an unknown network.
    """
    form_fields: list[FormField] = []
    network = context.setup.network_name
    check_network(network)
    unused = unused_fields(network)
    # The sizes that a model is made with stand next to its degrees.
    of_model = ("layout", "model") if context.workload.maker is not None else ()
    for flag in sorted(FLAGS, key=lambda flag: flag.group not in of_model):
        if flag.group == "cluster" and not context.has_dimensions:
            continue
        if flag.field in unused:
            continue
        if flag.field == "dim":
            dims = name_groups(context.cluster, context.layout)
            for index in range(len(dims)):
                form_fields += dimension_fields(index, dims)
            form_fields.append(_build_field(DimensionsField, flag, "dimensions"))
        elif not _is_left_out(flag, context):
            # A label has 22 columns.
            label = _SHORT.get(flag.field) or flag.field.replace("_", " ").removeprefix("collective ")
            kind = NetworkField if flag.field == "network" else _KINDS.get(flag.kind, FlagField)
            form_fields.append(_build_field(kind, flag, label))
    return form_fields


def _wants_rescaling(context: FormContext) -> bool:
    """Returns whether rows could be rescaled, and would differ: a degree other than the file's is given."""
    if context.setup.parameters.rescale == "on":
        return True
    header = context.workload.as_written.header
    degree_pairs = (
        (getattr(context.setup.parameters, name), getattr(header, name)) for name in ("tp", "pp", "ep")
    )
    if all(value is None or value == of_file for value, of_file in degree_pairs):
        return False
    from simcore.recovery.rescale import can_rescale

    return can_rescale(context.workload.as_written)


def _build_field(kind: type[FlagField], flag: Flag, label: str) -> FlagField:
    """Returns the field of a flag. The help of a list also has its form, that of the network names all."""
    help_text = f"{form_of(flag.field)}  {flag.help}" if flag.kind == "words" else flag.help
    if kind is NetworkField:
        help_text = "|".join(choices(flag.field))
    return kind(flag.group, label, flag.unit, f"{flag.option}  {help_text}", flag.option, flag)


def _of_training(context: FormContext) -> tuple[str, ...]:
    """Returns the parameters that an inference step has no use for; none of training."""
    parameters = context.setup.parameters
    if parameters.prefill is None and parameters.decode is None:
        return ()
    # Imported here: few runs are of inference.
    from simcore.model.inference import training_fields

    return ("schedule", "seq", *training_fields(parameters.decode is not None))


def _is_left_out(flag: Flag, context: FormContext) -> bool:
    maker = context.workload.maker
    if not applies_to(flag, "workload" if maker is None else "model"):
        return True
    if maker is not None and flag.field in _NOT_OF_MODELS:
        return True
    if maker is not None and flag.field in _of_training(context):
        return True
    if flag.field == "layers":
        return not context.workload.is_table
    if maker is None and flag.field in ("gpu", "memory_limit"):
        # Files that AICB wrote have one: where it was given, it can be changed.
        return context.setup.parameters.gpu is None
    if flag.field == "rescale":
        return maker is not None or not _wants_rescaling(context)
    if flag.field == "without_lines":
        # Shown where it was given, and for a file whose stated count of rows is wrong.
        doubted = any(one.code == "row-count" for one in context.workload.as_written.diagnostics)
        return not doubted and not context.setup.parameters.without_lines
    return flag.field == "algorithm" or (flag.kind == "word" and len(choices(flag.field)) == 1)


__all__ = ["FormField", "dimension_role", "fields_for", "scrubbed_figure"]
