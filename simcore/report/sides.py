"""Two runs beside each other: what they are, their steps, how much was matched, and why they differ."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from simcore.report.memory import figure_values
from simcore.report.section import WIDTH, Field, PageAsked, field_values, keys, wrapped
from simcore.run.figures import each_words, is_other_work, microbatch_ns, per_work
from simcore.units import difference, duration

if TYPE_CHECKING:
    from simcore.analysis.compare import AccountPart
    from simcore.analysis.run import Run
    from simcore.analysis.two_runs import Compared

_THEN = "     "


def _of_model(name: str, run: Run) -> Any:
    """A figure of a model; None of any other run."""
    figures = run.model_figures
    return None if figures is None else figure_values(figures)[name]


_PART: list[Field[AccountPart]] = [
    Field(key="account"),
    Field(key="difference_ns", value=lambda account_part: account_part.ns),
]
_FILE: Field[Run] = Field(key="file", value=lambda run: run.path)
# Of runs whose ops were matched their parameters tell them apart, of others what they are.
_MATCHED: list[Field[Run]] = [
    _FILE,
    *keys("step_time_ns"),
    Field(key="microbatch_ns", value=microbatch_ns),
    Field(key="schedule", value=lambda run: run.figures.origin.schedule),
    Field(key="parameters", value=lambda run: run.figures.origin.parameters),
    *(Field(key=name, value=partial(_of_model, name), optional=True) for name in ("throughput", "memory")),
]
_PAIRED: list[Field[Run]] = [
    _FILE,
    Field(key="run", value=lambda run: run.stamp),
    Field(key="kind", value=lambda run: run.origin),
    *keys("step_time_ns"),
    Field(key="microbatch_ns", value=microbatch_ns),
    *keys("together"),
    Field(key="tp", value=lambda run: run.shape.tp),
    Field(key="dp", value=lambda run: run.shape.dp),
    Field(key="pp", value=lambda run: run.shape.pp),
    Field(key="microbatches", value=lambda run: run.shape.microbatches),
    Field(key="diagnostics", value=lambda run: [diagnostic.values() for diagnostic in run.diagnostics]),
]


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """What has to be known before figures are believed, a line a side, B - A, and why."""
    a_ns, b_ns = compared.a.step_time_ns, compared.b.step_time_ns
    text = [compared.title] if compared.title else []
    for line in compared.notices:
        text += wrapped(line, "", _THEN)
    each = [each_words(run) for run in (compared.a, compared.b)]
    width = max(map(len, each)) + 2 if all(each) else 0
    if max(len(side) for side in compared.sides) + width + 15 > WIDTH:
        # What the two are comes first.
        width = 0
    for name, ns, batch, side in zip("AB", (a_ns, b_ns), each, compared.sides, strict=True):
        line = f"{name}  {duration(ns):<11} {batch if width else '':<{width}}{side}"
        text.append(line if len(line) <= WIDTH else line[: WIDTH - 3] + "...")
    by_work = per_work(compared.a, compared.b)
    # More micro-batches in a step are more work, and no loss.
    steps = "B - A  " + (f"{by_work.words}; step " if by_work is not None else "") + difference(a_ns, b_ns)
    steps += ", other work" if is_other_work(compared.a, compared.b) else ""
    if len(steps) + len(compared.paired) + 2 <= WIDTH:
        text.append(f"{steps}; {compared.paired}")
    else:
        text += [f"{steps};", f"       {compared.paired}"]
    text += wrapped(f"Why: {compared.why}.", "", _THEN)
    return text + (wrapped(compared.parts_words, _THEN, _THEN) if compared.parts_words else [])


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`schema`, `a`, `b`, `difference_ns`, `why`, `parts`, and what of the two is not alike."""
    a_ns, b_ns = compared.a.step_time_ns, compared.b.step_time_ns
    side = _PAIRED
    unlike: dict[str, Any] = {
        "unlike": [{"what": name, "a": a, "b": b} for name, a, b in compared.unlike],
        "paired_by": "rank" if compared.by_rank else "stage",
    }
    if compared.matched is not None:
        side = _MATCHED
        changed = {name: {"a": _plain(a), "b": _plain(b)} for name, (a, b) in compared.changed.items()}
        names = ("ops", "a_ops", "b_ops", "ranks")
        unlike = {
            "changed": changed,
            "matched": {name: getattr(compared.matched, name) for name in names},
        }
    return {
        "schema": compared.schema,
        **dict(zip("ab", field_values(side, (compared.a, compared.b)), strict=True)),
        "difference_ns": compared.difference_ns,
        # How much longer B is, in per cent of A; null of nothing.
        "difference_percent": 100 * (b_ns - a_ns) / a_ns if a_ns else None,
        "why": compared.why,
        "parts": field_values(_PART, compared.parts),
        **unlike,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
