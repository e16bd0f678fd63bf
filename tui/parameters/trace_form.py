"""The form of a trace: factors on what was measured, and when each rank ends with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.kernel_names import short_name
from simcore.measured import MeasuredRun
from simcore.measured.vocabulary import COPY
from simcore.names import GPU_NAMES
from simcore.parameter_values.choices import help_of
from simcore.parameters import USE_FIELDS, Flag, RunInput, flag_of
from simcore.program.overrides import MOST_FACTOR
from simcore.records import NamedTuple, asdict
from simcore.replay.parameters import parameters_of, rounded, stage_word
from simcore.replay.what_if import balanced
from simcore.runs.measured import RecordedRun
from simcore.sources.measured import EXPOSED
from simcore.units import format_number
from tui.parameters.fields import (
    FROM_USER,
    FlagField,
    FormField,
    ParameterField,
    Values,
    next_name,
    parse_typed,
    scrubbed_count,
)
from tui.parameters.source import FormSource

_NONE = "-"
_LABELS = {
    "model": "model", "gpu": "GPU", "global_batch": "global batch", "microbatch_size": "micro-batch size",
    "seq": "sequence",
}  # fmt: skip


class TraceContext(NamedTuple):
    """What the fields of a trace need: the parameters, and the run as it was measured."""

    setup: RunInput
    results: RecordedRun


@dataclass(frozen=True, slots=True)
class FactorField(FormField):
    """A factor: that of a flag of its own (key ""), or of a key in a list."""

    flag: Flag
    key: str = ""

    def _factor(self, context: TraceContext) -> float:
        value = getattr(context.setup.parameters, self.flag.field)
        return float(value) if not self.key else _factors(value).get(self.key, 1.0)

    def _with(self, context: TraceContext, factor: float) -> Values:
        field = self.flag.field
        if not self.key:
            return {field: factor}
        # A factor of 1 is removed: the run then equals the one that never had it.
        factors = {**_factors(getattr(context.setup.parameters, field)), self.key: factor}
        factors_typed = (
            f"{key}={repr(factor).removesuffix('.0')}" for key, factor in factors.items() if factor != 1.0
        )
        return {field: tuple(factors_typed)}

    def words(self, text: str) -> str:
        return f"{self.label} x{text}"

    def text(self, context: TraceContext) -> str:  # type: ignore[override]
        return format_number(rounded(self._factor(context)))

    def scrubbed(  # type: ignore[override]
        self, context: TraceContext, direction: int, large: bool
    ) -> Values:
        """Returns the factor a tenth up or down of what was measured; `large`: doubled or halved."""
        value = self._factor(context)
        changed = value * 2.0**direction if large else value + direction * 0.1
        return self._with(context, min(max(rounded(changed), self._least), MOST_FACTOR))

    @property
    def _least(self) -> float:
        """The least factor of scrubbing: that of a slow rank must be above 0."""
        return 0.1 if self.flag.field == "slow_rank" else 0.0

    def parse_text(self, context: TraceContext, text: str) -> Values:  # type: ignore[override]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        above = self.flag.field == "slow_rank"
        if not 0 <= value <= MOST_FACTOR or (above and value == 0):
            found_text = printable(text, 40) or "nothing"
            expected = "a factor above 0 and up to 1e6" if above else "a factor from 0 to 1e6"
            raise UsageError(f"{self.option}: found {found_text}, expected {expected}")
        return self._with(context, value)

    def reset(self, context: TraceContext, opened: TraceContext) -> Values:  # type: ignore[override]
        return self._with(context, self._factor(opened))

    def origin(self, context: TraceContext) -> str:  # type: ignore[override]
        return "as measured" if self._factor(context) == 1.0 else FROM_USER

    def differs(self, context: TraceContext, other: TraceContext) -> bool:  # type: ignore[override]
        return self._factor(context) != self._factor(other)

    def copy_value(self, source: TraceContext, target: TraceContext) -> Values:  # type: ignore[override]
        return self._with(target, self._factor(source))


@dataclass(frozen=True, slots=True)
class ReplayField(FlagField):
    """Whether the trace is replayed where no factor requires it."""

    def implied(self, context: Any) -> str:
        parameters = context.setup.parameters
        return "by factors" if not parameters.replay and parameters.explicit_names - {*USE_FIELDS} else ""

    def displayed_value(self, context: TraceContext) -> str:  # type: ignore[override]
        return "implied" if self.implied(context) else self.text(context)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class UseField(ParameterField):
    """What the step computes, or its GPU: typed as on the command line; `-` takes it back."""

    @property
    def is_choice(self) -> bool:
        return self.flag.kind == "text"

    def text(self, context: TraceContext) -> str:  # type: ignore[override]
        value = getattr(context.setup.parameters, self.flag.field)
        return _NONE if value is None else str(value)

    def scrubbed(self, context: TraceContext, direction: int, large: bool) -> Values:  # type: ignore[override]
        value = getattr(context.setup.parameters, self.flag.field)
        if self.flag.field == "gpu":
            names = (_NONE, *GPU_NAMES)
            name = next_name(names, value if value in names else _NONE, direction)
            return {"gpu": None if name == _NONE else name}
        if self.flag.kind == "count" and value is not None:
            return {self.flag.field: scrubbed_count(value, direction, large, 1, 1)}
        raise UsageError(f"{self.option}: type a value with Enter")

    def parse_text(self, context: TraceContext, text: str) -> Values:  # type: ignore[override]
        if text.strip() in ("", _NONE):
            return {self.flag.field: None}
        return {self.flag.field: parse_typed(self.flag, text.strip(), ())}

    def origin(self, context: TraceContext) -> str:  # type: ignore[override]
        return FROM_USER if getattr(context.setup.parameters, self.flag.field) is not None else "not given"


@lru_cache(maxsize=64)
def _factors(scales: tuple[str, ...]) -> dict[str, float]:
    """Returns the factor of each key, of `KEY=X`; the last one counts. A form calls this for each of its
    lines.
    """
    factors = {}
    for word in scales:
        key, _, factor = word.rpartition("=")
        # `--slow-rank 07=2` is of rank 7.
        factors[str(int(key)) if key.isascii() and key.isdecimal() else key] = float(factor)
    return factors


class TraceForm(FormSource):
    """The scales of a replay: of everything, of each operation, group kind, stage and rank."""

    def __init__(self) -> None:
        # The contexts of the last runs: the form needs them several times a drawing.
        self._cached_contexts: list[tuple[RecordedRun, TraceContext]] = []
        self._fields: tuple[MeasuredRun | None, list[FormField]] = (None, [])

    def make_context(self, run: RecordedRun) -> TraceContext:
        """Returns the context of a finished run."""
        context = next(
            (cached_context for cached_run, cached_context in self._cached_contexts if cached_run is run),
            None,
        )
        if context is None:
            context = TraceContext(run.setup, run.as_read)
            self._cached_contexts = [(run, context), *self._cached_contexts[:3]]
        return context

    def make_draft_context(self, setup: RunInput, context: TraceContext) -> TraceContext:
        """Returns the context of a draft."""
        return context._replace(setup=setup)

    def fields(self, context: TraceContext) -> list[FormField]:
        """Returns the fields of the trace, whatever its parameters; none of an order without times."""
        if self._fields[0] is not context.results.measured:
            self._fields = (context.results.measured, _fields_of(context.results))
        return self._fields[1]

    def balance_stages(self, run: RecordedRun, draft: RunInput) -> Values:
        """Returns the draft's parameters with the factors that make stages compute equally long. Raises
        `UsageError`.
        """
        balanced_run = parameters_of(balanced(run.with_parameters(draft.parameters)))
        return {name: value for name, value in asdict(balanced_run).items() if name not in USE_FIELDS}


def _fields_of(results: RecordedRun) -> list[FormField]:
    """Returns its parts, then its operations, group kinds, stages and ranks."""
    if not results.timed:
        return []
    run = results.measured
    replay = flag_of("replay")
    form_fields: list[FormField] = [
        _part_field("compute_scale", "compute", "forward, backward and optimizer times X"),
        _part_field("comm_scale", "communication", "all communication times X"),
        _part_field("gap_scale", "host gaps", "idle time between two operations times X; 0 removes it"),
        _part_field("host_scale", "host operations", "what neither computes nor communicates, times X"),
        ReplayField("all of it", "replay", "", f"{replay.option}  {replay.help}", replay.option, replay),
    ]
    form_fields += [
        _entry_field("one operation", name, "layer_scale", name, "this operation times X")
        for name in run.op_names
    ]
    form_fields += [
        _entry_field(
            "communication by group",
            kind,
            "kind_scale",
            kind,
            "copies of memory times X" if kind == COPY else "communication in them times X",
        )
        for kind in EXPOSED
        if any(account.ns(f"exposed {kind}") for account in results.accounts)
    ]
    stages = list(dict.fromkeys(stage_word(rank.stage) for rank in run.ranks))
    if len(stages) > 1:
        form_fields += [
            _entry_field("one stage", f"stage {stage}", "stage_scale", stage, "compute of its ranks times X")
            for stage in stages
        ]
    form_fields += [
        _entry_field("one rank", f"rank {rank.rank}", "slow_rank", str(rank.rank), "its compute times X")
        for rank in run.ranks
    ]
    return form_fields + [
        _entry_field(
            "host gaps of one rank", f"rank {rank.rank} host gaps", "slow_host", str(rank.rank),
            "its host gaps, and its idle time before its first operation, times X",
        )
        for rank in run.ranks
    ] + [
        UseField("MFU", label, flag.unit, f"{flag.option}  {help_of(flag)}", flag.option, flag)
        for label, flag in ((_LABELS[field], flag_of(field)) for field in USE_FIELDS)
    ]  # fmt: skip


def _part_field(field: str, label: str, help: str) -> FormField:
    flag = flag_of(field)
    return FactorField("all of it", label, "x", f"{flag.option}  {help}", flag.option, flag)


def _entry_field(group: str, label: str, field: str, key: str, help: str) -> FormField:
    flag = flag_of(field)
    help_text = f"{flag.option} {printable(key, 60)}=X  {help}"
    return FactorField(group, short_name(label, 40), "x", help_text, flag.option, flag, key)
