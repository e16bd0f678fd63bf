"""The 12-column relatives of the SimAI text that are known by name and not opened."""

from __future__ import annotations

from functools import partial

from simcore.workload.formats.collectives import looks_like_collective
from simcore.workload.formats.format import Format, Head

_HYBRID = (
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    "HYBRID_CUSTOMIZED",
    "DISTRIBUTED_INFERENCE",
)
# These are words of common prose too: a row count or a row has to follow.
_SHORT = ("DATA", "MODEL", "MICRO")
_ROW_CELLS = 12
_TYPE_CELLS = (3, 6, 9)


def _has_policy(policy: str, head: Head) -> bool:
    return head.tokens()[:1] == [policy]


def _has_short_policy(policy: str, head: Head) -> bool:
    if not _has_policy(policy, head):
        return False
    second = head.lines[1].split() if len(head.lines) > 1 else []
    return len(second) >= _ROW_CELLS or (len(second) == 1 and second[0].isdecimal())


def _is_headerless(head: Head) -> bool:
    tokens = head.tokens()
    return len(tokens) >= _ROW_CELLS and all(looks_like_collective(tokens[cell]) for cell in _TYPE_CELLS)


def _policy_format(policy: str) -> Format:
    sniff = _has_short_policy if policy in _SHORT else _has_policy
    return Format(f"ASTRA-sim 1.0 workload with policy {policy}", partial(sniff, policy))


FORMATS: tuple[Format, ...] = (
    *map(_policy_format, (*_HYBRID, *_SHORT)),
    Format("LIBRA workload without a header", _is_headerless),
)
