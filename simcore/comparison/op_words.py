"""The comparison of two runs op by op, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.comparison.changes import SMALL_PART
from simcore.diagnostics import printable
from simcore.parameters import flag_of
from simcore.units import format_number, group_digits, join_names, plural

if TYPE_CHECKING:
    from simcore.comparison import OpChanges
    from simcore.comparison.op_changes import OpChange

_NAME_CELLS = 28


def side_words(ops: OpChanges, side: int) -> str:
    """Returns what is special about A (0) or B (1): its file where they differ, its changed parameters."""
    results = (ops.a, ops.b)[side]
    parts = [printable(results.path)] if ops.has_other_file else []
    if results.model.rescaled:
        parts.append("--rescale on")
    for field, values in ops.changed_parameters.items():
        value = values[side]
        option = flag_of(field).option
        if isinstance(value, bool):
            parts.append(option if value else f"no {option}")
        elif isinstance(value, (list, tuple)):
            parts += [f"{option} {printable(str(item), 40)}" for item in value] or [f"no {option}"]
        elif value is None:
            parts.append(f"no {option}")
        else:
            text = format_number(value) if isinstance(value, (int, float)) else printable(str(value), 40)
            parts.append(f"{option} {text}")
    no_fold = [of_side.simulation.parameters.no_fold for of_side in (ops.a, ops.b)]
    if no_fold[0] != no_fold[1]:
        parts.append("--no-fold" if no_fold[side] else "equal ranks folded")
    if results.model.model_figures is not None:
        # Imported here: files have no figures of a model.
        from simcore.analysis.model_figures import throughput_facts

        throughput = throughput_facts(results.model.model_figures)
        parts += [throughput[0], throughput[3]]
    return ", ".join(parts) or "the same parameters"


def notices(ops: OpChanges) -> list[str]:
    """Returns sentences on a run that is not the model of its file, and on changes without effect
    on a run.
    """
    lines = []
    for name, results, other in (("A", ops.a, ops.b), ("B", ops.b, ops.a)):
        if results.model.other_model and results.model.other_model != other.model.other_model:
            lines.append(f"{name} is not the model of its file: {results.model.other_model}.")
        if results.model.rescaled and results.model.rescaled != other.model.rescaled:
            lines.append(f"{name}: {results.model.rescaled}.")
    for field in find_ignored(ops):
        side = next(
            name for name, of_side in (("B", ops.b), ("A", ops.a)) if field in of_side.ignored_parameters
        )
        results = ops.b if side == "B" else ops.a
        lines.append(
            f"{results.ignored_parameters[field][0].upper()}{results.ignored_parameters[field][1:]}."
        )
    return lines


def find_ignored(ops: OpChanges) -> list[str]:
    """Returns the changed parameters that the run which has them does not use."""
    ignored = {*ops.a.ignored_parameters, *ops.b.ignored_parameters}
    return [field for field in ops.changed_parameters if field in ignored]


def matched_words(ops: OpChanges) -> str:
    """Returns how many ops of the two were matched, in words."""
    matches = ops.op_matches
    if matches.is_complete:
        return f"all {group_digits(matches.ops)} ops of {group_digits(matches.ranks)} ranks matched"
    return (
        f"{group_digits(matches.ops)} ops of {group_digits(matches.ranks)} ranks matched, "
        f"of {group_digits(matches.a_ops)} in A and {group_digits(matches.b_ops)} in B"
    )


def parts_words(ops: OpChanges) -> str:
    """Returns the parts of B - A in words where `Why` does not name all of them.

    Small parts are only counted.
    """
    parts = ops.parts
    large_parts = [part for part in parts if abs(part.ns) * SMALL_PART >= abs(parts[0].ns)]
    clauses = [account_part.words for account_part in large_parts]
    if all(clause in ops.why_text for clause in clauses):
        return ""
    small_count = len(parts) - len(large_parts)
    clauses += [f"{small_count} below 0.1 % of the largest"] if small_count else []
    return f"B - A along the critical paths: {', '.join(clauses)}."


def op_words(ops: OpChanges, mover: OpChange) -> str:
    """Returns `stage 15, mlp_row wg, micro-batch 0`, with the name of a collective."""
    where = where_words(ops, mover.position, mover.ranks)
    description = [f"{printable(mover.name, _NAME_CELLS)} {mover.phase}" if mover.name else mover.phase]
    description += [] if mover.kind == "compute" else [mover.kind]
    description += [f"micro-batch {mover.microbatch}"] if mover.microbatch >= 0 else []
    return ", ".join(
        [where, " ".join(description[:2]), *description[2:]]
        if mover.kind != "compute"
        else [where, *description]
    )


def splits_words(ops: OpChanges) -> str:
    """Returns a sentence on why collectives that one run sends in more splits take longer there;
    "" for none.
    """
    longer: dict[tuple[str, int], dict[str, None]] = {}
    for mover in ops.op_changes:
        a, b = mover.splits
        if mover.measure == "duration" and a != b and (a < b) == (mover.a_ns < mover.b_ns):
            names = longer.setdefault(("AB"[a < b], max(a, b)), {})
            names[printable(mover.name, _NAME_CELLS)] = None
    if not longer:
        return ""
    # The collectives in as many splits as the one that differs most.
    (side, most_splits), names = next(iter(longer.items()))
    return (
        f"{side} sends {join_names([*names])} in {group_digits(most_splits)} pieces: each piece has a "
        "latency of its own."
    )


def where_words(ops: OpChanges, position: tuple[int, int, int], ranks: int) -> str:
    """Returns `stage 3`, or the lowest rank of a pair of classes that is less than a stage."""
    stage, dp, tp = position
    layout = ops.a.simulation.layout
    if layout.pp > 1 and ranks == layout.tp * layout.dp:
        return f"stage {stage}"
    others_text = f" and {ranks - 1} more" if ranks > 1 else ""
    return f"rank {layout.rank(tp, dp, stage)}{others_text}"


def format_cost_short(ops: OpChanges) -> str:
    """Returns one sentence of `cost_words` for a small screen; "" where memory does not change.

    It is `at most 16 mb in memory, in A 4` or, where the peaks are equal, that of the stage that differs
    most.
    """
    cost = ops.memory_change
    if cost is None:
        return ""
    if cost.a_peak == cost.b_peak:
        return f"stage {cost.stage} keeps {cost.b} mb in memory, in A {cost.a}"
    return f"at most {cost.b_peak} mb in memory, in A {cost.a_peak}"


def cost_words(ops: OpChanges) -> str:
    """Returns the peak of micro-batches in memory, and where it differs most; "" where it differs nowhere."""
    cost = ops.memory_change
    if cost is None:
        return ""
    before = "as in A" if cost.a_peak == cost.b_peak else f"in A {cost.a_peak}"
    peak = f"Cost: at most {plural(cost.b_peak, 'micro-batch')} in memory, {before}"
    if cost.a == cost.b or (cost.a, cost.b) == (cost.a_peak, cost.b_peak):
        return peak
    return f"{peak}; stage {cost.stage} keeps {cost.b}, in A {cost.a}"
