"""The times that AICB measures (`--comp_filepath`): its own text, us of each part of a layer."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.model.aicb import AicbTimes
from simcore.units import plain_number

_ATTENTION, _MLP = "layernorm", "layernorm2"
_OPTIMIZER = "param_time"


def read_times(path: str, data: bytes, recompute: bool) -> AicbTimes:
    """The times of such a file; `recompute` counts flash attention twice.

    A line that ends in a colon begins a part; `time_gpu_avg` is its time, us, of Adam `time_gpu_min` too.
    Raises InputError with the place of what is no time, and for a file without a part that is needed.
    """
    attention = mlp = embedding = 0.0
    optimizer = [0.0, 0.0]
    part, parts = "", set()
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        key, colon, text = line.partition(":")
        if not colon:
            continue
        if line[:1].strip():
            part = key.strip()
            continue
        least = key.strip() == "time_gpu_min"
        if not least and key.strip() != "time_gpu_avg":
            continue
        us = plain_number(text.strip())
        if us is None or us > 1e12:
            message = (
                f"{printable(key.strip())}: found {printable(text.strip(), 40)}, expected us as a number"
            )
            raise InputError(Diagnostic("error", "aicb-times", message, path, number, line.find(":") + 2))
        ns = us * 1000
        if part == _OPTIMIZER:
            optimizer[0 if least else 1] = ns
        elif not least and ("atten" in part or part == _ATTENTION):
            attention += ns * (2 if recompute and "flash" in part else 1)
        elif not least and ("mlp" in part or part == _MLP):
            mlp += ns
        elif not least and part == "Emb":
            embedding = ns
        parts.add(part)
    missing = [name for name in ("Emb", _OPTIMIZER) if name not in parts]
    if missing or not attention or not mlp:
        missing += [name for name, ns in (("atten_...", attention), ("mlp_...", mlp)) if not ns]
        message = f"found no {', '.join(missing)}, expected the times that AICB measures"
        raise InputError(Diagnostic("error", "aicb-times", message, path, 1, 1))
    return AicbTimes(
        round(embedding), round(attention), round(mlp), (round(optimizer[0]), round(optimizer[1]))
    )
