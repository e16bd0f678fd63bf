"""Formats that are recognised by content, so that a message can name them, and are not opened."""

from __future__ import annotations

import re

from simcore.workload.formats.format import BLANKS, FileHead, Format
from simcore.workload.formats.protobuf import is_delimited


def _is_utf_16(head: FileHead) -> bool:
    return head.raw.startswith((b"\xff\xfe", b"\xfe\xff"))


def _json(head: FileHead) -> bytes:
    """The head when it is JSON, else nothing."""
    start = head.raw.lstrip(BLANKS)
    return start if start.startswith((b"{", b"[")) else b""


def _is_chakra_json(head: FileHead) -> bool:
    return b'"workload_graph"' in _json(head)


def _is_pytorch_trace(head: FileHead) -> bool:
    json = _json(head)
    return json.startswith(b"{") and b'"schema"' in json and b'"nodes"' in json


def _is_vidur(head: FileHead) -> bool:
    return head.first.split()[:4] == ["layer_id", "layer_name", "comp_time", "comm_size"]


def _is_aicb_log(head: FileHead) -> bool:
    return head.first.startswith("comm_type,comm_group")


def _is_chakra(head: FileHead) -> bool:
    return is_delimited(head.raw)


# The first cell that is not empty of PyTorch's form, or a stage's line of the plain one.
_SCHEDULE = (
    r"(?i)[\s,\"]*(?:(?:(?:stage|rank)\s*)?\d+\s*:[\s.]*\d*[FBIW]\d+"
    r"|\d+(?:[FBIW]|UNSHARD|RECV_F|\(\d+F)\d*(?:[,;\s]|$))"
)


def is_schedule(head: FileHead) -> bool:
    """Whether a file is a pipeline schedule: `simcore.program.order_files` reads it, as a parameter."""
    return bool(head.lines) and re.match(_SCHEDULE, head.lines[0]) is not None


_GIVE_A_WORKLOAD = "give the SimAI, ASTRA-sim 1.0 or op-table file that it was made from"

FORMATS: tuple[Format, ...] = (
    Format("UTF-16 text", _is_utf_16, instead="save it as UTF-8"),
    Format("Chakra JSON", _is_chakra_json, instead=_GIVE_A_WORKLOAD),
    Format(
        "PyTorch execution trace",
        _is_pytorch_trace,
        instead="it has no times; open the profiler trace that was recorded beside it",
    ),
    Format(
        "Vidur table",
        _is_vidur,
        instead="it is a profile of inference; an op table (name, forward_compute_time ...) opens",
    ),
    Format(
        "AICB log",
        _is_aicb_log,
        instead="it is what a run measured; give the workload that AICB wrote for SimAI",
    ),
    Format(
        "a pipeline schedule",
        is_schedule,
        instead="give it beside a workload as --schedule FILE; wltui check and wltui schedule read it",
    ),
    Format("Chakra execution trace", _is_chakra, instead=_GIVE_A_WORKLOAD),
)
