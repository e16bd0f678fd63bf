"""Rescaling: makes the rows of an AICB file anew for other degrees (`--rescale on`).

Names, types and bytes are AICB's own for that layout. Each compute cell is the file's times the ratio of the
cost model between the two layouts, so that the file's cells stay the reference: a file that is written from
rescaled rows states the reference in its header (`rescaled_from`), and is rescaled from that again.
"""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.aicb import AicbConfig, AicbTimes, aicb_text
from simcore.model.aicb_arguments import check_config
from simcore.model.gpu import find_gpu
from simcore.model.maker import estimate_aicb_times
from simcore.records import Struct, replace
from simcore.recovery.recovered_model import RecoveredModel, recover
from simcore.recovery.statement import Reference
from simcore.units import group_digits
from simcore.workload import Workload
from simcore.workload.model import DegreeParameters

# The GPU whose constants the ratios are made with: public files are of A100s or state no GPU.
_GPU = "a100-80"
_CHANGED = ("world", "tp", "ep", "pp")
# A form needs the rows of the draft, of the run on the screen and of another one, in turn.
_MOST_CACHED = 6
_recovered: list[tuple[Workload, RecoveredModel]] = []
_rescaled_rows: dict[tuple[int, DegreeParameters, int | None], tuple[Workload, RescaledRows]] = {}


class RescaledRows(Struct, frozen=True):
    """Rows for another layout. text: their file. workload: as its reader returns it, with diagnostics."""

    workload: Workload
    text: str


def recover_cached(workload: Workload) -> RecoveredModel:
    """Returns what made the rows of a file; the results for the last files are cached."""
    for recent, recovered in _recovered:
        if recent is workload:
            return recovered
    recovered = recover(workload)
    _recovered.append((workload, recovered))
    del _recovered[:-_MOST_CACHED]
    return recovered


def can_rescale(workload: Workload) -> bool:
    """Returns whether rows can be made for other degrees than the file's."""
    from simcore.workload.traffic import is_like_aicb

    return is_like_aicb(workload) and recover_cached(workload).exact


def rescale_rows(
    workload: Workload, degree_parameters: DegreeParameters, microbatches: int | None
) -> RescaledRows | None:
    """Returns the rows for these degrees and micro-batches; None where they are the file's.

    Raises `UsageError` for a file that differs from what AICB writes, and for degrees that do not fit.
    """
    recovered = recover_cached(workload)
    if not recovered.exact or recovered.config is None:
        raise UsageError(f"--rescale on: {printable(workload.path, 60)} is {_why(recovered)}; off would fit")
    degree_parameters = DegreeParameters(
        degree_parameters.world, degree_parameters.tp, degree_parameters.ep, degree_parameters.pp
    )
    key = id(workload), degree_parameters, microbatches
    if key not in _rescaled_rows or _rescaled_rows[key][0] is not workload:
        config = _rescaled_config(recovered.config, degree_parameters, microbatches)
        if config == recovered.config:
            return None
        _rescaled_rows[key] = workload, _make_rows(workload, recovered, config)
        for oldest in list(_rescaled_rows)[:-_MOST_CACHED]:
            del _rescaled_rows[oldest]
    return _rescaled_rows[key][1]


def _why(recovered: RecoveredModel) -> str:
    if recovered.config is None:
        return recovered.line()
    assert recovered.difference is not None
    return f"AICB's but for {recovered.difference.text()}"


def _rescaled_config(
    config: AicbConfig, degree_parameters: DegreeParameters, microbatches: int | None
) -> AicbConfig:
    """Returns the config on another layout: the global batch stays, micro-batches follow."""
    degrees = {name: getattr(degree_parameters, name) or getattr(config, name) for name in _CHANGED}
    scaled = replace(config, **degrees)
    if (scaled.tp, scaled.pp, scaled.ep, scaled.world) == (config.tp, config.pp, config.ep, config.world):
        scaled = config
    ranks = scaled.tp * scaled.pp
    if scaled.world % ranks == 0 and microbatches is not None and microbatches != scaled.microbatches:
        scaled = replace(scaled, global_batch=microbatches * scaled.microbatch_size * scaled.dp)
    check_config(scaled)
    for what, size in (("the hidden size", scaled.hidden), ("the inner size", scaled.ffn)):
        if size % scaled.tp:
            fitting = [str(tp) for tp in (1, 2, 4, 8, 16, 32) if size % tp == 0]
            raise UsageError(
                f"--rescale on: --tp {scaled.tp} does not divide {what} {size}: "
                f"{', '.join(fitting)} would fit"
            )
    if scaled.stage_layers == 0:
        raise UsageError(
            f"--rescale on: --pp {scaled.pp} is above the {scaled.layers} layers: at most those would fit"
        )
    if scaled.microbatches == 0:
        raise UsageError(
            f"--rescale on: a global batch of {scaled.global_batch} is less than micro-batch "
            f"{scaled.microbatch_size} x dp {scaled.dp}: --microbatches 1 or a smaller --world would fit"
        )
    if scaled.ep > 1 and scaled.dp % scaled.ep and (scaled.tp * scaled.dp) % scaled.ep:
        raise UsageError(
            f"--rescale on: --ep {scaled.ep} divides neither dp {scaled.dp} nor "
            f"tp {scaled.tp} x dp {scaled.dp}; 1 would fit"
        )
    return scaled


def _make_rows(workload: Workload, recovered: RecoveredModel, config: AicbConfig) -> RescaledRows:
    from simcore.workload.formats.simai_text import read

    assert recovered.config is not None
    reference = recovered.reference or Reference(recovered.config, recovered.times)
    back = config == reference.config
    times, ratios = reference.times, ""
    if reference.times is not None and not back:
        times, ratios = _scale_times(reference.config, reference.times, config)
    text = aicb_text(config, times)
    if not back:
        first, _, rest = text.partition("\n")
        text = f"{first} rescaled_from: {reference.word()}\n{rest}"
    words = _describe_change(recovered.config, config)
    messages = [f"rows made anew {words}: a global batch of {group_digits(config.global_batch)}"]
    messages[0] += f", {group_digits(config.microbatches)} micro-batches of {config.microbatch_size}"
    if ratios:
        messages[0] += f"; compute cells of the file times {ratios} (the cost model, constants of {_GPU})"
    elif back and recovered.reference:
        messages[0] += "; compute cells are those that the file was rescaled from"
    lost = config.layers - config.stage_layers * config.pp
    if lost:
        messages.append(f"{config.layers} layers on pp {config.pp}: AICB loses {lost} of them")
    left = config.global_batch - config.microbatches * config.microbatch_size * config.dp
    if left:
        each = config.microbatch_size * config.dp
        messages.append(
            f"a global batch of {config.global_batch} is not a multiple of micro-batch "
            f"{config.microbatch_size} x dp {config.dp} = {each}: AICB leaves out {left} sequences"
        )
    notes = [
        Diagnostic("warning" if at else "note", "rescaled", text, workload.path)
        for at, text in enumerate(messages)
    ]
    parsed = read(workload.path, text.encode())
    diagnostics = (*workload.diagnostics, *notes)
    rescaled_workload = replace(
        parsed,
        diagnostics=diagnostics,
        as_read=workload.as_written,
        rescaled=words,
        left_out=workload.left_out,
    )
    return RescaledRows(rescaled_workload, text)


def _describe_change(before: AicbConfig, after: AicbConfig) -> str:
    """Returns what differs in the layout: `from tp 8 to tp 4`."""
    names = [name for name in ("tp", "pp", "ep", "world") if getattr(before, name) != getattr(after, name)]
    if not names:
        return f"from {before.microbatches} to {after.microbatches} micro-batches"
    parts = [", ".join(f"{name} {getattr(side, name)}" for name in names) for side in (before, after)]
    return f"from {parts[0]} to {parts[1]}"


def _scale_times(reference: AicbConfig, times: AicbTimes, config: AicbConfig) -> tuple[AicbTimes, str]:
    """Returns the times on the other layout, each times the ratio of its costs there and here, and a note."""
    gpu = find_gpu(_GPU)
    before, after = estimate_aicb_times(reference, gpu), estimate_aicb_times(config, gpu)

    def scale(ns: int, old: int, new: int) -> int:
        # A cell of 1 is a placeholder.
        return ns if ns <= 1 or not old else (2 * ns * new + old) // (2 * old)

    adam = sum(before.optimizer), sum(after.optimizer)
    scaled_times = AicbTimes(
        scale(times.embedding, before.embedding, after.embedding),
        scale(times.attention, before.attention, after.attention),
        scale(times.mlp, before.mlp, after.mlp),
        (scale(times.optimizer[0], *adam), scale(times.optimizer[1], *adam)),
        scale(times.latent, before.latent, after.latent),
    )
    pairs = (("attention", before.attention, after.attention), ("mlp", before.mlp, after.mlp),
             ("embedding", before.embedding, after.embedding), ("optimizer", *adam))  # fmt: skip
    return scaled_times, ", ".join(f"{name} {new / max(old, 1):.3g}" for name, old, new in pairs)
