"""What other tools record of a run, told by how a file begins: each is named with what can be done instead.

The first bytes of PyTorch's pickles: `torch.cuda.memory._dump_snapshot` writes segments and device_traces,
the flight recorder (TORCH_NCCL_DEBUG_INFO_TEMP_FILE) entries and pg_config. Perfetto's traces are packets
with a time and a sequence (perfetto_trace.proto), XLA's planes with a name (xplane.proto).
"""

from __future__ import annotations

import re
from itertools import islice

from simcore.workload.formats.format import BLANKS, FileHead, Format, is_text
from simcore.workload.formats.protobuf import LENGTH, VARINT, fields

# Of a pickle: keys of its first objects stand in so many bytes.
_KEYS = 1 << 16
_PACKETS = 8
_PLANES = (b"/device:", b"/host:", b"#Chip", b"Task Environment")
_TIME, _SEQUENCE = 8, 10
# Compiled where a file is none that opens: it takes longer than to tell that it is one.
_NCCL_TESTS = (
    rb"(?m)^#\s*(?:nThread \d+ nGpus \d+|nccl-tests version|Collective test starting:|size\s+count\s+type\s)"
)
_NCCL_TESTS_JSON = (b'"bus_bw"', b'"coll_busbw_gbs"')
_DEEPSPEED = rb"(?m)^Comm\. Op\s+Message Size\s+Count|\bcomm op: \w+ \| time \(ms\):"
_ASCEND = r"(?:Step Id,)?Device_id,|(?:.*,)?OP Type,Core Type,"


def _is_nsys_report(head: FileHead) -> bool:
    return head.raw.startswith(b"NVIDIA Tegra Profiler Report")


def _is_pickle(head: FileHead) -> bool:
    return len(head.raw) > 2 and head.raw[0] == 0x80 and 2 <= head.raw[1] <= 5 and not is_text(head.raw)


def _pickled(head: FileHead, first: bytes, *others: bytes) -> bool:
    """Whether a file is a pickle with `first` and one of the others in it."""
    start = head.raw[:_KEYS]
    return _is_pickle(head) and first in start and any(other in start for other in others)


def _is_memory_snapshot(head: FileHead) -> bool:
    keys = b"device_traces", b"total_size", b"allocated_size"
    # `memory_snapshot()` gives the segments alone.
    return _pickled(head, b"segments", *keys) or _pickled(head, b"segment_type", b"total_size")


def _is_flight_recorder_pickle(head: FileHead) -> bool:
    # Entries come behind the groups of all ranks, which may be long.
    keys = b"pg_config", b"pg_status", b"collective_seq_id"
    return any(_pickled(head, key, b"") for key in keys) or _pickled(head, b"entries", b"nccl_version")


def _is_flight_recorder_json(head: FileHead) -> bool:
    raw = head.raw.lstrip(BLANKS)
    # Kineto's traces name versions and groups, too.
    with_entries = (b'"collective_seq_id"', b'"pg_config"', b'"nccl_version"')
    is_dump = b'"pg_status"' in raw or (b'"entries"' in raw and any(key in raw for key in with_entries))
    return raw.startswith(b"{") and is_dump


def _is_xplane(head: FileHead) -> bool:
    first = next(fields(head.raw), None)
    if is_text(head.raw) or first is None or first[:2] != (1, LENGTH):
        return False
    names = (field[2] for field in islice(fields(first[2]), 2) if field is not None and field[0] == 2)
    return any(name.startswith(_PLANES) for name in names)


def _is_perfetto(head: FileHead) -> bool:
    if is_text(head.raw):
        return False
    packets = list(islice(fields(head.raw), _PACKETS))
    # The last one may be cut.
    if len(packets) > 1 and packets[-1] is None:
        del packets[-1]
    if not packets or any(packet is None or packet[:2] != (1, LENGTH) for packet in packets):
        return False
    return any(
        field is not None and field[0] in (_TIME, _SEQUENCE) and field[1] == VARINT
        for packet in packets if packet is not None
        for field in fields(packet[2])
    )  # fmt: skip


def is_nccl_tests(head: FileHead) -> bool:
    """Whether a file is what nccl-tests or NCCL's inspector prints: `simcore.collectives.nccl_tests` reads
    it, as a parameter.
    """
    if not is_text(head.raw):
        return False
    if head.raw.lstrip(BLANKS).startswith(b"{"):
        return any(key in head.raw for key in _NCCL_TESTS_JSON)
    return re.search(_NCCL_TESTS, head.raw[:_KEYS]) is not None


def _is_deepspeed(head: FileHead) -> bool:
    return is_text(head.raw) and re.search(_DEEPSPEED, head.raw[:_KEYS]) is not None


def _is_ascend_table(head: FileHead) -> bool:
    return re.match(_ASCEND, head.first.replace('"', "")) is not None


_PROFILE_IT = "a trace that torch.profiler recorded of the run opens"
_NSYS_JAX = "nsys profile records such programs too: nsys export --type sqlite makes a file that opens"

FORMATS: tuple[Format, ...] = (
    Format(
        "an Nsight Systems report (.nsys-rep)",
        _is_nsys_report,
        instead="nsys export --type sqlite FILE makes a file that opens",
    ),
    Format("memory snapshot of PyTorch", _is_memory_snapshot, kind="snapshot", key="memory-snapshot"),
    Format("flight recorder dump of PyTorch", _is_flight_recorder_pickle, kind="dump", key="flight-recorder"),
    Format("flight recorder dump of PyTorch", _is_flight_recorder_json, kind="dump", key="flight-recorder"),
    Format("a Python pickle", _is_pickle, instead="to read one may run code that is in it"),
    Format("an XLA profile (xplane.pb)", _is_xplane, instead=_NSYS_JAX),
    Format(
        "a Perfetto trace (protobuf)",
        _is_perfetto,
        instead="open the JSON of the profiler, from which it was made",
    ),
    Format(
        "a log of nccl-tests or of NCCL's inspector",
        is_nccl_tests,
        instead="it has bandwidths and no timeline; wltui collective --measured FILE shows them beside a "
        "cluster's, --network busbw:FILE prices with them",
    ),
    Format("a log of DeepSpeed's communication", _is_deepspeed, instead=f"it has sums; {_PROFILE_IT}"),
    Format(
        "a table of the Ascend profiler",
        _is_ascend_table,
        instead="profiler traces of PyTorch (Kineto) and Nsight Systems open",
    ),
)
