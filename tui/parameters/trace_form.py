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
from simcore.parameters import Flag, Given, flag_of
from simcore.program.overrides import MOST_FACTOR
from simcore.records import NamedTuple, asdict
from simcore.replay.parameters import parameters_of, rounded, stage_word
from simcore.replay.what_if import balanced
from simcore.runs.measured import MeasuredResults
from simcore.sources.measured import EXPOSED
from simcore.units import number
from tui.parameters.fields import GIVEN, FlagField, FormField, Values
from tui.parameters.source import FormSource


class TraceBasis(NamedTuple):
    """What the fields of a trace know: the parameters, and the run as it was measured."""

    setup: Given
    results: MeasuredResults


@dataclass(frozen=True, slots=True)
class FactorField(FormField):
    """A factor: of a flag of its own (key ""), or the one that a list has for a key."""

    flag: Flag
    key: str = ""

    def _factor(self, basis: TraceBasis) -> float:
        value = getattr(basis.setup.parameters, self.flag.field)
        return float(value) if not self.key else _factors(value).get(self.key, 1.0)

    def _with(self, basis: TraceBasis, factor: float) -> Values:
        field = self.flag.field
        if not self.key:
            return {field: factor}
        # A factor of 1 is none: the run is then the one that never had it.
        factors = {**_factors(getattr(basis.setup.parameters, field)), self.key: factor}
        factors_typed = (
            f"{key}={repr(factor).removesuffix('.0')}" for key, factor in factors.items() if factor != 1.0
        )
        return {field: tuple(factors_typed)}

    def words(self, text: str) -> str:
        return f"{self.label} x{text}"

    def text(self, basis: TraceBasis) -> str:  # type: ignore[override]
        return number(rounded(self._factor(basis)))

    def scrubbed(  # type: ignore[override]
        self, basis: TraceBasis, direction: int, large: bool
    ) -> Values:
        """A tenth more or less of what was measured; `large`: twice or half."""
        value = self._factor(basis)
        changed = value * 2.0**direction if large else value + direction * 0.1
        return self._with(basis, min(max(rounded(changed), self._least), MOST_FACTOR))

    @property
    def _least(self) -> float:
        """A slow rank's factor is above 0, by its flag: scrubbing stops before it."""
        return 0.1 if self.flag.field == "slow_rank" else 0.0

    def typed(self, basis: TraceBasis, text: str) -> Values:  # type: ignore[override]
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        above = self.flag.field == "slow_rank"
        if not 0 <= value <= MOST_FACTOR or (above and value == 0):
            found = printable(text, 40) or "nothing"
            expected = "a factor above 0 and up to 1e6" if above else "a factor from 0 to 1e6"
            raise UsageError(f"{self.option}: found {found}, expected {expected}")
        return self._with(basis, value)

    def reset(self, basis: TraceBasis, opened: TraceBasis) -> Values:  # type: ignore[override]
        return self._with(basis, self._factor(opened))

    def origin(self, basis: TraceBasis) -> str:  # type: ignore[override]
        return "as measured" if self._factor(basis) == 1.0 else GIVEN

    def differs(self, trace_basis: TraceBasis, other: TraceBasis) -> bool:  # type: ignore[override]
        return self._factor(trace_basis) != self._factor(other)

    def moved(self, source: TraceBasis, target: TraceBasis) -> Values:  # type: ignore[override]
        return self._with(target, self._factor(source))


@dataclass(frozen=True, slots=True)
class ReplayField(FlagField):
    """Whether the trace is replayed where no factor asks for it."""

    def implied(self, basis: Any) -> str:
        parameters = basis.setup.parameters
        return "" if parameters.replay or not parameters.given else "by factors"

    def shown(self, basis: TraceBasis) -> str:  # type: ignore[override]
        return "implied" if self.implied(basis) else self.text(basis)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def _factors(scales: tuple[str, ...]) -> dict[str, float]:
    """Key -> factor, of `KEY=X`; the last one counts. A form asks each of its lines."""
    factors = {}
    for word in scales:
        key, _, factor = word.rpartition("=")
        # `--slow-rank 07=2` is of rank 7.
        factors[str(int(key)) if key.isascii() and key.isdigit() else key] = float(factor)
    return factors


class TraceForm(FormSource):
    """The scales of a replay: all of it, each operation, group kind, stage and rank."""

    def __init__(self) -> None:
        # Of the runs that were asked for last: the form asks several times a picture.
        self._known: list[tuple[MeasuredResults, TraceBasis]] = []
        self._fields: tuple[MeasuredRun | None, list[FormField]] = (None, [])

    def basis(self, run: MeasuredResults) -> TraceBasis:
        """Of a run that is there."""
        trace_basis = next((basis for known, basis in self._known if known is run), None)
        if trace_basis is None:
            trace_basis = TraceBasis(run.setup, run.as_read)
            self._known = [(run, trace_basis), *self._known[:3]]
        return trace_basis

    def near(self, setup: Given, basis: TraceBasis) -> TraceBasis:
        """Of a draft."""
        return basis._replace(setup=setup)

    def fields(self, basis: TraceBasis) -> list[FormField]:
        """None of an order without times. They are those of the trace, whatever its parameters."""
        if self._fields[0] is not basis.results.measured:
            self._fields = (basis.results.measured, _fields_of(basis.results))
        return self._fields[1]

    def balanced(self, run: MeasuredResults, draft: Given) -> Values:
        """Beside what the draft has, stages that compute equally long. Raises `UsageError`."""
        return asdict(parameters_of(balanced(run.with_parameters(draft.parameters))))


def _fields_of(results: MeasuredResults) -> list[FormField]:
    """Its parts, then its operations, group kinds, stages and ranks."""
    if not results.timed:
        return []
    run = results.measured
    replay = flag_of("replay")
    form_fields: list[FormField] = [
        _part("compute_scale", "compute", "forward, backward and optimizer times X"),
        _part("comm_scale", "communication", "all communication times X"),
        _part("gap_scale", "host gaps", "idle time between two operations times X; 0 removes it"),
        _part("host_scale", "host operations", "what neither computes nor communicates, times X"),
        ReplayField("all of it", "replay", "", f"{replay.option}  {replay.help}", replay.option, replay),
    ]
    form_fields += [
        _entry("one operation", name, "layer_scale", name, "this operation times X") for name in run.op_names
    ]
    form_fields += [
        _entry(
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
            _entry("one stage", f"stage {stage}", "stage_scale", stage, "compute of its ranks times X")
            for stage in stages
        ]
    form_fields += [
        _entry("one rank", f"rank {rank.number}", "slow_rank", str(rank.number), "its compute times X")
        for rank in run.ranks
    ]
    return form_fields + [
        _entry(
            "host gaps of one rank", f"rank {rank.number} host gaps", "slow_host", str(rank.number),
            "its host gaps, and its idle time before its first operation, times X",
        )
        for rank in run.ranks
    ]  # fmt: skip


def _part(field: str, label: str, help: str) -> FormField:
    flag = flag_of(field)
    return FactorField("all of it", label, "x", f"{flag.option}  {help}", flag.option, flag)


def _entry(group: str, label: str, field: str, key: str, help: str) -> FormField:
    flag = flag_of(field)
    help_text = f"{flag.option} {printable(key, 60)}=X  {help}"
    return FactorField(group, short_name(label, 40), "x", help_text, flag.option, flag, key)
