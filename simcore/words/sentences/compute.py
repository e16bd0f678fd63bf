"""That the step goes to compute, and to what; or that compute is not modelled."""

from __future__ import annotations

from simcore.analysis.model_use import other_model
from simcore.diagnostics import printable
from simcore.program.blocks import is_layer
from simcore.program.ops import COMPUTE
from simcore.units import how_much, largest, listed_with, percent
from simcore.words.sentences.model import Facts, Sentence, most_rows
from simcore.workload.model import base_name

_HALF = 0.5
# Below half compute leads by this much before any other cause; what is closer binds the step instead.
_MARGIN = 1.2
# By name of the two rows that older files of AICB have of a layer, what they are of.
_HALVES = {"attention_norm": "attention", "mlp_norm": "the MLP"}


def no_compute(facts: Facts) -> Sentence | None:
    """That the file has placeholders for compute, before anything is made of its communication."""
    workload = facts.simulation.workload
    if workload.has_compute:
        return None
    text = f"All {3 * len(workload)} compute cells of the file are 0 or 1 ns"
    if any(set(stage.ops.stream) - {COMPUTE} for stage in facts.simulation.program.stages):
        text += ": the step is communication alone."
    else:
        text += ", and no collective has two ranks to run on: the step says nothing of a training step."
    return Sentence("no-compute", text, facts.mean_busy_ns, "compute is not modelled", fault=True)


def one_layer(facts: Facts) -> Sentence | None:
    """That a table lists one layer, which runs once, before a share of the step is blamed on what stands
    beside it.
    """
    if all(one.code != "layers-assumed" for one in facts.simulation.diagnostics):
        return None
    text = (
        "The table lists one transformer layer, and nobody said how many there are: with --layers N what "
        "stands beside it takes a smaller share of the step."
    )
    return Sentence("one-layer", text, facts.step_ns, "one layer of the model runs", fault=True)


def another_model(facts: Facts) -> Sentence | None:
    """That degrees other than the file's make it another model, before its step is held against anything."""
    other = other_model(facts.simulation)
    if not other:
        return None
    # Imported here: only a run with other degrees asks.
    from simcore.recovery.rescale import can_rescale

    text = f"{other[0].upper()}{other[1:]}."
    if can_rescale(facts.simulation.workload.as_written):
        text += " With --rescale on they are made anew for these degrees."
    return Sentence("another-model", text, facts.step_ns, "not the model of the file", fault=True)


def compute_bound(facts: Facts) -> Sentence | None:
    """That compute takes half of the step, or clearly more than any other cause; and most of it in what."""
    if not facts.simulation.workload.has_compute:
        return None
    busy = facts.mean_busy_ns
    others = (facts.network_ns, facts.bubble_ns, facts.unbalanced_ns, facts.mean_ns["wait"])
    if not facts.worth(busy, _HALF) and not (facts.worth(busy) and busy >= _MARGIN * max(others)):
        return None
    text = f"Ranks compute {facts.figure(busy)} of the step{_most_computed(facts)}."
    return Sentence("compute-bound", text, busy, "compute", busy)


def _most_computed(facts: Facts) -> str:
    """`, most in mlp_norm (29.2 %, compute alone)`: the layers that compute most; "" where that is all rows.

    Where one layer computes all, the rows of it that are most of it.
    """
    by_name, groups = facts.layer_compute_ns, facts.results.layer_groups
    names, exposed, whole = largest(by_name), groups.by_name(groups.exposed_ns), sum(by_name.values())
    if len(names) == 1 and how_much(by_name[names[0]], whole) != "most":
        rows = most_rows(facts.row_compute_ns)
        if rows and len(rows) < len(facts.row_compute_ns):
            by_name, names = facts.row_compute_ns, rows
            # What a row is exposed for is in no other figure.
            exposed = {}
        elif len(by_name) == 1:
            return ""
    if not names:
        return ""
    most = sum(by_name[name] for name in names)
    how, shares = how_much(most, whole), [percent(by_name[name], facts.step_ns) for name in names]
    printed = [printable(name, 32) for name in names]
    if len(names) == 1 and how != "most" and shares[0] == percent(facts.mean_busy_ns, facts.step_ns):
        return f", {how} in {printed[0]}"
    # Beside a layer's figure of the summary, which has its communication too.
    alone = any(
        percent(by_name[name] + exposed.get(name, 0), facts.step_ns) != share
        for name, share in zip(names, shares, strict=True)
    )
    words, each = ", compute alone" if alone else "", len(set(shares)) == 1
    if len(names) == 1:
        words += _whole_blocks(facts, names[0])
    shares = [f"{share} %" for share in shares]
    return f", {how} in {listed_with(printed, shares, words if each else '')}{'' if each else words}"


def _whole_blocks(facts: Facts, name: str) -> str:
    """`; the file has no other row for the MLP`, of the row of a norm that stands for all of it: 29.2 % of a
    step in a norm looked like a mistake of the file. name: of such rows.
    """
    structure, names = facts.simulation.program.structure, facts.simulation.workload.name
    of_layer = {base_name(names[row]) for block in structure.blocks for row in block}
    halves = {one for one in of_layer if is_layer(one)}
    if name not in halves or halves - _HALVES.keys():
        return ""
    return f"; the file has no other row for {_HALVES[name]}"
