"""The structure of a file: which rows are a micro-batch, which come before, which after."""

from __future__ import annotations

import itertools

from simcore.diagnostics import Diagnostic, Severity
from simcore.records import Struct
from simcore.units import plural
from simcore.workload import Workload
from simcore.workload.model import base_name

_LOSS = "cross_entropy"
_OPTIMIZER = "optimizer"
_EMBEDDING = "embedding_layer"
# Beginnings of names of rows of a block that belong to no transformer layer.
_NOT_LAYERS = ("embedding_layer", "final_", "embedding_norm")
_AFTER_BLOCKS = (_LOSS, _OPTIMIZER)
# Names of prologue rows, which count only in a file without embedding_layer; else their position does.
_BEFORE_BLOCKS = ("grad_", "moe_grad_norm", "embedding_grads", "layernorm")


class Structure(Struct, frozen=True):
    """Row indices of a file by their part in the step."""

    prologue: tuple[int, ...]
    """Rows before the first block."""
    blocks: tuple[tuple[int, ...], ...]
    """Rows of each micro-batch found, in file order."""
    loss: tuple[int, ...]
    """`cross_entropy*` rows; of an op table, which has one block, the rows behind its layer."""
    tail: tuple[int, ...]
    """The other rows after the last block."""
    layers_per_block: tuple[int, ...]
    """Repeats of each block's shortest period of names, which are its transformer layers."""

    def is_optimizer(self, row: int, name: str) -> bool:
        """Returns whether a row's compute is the optimizer's, whatever cell it is in. name: that of
        the row.
        """
        return row in self.tail or name.startswith("grad_param_compute")


def find_structure(workload: Workload, microbatches: int | None = None) -> tuple[Structure, list[Diagnostic]]:
    """Returns the structure of a file, and a diagnostic for each header key that disagrees with it.

    microbatches: how many are requested, whatever the header or the blocks say; None for those of the file.
    """
    if workload.stages:
        return _stage_structure(workload), []
    names = workload.name
    rows = range(len(names))
    # A file has up to millions of rows but few names: prefixes are searched among the names.
    embedding, after_names, before_names, loss_names = (
        _names_with_prefix(names, prefixes) for prefixes in (_EMBEDDING, _AFTER_BLOCKS, _BEFORE_BLOCKS, _LOSS)
    )
    starts = [row for row in rows if names[row] in embedding]
    if starts:
        prologue = tuple(range(starts[0]))
        tail_start = next((row for row in rows[starts[-1] :] if names[row] in after_names), len(names))
        edges = [*starts, tail_start]
        blocks = tuple(tuple(range(first, last)) for first, last in itertools.pairwise(edges))
        after = tuple(rows[tail_start:])
    else:
        after = tuple(row for row in rows if names[row] in after_names)
        prologue = tuple(row for row in rows if names[row] in before_names)
        outside = after_names | before_names
        inside = tuple(row for row in rows if names[row] not in outside)
        blocks = (inside,) if inside else ()
    loss = tuple(row for row in after if names[row] in loss_names)
    tail = tuple(row for row in after if names[row] not in loss_names)
    layer_names = {name: base_name(name) for name in set(names) if is_layer(name)}
    layers = tuple(
        _layer_count([layer_names[names[row]] for row in block if names[row] in layer_names])
        for block in blocks
    )
    structure = Structure(prologue, blocks, loss, tail, layers)
    return structure, _disagreements(workload, structure, microbatches)


def _stage_structure(workload: Workload) -> Structure:
    """Returns the structure of rows that differ by stage: one block, of all rows of it that any stage
    runs.
    """
    stages = workload.stages
    prologue = {row for stage in stages for row in stage.prologue}
    loss = {row for stage in stages for row in stage.loss}
    block = {row for stage in stages for chunk in stage.chunks for row in chunk}
    tail = tuple(row for row in range(len(workload)) if row not in prologue | loss | block)
    layers = workload.header.vpp or 0
    return Structure(tuple(sorted(prologue)), (tuple(sorted(block)),), tuple(sorted(loss)), tail, (layers,))


def one_block_structure(workload: Workload) -> Structure:
    """Returns the structure of a file whose rows are one loop, whatever their names: a single block."""
    layers = _layer_count([base_name(name) for name in workload.name])
    return Structure((), (tuple(range(len(workload))),), (), (), (layers,))


def is_embedding(name: str) -> bool:
    """Returns whether a row is the embedding that begins a block."""
    return name.startswith(_EMBEDDING)


def is_layer(name: str) -> bool:
    """Returns whether a row of a block belongs to a transformer layer (embedding and final rows do not)."""
    return not name.startswith(_NOT_LAYERS)


def _names_with_prefix(names: list[str], prefixes: str | tuple[str, ...]) -> set[str]:
    """Returns the names that begin with one of the prefixes."""
    return {name for name in set(names) if name.startswith(prefixes)}


def _layer_count(names: list[str]) -> int:
    """Returns the repeats of the shortest period of a block's layer names."""
    count = len(names)
    for period in range(1, count + 1):
        if count % period == 0 and names[period:] == names[: count - period]:
            return count // period
    return 0


def _disagreements(workload: Workload, structure: Structure, microbatches: int | None) -> list[Diagnostic]:
    header = workload.header
    disagreements = []

    def note(severity: Severity, code: str, message: str, key: str, brief: str = "") -> None:
        column = header.column.get(key)
        disagreements.append(Diagnostic(severity, code, message, workload.path, header.line, column, brief))

    blocks = len(structure.blocks)
    # With fewer micro-batches than blocks the first blocks are run.
    layers = structure.layers_per_block[: microbatches or None]
    each = (
        plural(layers[0], "layer")
        if len(set(layers)) == 1
        else " and ".join(map(str, layers[:8])) + " layers"
    )
    if not blocks:
        note("warning", "no-blocks", "no micro-batch block found: 0 micro-batches simulated", "ga")
    elif header.ga is None:
        count = plural(blocks, "micro-batch block")
        brief = f"{plural(blocks, 'micro-batch')}: blocks counted"
        note("note", "ga-missing", f"no ga in the header: {count} counted", "ga", brief)
    elif header.ga != blocks:
        choice, run = f"{blocks} taken", ""
        if microbatches is not None:
            choice, run = f"--microbatches {microbatches}", " is run"
        note(
            "warning",
            "ga-differs",
            f"ga is {header.ga}, but the file has {plural(blocks, 'block')}: {choice}{run}",
            "ga",
            f"ga {header.ga}, {plural(blocks, 'block')}: {choice}",
        )
    if blocks and header.vpp is None:
        message = f"no vpp, the layers of a stage, in the header: {each} counted"
        note("note", "vpp-missing", message, "vpp", f"{each} a stage: counted")
    elif blocks and header.vpp is not None and set(layers) != {header.vpp}:
        note(
            "warning",
            "vpp-differs",
            f"vpp, the layers of a stage, is {header.vpp}, but the blocks have {each}: the rows are taken",
            "vpp",
            f"vpp {plural(header.vpp, 'layer')}, blocks of {each.rpartition(' ')[0]}",
        )
    return disagreements
