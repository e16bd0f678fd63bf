"""The program of an op table: its rows once, except the one transformer layer, which runs N times.

A table lists the rows of a model with one layer (NeuSight's traces are cut to one); the names of NeuSight's
models tell which rows those are (its own repetition of a layer uses the same names). The number of layers is
not in the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.layout import Layout
from simcore.program.blocks import Structure
from simcore.program.ops import FWD, IG, TO_NEXT, TO_PREVIOUS, Join, Program, Receive, TransferCost
from simcore.program.plan import ONE_LOOP, Plan, RowBuilder
from simcore.program.schedule_choice import ScheduleParameters
from simcore.program.stage_builder import StageBuilder
from simcore.records import NamedTuple
from simcore.units import plural
from simcore.workload import Cells, Workload


class _Family(NamedTuple):
    """A kind of model, with the names of the rows of its layer."""

    name: str
    """What messages call it."""
    first: str
    """The name of the first row of its layer."""
    last: str
    """The name of the last row of its layer."""
    layers: str
    """The number of layers by model, of the published configurations that NeuSight's experiments use."""


_FAMILIES = (
    _Family(
        "GPT",
        "transformer_h_0_ln_1",
        "add_15",
        "gpt2 12, gpt2_medium 24, gpt2_large 36, gpt2_xl 48, "
        "gpt3_xl 24, gpt3_2.7b 32, gpt3_6.7b 32, gpt3_13b 40",
    ),
    _Family(
        "BERT",
        "bert_encoder_layer_0_attention_self_query",
        "bert_encoder_layer_0_output_layer_norm",
        "bert_base 12, bert_large 24",
    ),
    _Family(
        "OPT",
        "model_decoder_layers_0_self_attn_layer_norm",
        "view_11",
        "opt_125m 12, opt_350m 24, opt_1.3b 24, opt_2.7b 32, opt_6.7b 32, opt_13b 40",
    ),
)
_GRADIENT = "_grad"


def build_table_program(
    workload: Workload,
    layout: Layout,
    parameters: ScheduleParameters,
    layer_scales: Mapping[tuple[str, str], float],
    most_ops: int,
) -> tuple[Program, list[Diagnostic]]:
    """Returns the program of an op table, and what was assumed for it.

    Raises `UsageError` for another schedule than layer-loop, for layers that are not found, and for more than
    `most_ops` ops.
    """
    name = ONE_LOOP.schedule
    if parameters.schedule not in (None, name):
        raise UsageError(
            f"--schedule {printable(parameters.schedule or '', 60)}: an op table runs as {name} alone"
        )
    first, last, diagnostics = find_layer(workload, layout, parameters.layers)
    layers = parameters.layers or ONE_LOOP.layers
    rows = range(len(workload))
    exchanges = layout.pp > 1 and any("pp" in cells.group for cells in (workload.fwd, workload.ig))
    stages = layout.pp if exchanges else 1
    passes = parameters.passes
    ops = 6 * stages * passes * (len(rows) + (last - first) * (layers - 1))
    if ops > most_ops:
        what = f"{plural(layers, 'layer')} on {plural(stages, 'stage')}"
        what += f" in {plural(passes, 'pass')}" if passes > 1 else ""
        raise UsageError(f"{what} are up to {ops} ops: at most {most_ops} are simulated")
    structure = Structure(tuple(rows[:first]), (tuple(rows[first:last]),), tuple(rows[last:]), (), (layers,))
    plan = Plan(
        workload, structure, layout, ONE_LOOP.microbatches, 0, passes=passes, layer_scales=layer_scales
    )
    order = [*rows[:first], *list(rows[first:last]) * layers, *rows[last:]]
    built = []
    for stage in range(stages):
        builder = _TableBuilder(plan, stage)
        builder.loop_over_table(order)
        built.append(builder.finish())
    if not exchanges:
        built *= layout.pp
    program = Program(
        name,
        exchanges,
        structure,
        tuple(built),
        tuple(cost for _, cost in plan.costs),
        plan.microbatches,
        len(plan.messages),
        layers=layers,
    )
    return program, diagnostics


class _TableBuilder(StageBuilder):
    """Builds a stage that runs the rows of a table over and over."""

    def __init__(self, plan: Plan, stage: int) -> None:
        super().__init__(plan, stage)
        self._exchanges = 0

    def loop_over_table(self, order: Sequence[int]) -> None:
        """Append each pass: forward over the rows of `order`, then backward; a SENDRECV goes between stages.

        The forward of a row waits for its asynchronous collectives of the backward before, at each index
        of `order` for those of that index.
        """
        fwd, ig = self.plan.workload.fwd, self.plan.workload.ig
        row_ops = RowBuilder(self.plan, self.ops, dict.fromkeys(order, 0))
        reduced: dict[int, list[int]] = {}
        joined_ops: set[int] = set()
        for pass_index in range(self.plan.passes):
            if pass_index:
                self._end_pass()
            for position, row in enumerate(order):
                for op in reduced.pop(position, ()):
                    joined_ops.add(op)
                    self._wait(Join(op))
                row_ops.forward(row)
                self._exchange(fwd, row, FWD)
            for position in reversed(range(len(order))):
                row, first = order[position], len(self.ops)
                row_ops.input_grad(row)
                self._exchange(ig, row, IG)
                row_ops.weight_grad(row, blocking=False)
                if issued := self._asynchronous(first):
                    reduced[position] = issued
        self._outstanding = [op for op in self._asynchronous(0) if op not in joined_ops]
        self._peak_chunks = 1

    def _asynchronous(self, first: int) -> list[int]:
        """Returns the collectives from op `first` on that compute does not wait for; compute waits for
        transfers.
        """
        blocking, message = self.ops.blocking, self.ops.message
        return [op for op in range(first, len(self.ops)) if not blocking[op] and message[op] < 0]

    def _exchange(self, cells: Cells, row: int, phase: int) -> None:
        """Append the SENDRECV of a row, to the next stage (FWD) or the previous one (IG); compute waits.

        It waits for what it sends and for what it receives; every stage does the same at once.
        """
        if cells.group[row] != "pp" or not cells.bytes[row]:
            return
        step, stream = (1, TO_NEXT) if phase == FWD else (-1, TO_PREVIOUS)
        exchange_index = self._exchanges = self._exchanges + 1
        if 0 <= self.stage + step < self.stages:
            cost = self.plan.cost(TransferCost(step, cells.bytes[row]))
            op = len(self.ops)
            message = self.plan.message(phase, exchange_index, self.stage)
            self.ops.append(stream, phase, 0, cost, row, 0, message)
            self._wait(Join(op))
        source = self.stage - step
        if 0 <= source < self.stages:
            self._wait(Receive(self.plan.message(phase, exchange_index, source), source))


def find_layer(workload: Workload, layout: Layout, layers: int | None) -> tuple[int, int, list[Diagnostic]]:
    """Returns the rows first..last-1 of the one listed layer, and a diagnostic where their number is assumed.

    layers: how often it is to run, None if not requested. Raises `UsageError` where it is requested and no
    layer is found.
    """
    row_of = {name: row for row, name in reversed(list(enumerate(workload.name)))}
    for family in _FAMILIES:
        first, last = row_of.get(family.first), row_of.get(family.last)
        if first is None or last is None or last < first:
            continue
        if first and workload.name[first - 1] == family.first + _GRADIENT:
            first -= 1
        if layers is not None:
            return first, last + 1, []
        share = f"; a stage of pp {layout.pp} holds 1/{layout.pp} of them" if layout.pp > 1 else ""
        message = (
            f"one {family.name} layer is listed (lines {workload.line[first]} to {workload.line[last]}) and "
            f"run once: --layers N repeats it (known: {family.layers}{share})"
        )
        brief, line = f"one {family.name} layer, run once", workload.line[first]
        diagnostic = Diagnostic("warning", "layers-assumed", message, workload.path, line, brief=brief)
        return first, last + 1, [diagnostic]
    if layers is not None:
        families = ", ".join(f"{family.first}..{family.last} ({family.name})" for family in _FAMILIES)
        raise UsageError(f"--layers {layers}: the rows of one layer are not found; known are {families}")
    message = "the rows of one layer are not found by name: every row runs once, as it stands"
    return 0, len(workload), [Diagnostic("warning", "layer-not-found", message, workload.path)]
