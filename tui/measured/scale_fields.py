"""The scales of a replay as fields of a form: what each shows, and what changing it makes of the scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.overrides import MOST_FACTOR
from simcore.records import replace
from simcore.replay import MeasuredResults
from simcore.replay.accounts import EXPOSED
from simcore.replay.scales import Scales, rounded
from tui.frame import cells


@dataclass(frozen=True, slots=True)
class ScaleField:
    """One factor. take: it, out of scales; put: scales with another one."""

    group: str
    label: str
    help: str
    take: Callable[[Scales], float]
    put: Callable[[Scales, float], Scales]

    def scrubbed(self, scales: Scales, direction: int, large: bool) -> Scales:
        """A tenth more or less of what was measured; `large`: twice or half."""
        value = self.take(scales)
        changed = value * 2.0**direction if large else value + direction * 0.1
        return self.put(scales, min(max(rounded(changed), 0.0), MOST_FACTOR))

    def typed(self, scales: Scales, text: str) -> Scales:
        """The scales with the factor that was typed. Raises `UsageError`."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= MOST_FACTOR:
            found = printable(text, 40) or "nothing"
            raise UsageError(f"{self.label}: found {found}, expected a factor from 0 to 1e6")
        return self.put(scales, value)


def fields_of(results: MeasuredResults) -> list[ScaleField]:
    """The fields of a run: its parts, then its operations, group kinds, stages and ranks."""
    run = results.measured
    found = [
        _part("compute", "compute", "forward, backward and optimizer times X (--compute-scale)"),
        _part("communication", "comm", "all communication times X (--comm-scale)"),
        _part("host gaps", "gaps", "the host's time between operations times X; 0 removes the gaps"),
        _part("host operations", "host", "what neither computes nor communicates, times X"),
    ]
    found += [
        _entry("one operation", cells(name, 30), "ops", name, "this operation times X (--layer-scale OP=X)")
        for name in run.op_names
    ]
    accounts = results.as_measured.accounts
    found += [
        _entry("communication by group", kind, "kinds", kind, "communication in these groups times X")
        for kind in EXPOSED
        if any(one.ns(f"exposed {kind}") for one in accounts)
    ]
    stages = list(dict.fromkeys(rank.stage for rank in run.ranks))
    if len(stages) > 1:
        found += [
            _entry("one stage", f"stage {stage}", "stages", stage, "compute of its ranks times X")
            for stage in stages
        ]
    found += [
        _entry(
            "one rank", f"rank {rank.number}", "ranks", rank.number, "its compute times X (--slow-rank R=X)"
        )
        for rank in run.ranks
    ]
    return found


def _part(label: str, attribute: str, help: str) -> ScaleField:
    return ScaleField(
        "all of it", label, help,
        lambda scales: float(getattr(scales, attribute)),
        lambda scales, value: _replaced(scales, attribute, value),
    )  # fmt: skip


def _replaced(scales: Scales, attribute: str, value: Any) -> Scales:
    changed: dict[str, Any] = {attribute: value}
    return replace(scales, **changed)


def _entry(group: str, label: str, attribute: str, key: Any, help: str) -> ScaleField:
    def put(scales: Scales, value: float) -> Scales:
        # A factor of 1 is none: the scales are then those of a run that never had it.
        others = {one: factor for one, factor in getattr(scales, attribute).items() if one != key}
        return _replaced(scales, attribute, others if value == 1.0 else {**others, key: value})

    return ScaleField(group, label, help, lambda scales: float(getattr(scales, attribute).get(key, 1.0)), put)
