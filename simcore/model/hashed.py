"""Random numbers hashed from their subject, so that every machine gives the same.

Only code that draws numbers imports this: hashlib takes 11 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct, pack

_UNIFORMS = 12
_HASHES = Struct(f"<{_UNIFORMS}I")
# Kinds of subjects: a rank's compute, a group's collective, a transfer, the load of an expert, the documents
# of a replica.
OF_RANK, OF_GROUP, OF_SENDER, OF_EXPERT, OF_REPLICA = range(5)


def hashed_normal(seed: int, purpose: int, subject: int, op: int) -> float:
    """Returns a number of mean 0 and deviation 1 that depends on its arguments alone.

    The sum of 12 hashed uniforms less 6: no library of mathematics, so every machine and Python version gives
    the same. purpose: the kind of subject. subject: the rank, the group's lowest rank, the expert, or the
    replica.
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


def hashed_lognormal(
    sigma: float, scale: int, seed: int, purpose: int, subject: int, op: int, *, is_mean: bool = False
) -> int:
    """Returns a number of a log-normal distribution, rounded down: a median of `scale`, or a mean, times
    exp(sigma z), z as `hashed_normal` has it.
    """
    # Imported here: jitter does not need it.
    from decimal import Context, Decimal

    # Decimal's exponential is rounded correctly; libraries of mathematics differ.
    context = Context(prec=30)
    deviation = Decimal(sigma)
    exponent = context.multiply(deviation, Decimal(hashed_normal(seed, purpose, subject, op)))
    if is_mean:
        exponent = context.subtract(exponent, context.divide(context.multiply(deviation, deviation), 2))
    return int(context.multiply(context.exp(exponent), scale))
