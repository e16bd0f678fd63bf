"""Random numbers hashed from their subject, so that every machine gives the same.

Only code that draws numbers imports this: hashlib takes 11 ms.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import pack, unpack

_UNIFORMS = 12
_HASHES = f"<{_UNIFORMS}I"
# Kinds of subjects: a rank's compute, a group's collective, a transfer, the load of an expert.
OF_RANK, OF_GROUP, OF_SENDER, OF_EXPERT = range(4)


def hashed_normal(seed: int, purpose: int, subject: int, op: int) -> float:
    """Returns a number of mean 0 and deviation 1 that depends on its arguments alone.

    The sum of 12 hashed uniforms less 6: no library of mathematics, so every machine and Python version gives
    the same. purpose: the kind of subject. subject: the rank, the group's lowest rank, or the expert.
    """
    digest = blake2b(pack("<QQQQ", seed, purpose, subject, op), digest_size=4 * _UNIFORMS).digest()
    total: int = sum(unpack(_HASHES, digest))
    return (total + _UNIFORMS / 2) / 2**32 - _UNIFORMS / 2
