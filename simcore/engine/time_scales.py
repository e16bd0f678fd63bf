"""The parts of a run that `--time-scale` and the what-if table scale: phases, layers and streams.

`compute fwd`, `layer mlp_row` and `stream tp` each name ops of every stage; a factor on them is taken after
prices, scales and faults, and rounds once more, half to even.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from simcore.diagnostics import UsageError, printable
from simcore.engine.running import DurationChange
from simcore.program import Program, StageProgram
from simcore.program.ops import COMPUTE, PHASES, STREAM_OF_GROUP, STREAMS, TO_NEXT, TO_PREVIOUS, Ops
from simcore.program.overrides import find_factors
from simcore.workload.model import base_name

_MOST_LISTED = 12
# Stream name -> the codes of it: collectives of each kind of group, and transfers between stages.
_STREAMS: dict[str, tuple[int, ...]] = {kind: (stream,) for kind, stream in STREAM_OF_GROUP.items()}
_STREAMS["pp"] = (TO_NEXT, TO_PREVIOUS)


class TimeParts:
    """The parts of a program that a factor can be on. names: those of the rows of the file."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._stages = program.stages
        self._names = names

    @cached_property
    def words(self) -> list[str]:
        """Every part that some op belongs to: phases of compute, layers in file order, streams."""
        return [*self._compute(), *self._layers(), *self._streams()]

    def _compute(self) -> Iterator[str]:
        columns = [(stage.ops.stream, stage.ops.phase) for stage in self._stages]
        used = {of for pair in columns for stream, of in zip(*pair, strict=True) if stream == COMPUTE}
        yield from (f"compute {name}" for phase, name in enumerate(PHASES) if phase in used)

    def _layers(self) -> Iterator[str]:
        of_row, layer_ids = self._layer_ids
        used = {of_row[row] for stage in self._stages for row in set(stage.ops.row)}
        yield from (f"layer {name}" for name, layer_id in layer_ids.items() if layer_id in used)

    def _streams(self) -> Iterator[str]:
        used = {stream for stage in self._stages for stream in stage.ops.stream}
        yield from (f"stream {name}" for name, codes in _STREAMS.items() if not used.isdisjoint(codes))

    @cached_property
    def _layer_ids(self) -> tuple[list[int], dict[str, int]]:
        """For each row the id of its layer, and the ids by name without digits."""
        layer_ids: dict[str, int] = {}
        # One entry more: transfers have row -1.
        return [
            *[layer_ids.setdefault(base_name(name), len(layer_ids)) for name in self._names],
            -1,
        ], layer_ids

    def mask(self, part: str, stage: StageProgram) -> bytes:
        """Returns 1 for each op of a stage that belongs to a part. part: one of `words`."""
        kind, _, name = part.partition(" ")
        ops = stage.ops
        if kind == "compute":
            phase = PHASES.index(name)
            pairs = zip(ops.stream, ops.phase, strict=True)
            return bytes(stream == COMPUTE and of == phase for stream, of in pairs)
        if kind == "layer":
            of_row, layer_ids = self._layer_ids
            layer_id = layer_ids[name]
            return bytes(of_row[row] == layer_id for row in ops.row)
        codes = _STREAMS[name]
        return bytes(ops.stream).translate(bytes(code in codes for code in range(256)))


def factors_of(scales: Sequence[tuple[str, float]], ops: Ops, op: int, names: Sequence[str]) -> list[float]:
    """Returns the factors of `--time-scale` on op `op` of a stage. names: those of the rows of the file."""
    stream, row = ops.stream[op], ops.row[op]
    part = f"stream {STREAMS[stream].partition('>')[0]}"
    if stream == COMPUTE:
        part = f"compute {PHASES[ops.phase[op]]}"
    # A transfer between stages has no row.
    return find_factors(scales, part, base_name(names[row]) if row >= 0 else "")


def time_changes(
    factors: Sequence[tuple[str, float]], program: Program, names: Sequence[str]
) -> list[DurationChange]:
    """Returns the changes of durations that `--time-scale` makes. names: those of the rows of the file.

    Raises `UsageError` for a part that this run does not have.
    """
    if not factors:
        return []
    parts = TimeParts(program, names)
    for part, _ in factors:
        if part not in parts.words:
            kind = part.partition(" ")[0]
            there = [name for name in parts.words if name.startswith(f"{kind} ")]
            left = len(there) - _MOST_LISTED
            listed = ", ".join(printable(name, 40) for name in there[:_MOST_LISTED])
            more = f" and {left} more" if left > 0 else ""
            raise UsageError(
                f"--time-scale: no {printable(part, 60)} in this run, only {listed or 'other parts'}{more}"
            )
    return [
        DurationChange([parts.mask(part, stage) for stage in program.stages], factor)
        for part, factor in factors
    ]
