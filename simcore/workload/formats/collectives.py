"""The collective cells of a 12-column row: which collective, on which kind of group.

Without a suffix a forward or input-gradient collective runs on the tensor-parallel group, a
weight-gradient one on the data-parallel group (SimAI, Layer.cc); `_EP` is the expert-parallel
group, `_DP_EP` the data-parallel group of an expert shard.
"""

from __future__ import annotations

from simcore.workload.model import GroupKind

Kind = tuple[str | None, GroupKind | None]

COLLECTIVES = ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")
NO_COLLECTIVE: Kind = (None, None)
# Written by some generator, run by none of our collectives: still tells a row from other text.
_RELATIVES = ("BROADCAST", "NONE")


def _table(unmarked: GroupKind) -> dict[str, Kind]:
    suffixes: tuple[tuple[str, GroupKind], ...] = (("", unmarked), ("_EP", "ep"), ("_DP_EP", "dp_ep"))
    table: dict[str, Kind] = {"NONE": NO_COLLECTIVE}
    for collective in COLLECTIVES:
        for suffix, group in suffixes:
            table[collective + suffix] = (collective, group)
    return table


# By upper-case token, for the cells of fwd, ig and wg.
KINDS: tuple[dict[str, Kind], ...] = (_table("tp"), _table("tp"), _table("dp"))


def looks_like_collective(token: str) -> bool:
    """Whether a token begins like the name of a collective, known to us or not."""
    return token.upper().startswith((*COLLECTIVES, *_RELATIVES))
