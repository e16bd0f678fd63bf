"""The section on what would help: possible changes, and how much each thing matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.kernel_names import display_name, short_name
from simcore.records import asdict
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    format_list,
    wrap,
)
from simcore.trace.findings import LEAST_SHARE, WhatIf, format_dimension_change
from simcore.units import change_percent, duration

if TYPE_CHECKING:
    from simcore.trace.run import Run

_KNOB_CELLS, _COMMAND_CELLS = 60, 4096
_FLAGS_CELLS = 24


def _ns_unless_unknown(ns: int | None, what_if: WhatIf) -> int | None:
    return None if what_if.unknown else ns


def _fields(run: Run) -> list[Field[WhatIf]]:
    """Returns the columns of what matters, the step with it free and with 10 % less time for it, and all
    keys.
    """
    base = run.figures.what_if_base_ns

    def step(ns: int | None, what_if: WhatIf) -> str:
        return "unknown" if what_if.unknown else "" if ns is None else duration(ns)

    def change(ns: int | None, what_if: WhatIf) -> str:
        return "" if what_if.unknown or ns is None else change_percent(base, ns)

    fields: list[Field[WhatIf]] = [
        Field(key="list"),
        Field(
            "what", lambda what_if: printable(_format_knob(what_if, run), _KNOB_CELLS),
            "knob", lambda what_if: what_if.flags or what_if.name, left=True,
        ),
        Field(key="words", value=lambda knob: knob.name if _has_words(knob) else None, optional=True),
        Field(
            "step if free", lambda what_if: step(what_if.free_ns, what_if),
            "free_ns", lambda what_if: _ns_unless_unknown(what_if.free_ns, what_if),
        ),
        Field("change", lambda what_if: change(what_if.free_ns, what_if)),
        Field(
            "10 % less time", lambda what_if: step(what_if.better10_ns, what_if),
            "better10_ns", lambda what_if: _ns_unless_unknown(what_if.better10_ns, what_if),
        ),
        Field("change", lambda what_if: change(what_if.better10_ns, what_if)),
        Field(
            "10 % more time", lambda knob: "" if knob.worse10_ns is None else step(knob.worse10_ns, knob),
            "worse10_ns", lambda what_if: _ns_unless_unknown(what_if.worse10_ns, what_if), optional=True,
        ),
        Field(
            "", lambda what_if: "slower: anomaly" if what_if.anomaly else "",
            "anomaly", lambda what_if: what_if.anomaly or None, left=True, optional=True,
        ),
        Field(key="moves_work", value=lambda what_if: bool(what_if.moves) or None, optional=True),
        Field(key="unknown", value=lambda what_if: what_if.unknown or None, optional=True),
        Field(key="fixes", value=lambda what_if: what_if.fixes or None, optional=True),
        Field(key="microbatches", optional=True),
        Field(key="alike_ns", value=lambda what_if: what_if.same_work_ns, optional=True),
        Field(key="memory_bytes", optional=True),
    ]  # fmt: skip
    some_worse = any(what_if.worse10_ns is not None for what_if in run.what_if())
    return [field for field in fields if some_worse or field.key != "worse10_ns"]


def _changes(run: Run, changes: Sequence[WhatIf]) -> list[Field[WhatIf]]:
    """Returns the columns of changes: the step with each, and the gain in per cent.

    With more micro-batches the gain is that of each micro-batch.
    """
    base = run.figures.what_if_base_ns

    def change(what_if: WhatIf) -> str:
        if what_if.fixes:
            return ""
        return change_percent(base, what_if.gain_ns)

    fields: list[Field[WhatIf]] = [
        # Not shortened: it is there to be copied.
        Field("change", lambda what_if: printable(what_if.knob, _COMMAND_CELLS), left=True),
        Field("step", lambda what_if: duration(what_if.better10_ns)),
        Field("change", change),
        Field("of", _share_base_text, left=True),
        Field("GB, about", lambda what_if: _gb(what_if.memory_bytes)),
        Field("flags", _short_flags, left=True),
    ]
    # A column is left out where no row needs it.
    is_of_others = any(what_if.same_work_ns is not None or what_if.fixes for what_if in changes)
    needed = {
        "of": is_of_others, "flags": any(map(_short_flags, changes)),
        "GB, about": any(what_if.memory_bytes is not None for what_if in changes),
    }  # fmt: skip
    return [field for field in fields if needed.get(field.heading, True)]


def _share_base_text(what_if: WhatIf) -> str:
    """Returns what the share of a change is of."""
    if what_if.fixes:
        return "not the same work"
    return "the step" if what_if.same_work_ns is None else "the same work"


def _gb(size: int | None) -> str:
    return "" if size is None else f"{size / 1e9:.1f}"


def _memory_now(run: Run, changes: Sequence[WhatIf]) -> str:
    """Returns `, a rank of the fullest stage needs about 60.5 GB`, where the memory with changes is known."""
    if all(what_if.memory_bytes is None for what_if in changes):
        return ""
    # Imported here: the memory of traces is not known.
    from simcore.analysis.file_memory import peak_bytes

    return f"; a rank of the fullest stage needs about {_gb(peak_bytes(run.model))} GB"


def _short_flags(what_if: WhatIf) -> str:
    """Returns the flags of a change that has another name, where they are short; --json has all."""
    return (
        "" if what_if.name.startswith(what_if.flags) or len(what_if.flags) > _FLAGS_CELLS else what_if.flags
    )


def _has_words(what_if: WhatIf) -> bool:
    """Returns whether a change has a name other than its flags."""
    return bool(what_if.flags) and what_if.name != what_if.flags


def _format_knob(what_if: WhatIf, run: Run) -> str:
    """Returns the name of a change; for a bandwidth or latency with its value and what it would be."""
    dimension = format_dimension_change(what_if.name, run.network.dims)
    return display_name(what_if.knob) if dimension is None else " ".join(dimension)


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the changes that gain, then a line for each thing that changes the step visibly, the others by
    name.

    The largest gain comes first.
    """
    if not options.what_if:
        return []
    knobs, base = run.what_if(), run.figures.what_if_base_ns
    if not base or not knobs:
        return ["What if: nothing takes any time"]
    changes = [knob for knob in knobs if knob.list == "change"]
    things = [knob for knob in knobs if knob.list != "change"]
    displayed_knobs = [
        what_if
        for what_if in things
        if what_if.anomaly or what_if.unknown or _share(what_if, base) >= LEAST_SHARE
    ]
    negligible = [
        dimension[0]
        if (dimension := format_dimension_change(what_if.name, run.network.dims))
        else short_name(what_if.knob, _KNOB_CELLS)
        for what_if in things
        if what_if not in displayed_knobs
    ]
    page: list[str] = []
    if changes:
        memory = _memory_now(run, changes)
        title = f"Changes you can make (step time now {duration(base)}, change: % of it{memory})"
        page += [title, *field_lines(_changes(run, changes), changes), *_meaning_lines(changes)]
    if run.figures.changes_summary:
        page += (
            wrap(run.figures.changes_summary, "  ", "  ")
            if changes
            else wrap(_untaken_text(run.figures.changes_summary), "", "  ")
        )
    if page:
        page.append("")
    page.append(f"What if one thing took less time (step time now {duration(base)}, change: % of it)")
    page += field_lines(_fields(run), displayed_knobs)
    page += _base_lines(run)
    if any(what_if.free_ns is None for what_if in displayed_knobs):
        page.append("  a change that is made or not is taken as it is, in the columns of 10 % less time")
    page += _meaning_lines([what_if for what_if in things if what_if in displayed_knobs])
    if any(knob.anomaly for knob in knobs):
        page.append(
            "  anomaly: what is cheaper lets other traffic meet at the same ports or queues, and the step "
            "takes longer"
        )
    page += [f"  unknown: {why}" for why in dict.fromkeys(knob.unknown for knob in knobs) if why]
    return page + (format_list("below 0.05 %, or nothing:", negligible) if negligible else [])


def _untaken_text(summary: str) -> str:
    """Returns what was tried where nothing gains; a whole sentence on why nothing was stays as it is."""
    return f"No change gains 0.1 % or more: {summary}" if summary[0].isdecimal() else summary


def _meaning_lines(what_ifs: Sequence[WhatIf]) -> list[str]:
    """Returns the meaning of rows whose names do not tell it: each clause once, those of a row together."""
    used_clauses: dict[str, None] = {}
    lines: list[str] = []
    for what_if in what_ifs:
        clauses = [clause for clause in what_if.meaning.split("; ") if clause and clause not in used_clauses]
        used_clauses |= dict.fromkeys(clauses)
        lines += wrap("; ".join(clauses), "  ", "    ") if clauses else []
    return lines


def _share(what_if: WhatIf, base: int) -> float:
    """Returns the share of the step by which a change alters it at most."""
    steps = (what_if.free_ns, what_if.better10_ns, what_if.worse10_ns)
    return max(abs(base - ns) for ns in steps if ns is not None) / base


def _base_lines(run: Run) -> list[str]:
    """Returns lines on the base where it is another kind of step than that at the top of the page."""
    if run.recording is None or run.recording.together:
        return []
    return [
        f"  the ranks did not run together (each from its own start, the longest takes "
        f"{duration(run.step_time_ns)}):",
        "  here they are replayed as if they had, with nothing changed now, so that one kind is compared",
    ]


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `what_if`, the largest gain first, `what_if_base_ns`, and `gradients`, the slopes
    of the step.
    """
    gradients = run.figures.gradients
    return {
        "what_if": field_values(_fields(run), run.what_if()) if options.what_if else None,
        "what_if_base_ns": run.figures.what_if_base_ns if run.timed else None,
        "gradients": None if gradients is None else [asdict(gradient) for gradient in gradients],
    }


SECTION: Section[Run] = Section("what-if", lines, values)
