"""What SimAI's models make of the parameters and of a file before anything is priced."""

from __future__ import annotations

from simcore.cluster.parsing import BANDWIDTHS
from simcore.diagnostics import UsageError, printable
from simcore.names import GPU_TYPES, NIC_TYPES
from simcore.parameters import Parameters
from simcore.units import plain_number
from simcore.workload import Workload
from simcore.workload.model import Phase

# A forward collective of fewer bytes, but not of none, counts as one of so many.
_LEAST_FORWARD_BYTES = 4096
_LIFTING_POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
_OVERLAPS = {"dp": 0.0, "tp": 0.0, "ep": 0.0, "pp": 1.0}


def simai_bandwidths(parameters: Parameters) -> dict[str, float]:
    """GiB/s of NVLink (`nvlink`) and of one NIC (`nic`): as given, else of the type.

    Raises UsageError for a type that SimAI does not know and a figure that cannot be.
    """
    figures = {}
    for field, of_type, types in (("nvlink", "gpu_type", GPU_TYPES), ("nic", "nic_type", NIC_TYPES)):
        name = getattr(parameters, of_type)
        if name not in types:
            flag = "--" + of_type.replace("_", "-")
            raise UsageError(f"{flag} {printable(name, 60)}: one of {', '.join(types)} is expected")
        given = getattr(parameters, field)
        if given is not None and not BANDWIDTHS[0] <= given <= BANDWIDTHS[1]:
            raise UsageError(f"--{field} {given!r}: a number from 1e-6 to 1e9 (GiB/s) is expected")
        figures[field] = types[name] if given is None else given
    return figures


def overlap_ratios(parameters: Parameters) -> dict[str, float]:
    """`--overlap dp=0.5,tp=0.3`: the share of communication that SimAI's estimate takes as hidden.

    By default 0, and 1 for pp. Raises UsageError.
    """
    ratios = dict(_OVERLAPS)
    for text in ",".join(parameters.overlap).split(",") if parameters.overlap else ():
        kind, _, value_text = text.partition("=")
        value = plain_number(value_text)
        if kind not in ratios or value is None or value > 1:
            raise UsageError(
                f"--overlap {printable(text, 60)}: KIND=RATIO is expected, KIND one of "
                f"{', '.join(ratios)}, RATIO from 0 to 1, for example dp=0.5,tp=0.3"
            )
        ratios[kind] = value
    return ratios


def least_forward_bytes(workload: Workload) -> int:
    """What a smaller forward collective counts as, bytes; 0 where SimAI has no such rule."""
    return _LEAST_FORWARD_BYTES if workload.policy.upper() == _LIFTING_POLICY else 0


def priced_bytes(workload: Workload, phase: Phase, size: int) -> int:
    """The bytes that SimAI prices a cell's collective of `size` bytes by."""
    return max(size, least_forward_bytes(workload)) if phase == "fwd" and size else size
