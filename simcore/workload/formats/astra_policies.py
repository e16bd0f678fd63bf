"""The 12-column relatives of the SimAI text: ASTRA-sim 1.0's other policies, and LIBRA's rows alone."""

from __future__ import annotations

from functools import partial

from simcore.units import is_whole
from simcore.workload.formats.cell import looks_like_collective
from simcore.workload.formats.format import FileHead, Format
from simcore.workload.formats.simai_text import read, read_without_header
from simcore.workload.policies import POLICIES, TRANSFORMER

# These are words of common prose too: a row count or a row has to follow.
_SHORT = ("DATA", "MODEL", "MICRO")
_ROW_CELLS = 12
_TYPE_CELLS = (3, 6, 9)


def _has_policy(policy: str, head: FileHead) -> bool:
    return [token.upper() for token in head.tokens()[:1]] == [policy]


def _has_short_policy(policy: str, head: FileHead) -> bool:
    if not _has_policy(policy, head):
        return False
    count, *more = [*head.tokens()[1:], *(head.lines[1].split() if len(head.lines) > 1 else [])] or [""]
    return len(more) >= _ROW_CELLS - 1 or is_whole(count) or count.endswith(":")


def _is_headerless(head: FileHead) -> bool:
    tokens = head.tokens()
    return len(tokens) >= _ROW_CELLS and all(looks_like_collective(tokens[cell]) for cell in _TYPE_CELLS)


FORMATS: tuple[Format, ...] = (
    *[
        Format(
            f"ASTRA-sim 1.0 workload with policy {policy}",
            partial(_has_short_policy if policy in _SHORT else _has_policy, policy),
            read,
        )
        for policy in POLICIES
        if policy not in TRANSFORMER
    ],
    Format("LIBRA workload without a header", _is_headerless, read_without_header),
)
