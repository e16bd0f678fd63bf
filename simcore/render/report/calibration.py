"""A calibration as a page and as JSON: the steps, what was fitted by what, the residual of each
kind of work.
"""

from __future__ import annotations

import textwrap
from typing import Any

from simcore.calibration import BandwidthFit, Calibration, KindFit
from simcore.diagnostics import printable
from simcore.ranks import RankSet
from simcore.render.report.section import WIDTH, Field, field_lines, field_values, keys
from simcore.shell_words import quote_word
from simcore.units import change_percent, column_unit, duration, format_number, plural

_MOST_RANKS = 4
# The most characters of a path in a command line, which is there to be copied.
_MOST_COMMAND = 4096

SCHEMA = "wltui.calibrate/1"
NOTHING_SAVED = "nothing could be fitted, so nothing is saved"


def calibration_text(calibration: Calibration) -> str:
    """Returns the page."""
    names = [
        f"Calibrate  {printable(calibration.before.workload.path)}",
        f"to         {printable(calibration.measured.measured.path)}",
    ]
    fitted = [fitted_title(calibration), *fitted_lines(calibration, WIDTH)]
    kinds = [kinds_title(calibration), *kind_lines(calibration, None)]
    rest = [*rank_lines(calibration, WIDTH), *rest_lines(calibration, WIDTH)]
    parts = [names, step_lines(calibration), fitted, kinds, rest]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Returns all fits and residuals as plain values; times in ns, those of kinds for all ranks.

    Schema `wltui.calibrate/1`: keys are added, never renamed.
    """
    run, compute = calibration.measured.measured, calibration.compute
    return {
        "schema": SCHEMA,
        "workload": calibration.before.workload.path,
        "measured": {
            "file": run.path,
            "step_time_ns": calibration.measured_step_ns,
            "ranks": calibration.ranks,
            "concurrent": run.concurrent,
            "host_ns": calibration.host_ns,
            "gaps_ns": calibration.gaps_ns,
        },
        "before": {"step_time_ns": calibration.before.step_time_ns},
        "after": {
            "step_time_ns": calibration.after.step_time_ns,
            "parameters": calibration.after.parameters.as_dict(),
            "flags": calibration.after.parameters.as_flags(),
        },
        "compute_scale": {
            "before": compute.before,
            "after": compute.after,
            "by": list(compute.by),
            "not_fitted": compute.why or None,
            "factors": compute.factors or None,
        },
        "dimensions": field_values(_BANDWIDTH, calibration.bandwidths),
        "kinds": field_values(_kind_fields(calibration), calibration.kinds),
        "ranks_off": field_values(keys("rank", "measured_rank", "factor", "slow_rank"), calibration.off),
        "slowed_step_time_ns": calibration.slowed_step_ns,
        "notes": list(calibration.notes),
        "diagnostics": field_values(
            keys("severity", "code", "line", "message"),
            (*calibration.after.diagnostics, *run.diagnostics),
        ),
    }


_BANDWIDTH: list[Field[BandwidthFit]] = [
    Field(key="index", value=lambda fit: fit.dimension),
    Field(key="before_gbps", value=lambda fit: fit.before),
    Field(key="after_gbps", value=lambda fit: fit.after),
    Field(key="by", value=lambda fit: list(fit.by)),
    Field(key="together", value=lambda fit: list(fit.together)),
    Field(key="not_fitted", value=lambda fit: fit.why or None),
]


def saved_text(calibration: Calibration, path: str | None) -> str:
    """Returns where the parameters are, or (None) how to save them, and which slow ranks the file has or
    lacks.
    """
    return "".join(f"{line}\n" for line in saved_lines(calibration, path, "--output FILE"))


def saved_lines(calibration: Calibration, path: str | None, save_action: str) -> list[str]:
    """Returns the lines of `saved_text`. save_action: what saves them, a flag or a key."""
    file = "FILE" if path is None else printable(quote_word(path), _MOST_COMMAND)
    if path is None:
        line = f"{save_action} saves these parameters for --params FILE"
    else:
        line = f"Saved in {printable(path)}: --params takes it"
    slow_ranks = calibration.after.parameters.slow_rank
    if slow_ranks:
        line += f", with --slow-rank {', '.join(map(printable, slow_ranks))} as given"
    if calibration.slowed_step_ns is None:
        return [line]
    off_ranks = [fit.rank for fit in calibration.off]
    ranks = f"rank{'s' if len(off_ranks) > 1 else ''} {RankSet.of(off_ranks).text()}"
    steps = (calibration.after.step_time_ns, calibration.slowed_step_ns)
    without, slowed = (
        f"{duration(ns)} ({_format_deviation(ns, calibration.measured_step_ns)})" for ns in steps
    )
    lines = [line, f"Not in it: {ranks} as slow or fast as measured. Without {without}, with them {slowed}:"]
    workload = printable(quote_word(calibration.before.workload.path), _MOST_COMMAND)
    flags = " ".join(f"--slow-rank {slow_rank}" for slow_rank in calibration.slow_ranks)
    # One line of any length: it is there to be copied.
    return [*lines, f"  wltui {workload} --params {file} {flags}"]


def warnings(calibration: Calibration) -> list[str]:
    """Returns what the trace leaves in doubt, each in its line."""
    return [
        diagnostic.text()
        for diagnostic in calibration.measured.measured.diagnostics
        if diagnostic.severity != "note"
    ]


def step_lines(calibration: Calibration) -> list[str]:
    """Returns the measured step, and the simulated one before and after."""
    step = calibration.measured_step_ns

    def format_step(ns: int) -> str:
        off = _format_deviation(ns, step)
        return f"{duration(ns)} ({off})" if off else duration(ns)

    lines = [
        f"Measured step   {duration(step)}",
        f"Simulated step  {format_step(calibration.before.step_time_ns)} as given, "
        f"{format_step(calibration.after.step_time_ns)} as fitted",
    ]
    if calibration.slowed_step_ns is not None:
        lines.append(
            f"                {format_step(calibration.slowed_step_ns)} with the --slow-rank below as well"
        )
    return lines


def fitted_title(calibration: Calibration) -> str:
    """Returns the title of `fitted_lines`."""
    return "Fitted" if calibration.is_fitted else "Nothing could be fitted"


def fitted_lines(calibration: Calibration, width: int) -> list[str]:
    """Returns each parameter before and after, and what decided it, or why it was not fitted."""
    compute = calibration.compute
    if compute.why:
        scale = f"not fitted, {compute.why}"
    else:
        scale = (
            f"{format_number(compute.before)} -> {format_number(compute.after)}, by {_join_names(compute.by)}"
        )
    rows = [("compute scale", scale)]
    if compute.factors:
        # Each kind of a model has a factor of its own: the common scale stays.
        rows = [(kind, f"x {factor:.6g}") for kind, factor in compute.factors.items()]
    rows += [
        (f"dimension {bandwidth.dimension}", _bandwidth(bandwidth)) for bandwidth in calibration.bandwidths
    ]
    column = max(len(name) for name, _ in rows)
    lines = []
    for name, text in rows:
        first = f"  {name:<{column}}  "
        lines += textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first))
    return lines


def _bandwidth(fit: BandwidthFit) -> str:
    if fit.why:
        by = f" ({_join_names(fit.by)})" if fit.by else ""
        return f"{fit.text}: not fitted, {fit.why}{by}"
    text = f"{fit.text} -> {format_number(fit.after)} GB/s, by {_join_names(fit.by)}"
    if fit.together:
        others = [str(other) for other in fit.together if other != fit.dimension]
        text += f"; one factor with {_join_names(others)}, as nothing crosses one of them alone"
    return text


def kinds_title(calibration: Calibration) -> str:
    """Returns the title of `kind_lines`."""
    ranks = calibration.ranks
    who = f"the mean of {plural(ranks, 'rank')}" if ranks > 1 else "of one rank"
    return f"Time of each kind of work, waiting left out, {who}"


def kind_lines(calibration: Calibration, width: int | None) -> list[str]:
    """Returns the residual of each kind, as a table with its heading.

    width: where a line is longer because of its last words, why a kind decided nothing, these go below it;
    None: lines of any length.
    """
    head, *lines = field_lines(_kind_fields(calibration), calibration.kinds)
    if width is not None:
        whys = [kind.why for kind in calibration.kinds]
        lines = [
            part for line, why in zip(lines, whys, strict=True) for part in _break_line(line, why, width)
        ]
    return [head, *lines]


def _kind_fields(calibration: Calibration) -> list[Field[KindFit]]:
    """Returns the columns of a kind of work: its residual on the mean rank and, in JSON, on all of them."""
    ranks = calibration.ranks
    known_ns = [
        ns for kind in calibration.kinds for ns in (kind.measured_ns, kind.before_ns, kind.after_ns) if ns
    ]
    unit_ns, unit = column_unit(max(known_ns, default=0) // ranks)
    return [
        Field(f"kind, {unit}", lambda fit: fit.name, "kind", lambda fit: fit.name, left=True),
        Field("calls", lambda fit: _format_calls(fit, ranks)),
        *keys("measured_calls", "simulated_calls"),
        Field("measured", lambda fit: _format_mean(fit.measured_ns, ranks, unit_ns), "measured_ns"),
        Field("as given", lambda fit: _format_mean(fit.before_ns, ranks, unit_ns), "before_ns"),
        Field("off", lambda fit: _format_deviation(fit.before_ns, fit.measured_ns)),
        Field("as fitted", lambda fit: _format_mean(fit.after_ns, ranks, unit_ns), "after_ns"),
        Field("off", lambda fit: _format_deviation(fit.after_ns, fit.measured_ns)),
        *keys("fitted"),
        Field("", lambda fit: fit.why, "why", lambda fit: fit.why or None, left=True),
    ]


def _break_line(line: str, why: str, width: int) -> list[str]:
    """Returns a line of the table; where it is too long its last words, `why`, go below it."""
    if len(line) <= width or not why:
        return [line]
    below = textwrap.wrap(why, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return [line.removesuffix(why).rstrip(), *below]


def _format_calls(fit: KindFit, ranks: int) -> str:
    """Returns the calls of a rank in the trace and, where they differ, in the simulation; "" for compute."""
    if fit.measured_calls is None and fit.measured_ns is not None:
        return ""
    calls = (fit.measured_calls, fit.simulated_calls)
    there, here = ("-" if count is None else format_number(round(count / ranks, 1)) for count in calls)
    return there if there == here else f"{there} / {here}"


def rank_lines(calibration: Calibration, width: int) -> list[str]:
    """Returns the ranks whose compute is off the fit: they are left out of the parameters."""
    lines = []
    for fit in calibration.off[:_MOST_RANKS]:
        name = f"Rank {fit.measured_rank}"
        if fit.measured_rank != fit.rank:
            name += f", rank {fit.rank} of the simulation,"
        lines.append(
            f"{name} computes {format_number(fit.factor)} times as long as fitted: "
            f"--slow-rank {fit.rank}={format_number(fit.slow_rank)}"
        )
    if len(calibration.off) > _MOST_RANKS:
        lines.append(f"{plural(len(calibration.off) - _MOST_RANKS, 'more rank')} off by more than 10 %")
    return _wrap_lines(lines, width)


def rest_lines(calibration: Calibration, width: int) -> list[str]:
    """Returns what only the trace has, and what a comparison of the steps has to consider."""
    ranks = calibration.ranks
    host = [
        (calibration.host_ns // ranks, "operations of the host"),
        (calibration.gaps_ns // ranks, "host gaps"),
    ]
    parts = [f"{duration(ns)} of {name}" for ns, name in host if ns]
    lines = [f"In the trace alone, the mean of a rank: {' and '.join(parts)}"] if parts else []
    lines += [f"{note[0].upper()}{note[1:]}" for note in calibration.notes]
    return _wrap_lines(lines, width)


def _wrap_lines(lines: list[str], width: int) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, width, subsequent_indent="  ")]


def _format_mean(ns: int | None, ranks: int, unit_ns: int) -> str:
    if ns is None:
        return "-"
    return f"{ns / ranks / unit_ns:.3f}" if unit_ns > 1 else str(round(ns / ranks))


def _format_deviation(ns: int | None, measured_ns: int | None) -> str:
    """Returns how far a simulated time is from a measured one: `+3.1 %`, or `x 12` of it."""
    if ns is None or not measured_ns:
        return ""
    if ns >= 10 * measured_ns:
        return f"x {ns / measured_ns:.0f}"
    return change_percent(measured_ns, ns)


def _join_names(names: list[str] | tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
