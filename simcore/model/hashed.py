"""Random numbers hashed from their subject, so that every machine gives the same.

Only code that draws numbers imports this: hashlib takes 11 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct, pack

_UNIFORMS = 12
_HASHES = Struct(f"<{_UNIFORMS}I")
# Kinds of subjects: a rank's compute, a group's collective, a transfer, the load of an expert.
OF_RANK, OF_GROUP, OF_SENDER, OF_EXPERT = range(4)


def hashed_normal(seed: int, purpose: int, subject: int, op: int) -> float:
    """Returns a number of mean 0 and deviation 1 that depends on its arguments alone.

    The sum of 12 hashed uniforms less 6: no library of mathematics, so every machine and Python version gives
    the same. purpose: the kind of subject. subject: the rank, the group's lowest rank, or the expert.
    """
    return hashed_normals(seed, purpose, subject, (op,))[0]


def hashed_normals(seed: int, purpose: int, subject: int, ops: Iterable[int]) -> list[float]:
    """Returns the numbers of several ops of a subject."""
    prefix, unpack, size = pack("<QQQ", seed, purpose, subject), _HASHES.unpack, 4 * _UNIFORMS
    return [
        (sum(unpack(blake2b(prefix + op.to_bytes(8, "little"), digest_size=size).digest())) + _UNIFORMS / 2)
        / 2**32
        - _UNIFORMS / 2
        for op in ops
    ]
