"""Lengths of the documents that are packed into each micro-batch: drawn or read.

A micro-batch has as many tokens as any other, so that only attention differs: a token sees its own document
alone, and a document takes the square of its length (docs/models.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.imbalance import LOGNORMAL, read_sigma
from simcore.records import NamedTuple, Struct
from simcore.units import is_whole, plural
from simcore.workload.model import ModelParameters

# Above this most documents have a hundredth of the mean.
_MOST_SIGMA = 3.0
# Drawing and pricing so many takes about 10 s.
_MOST_MICROBATCHES = 1 << 16
_HEADERS = ("dp", "dp_rank", "dp rank")


class PackedMicrobatch(NamedTuple):
    """What attention's time depends on of the documents of a micro-batch."""

    tokens: int
    """Their tokens; those left to the size of the micro-batch are padding, which attention leaves out."""
    squares: int
    """The sum of the squares of their lengths."""
    longest: int
    """Tokens of the longest."""

    @classmethod
    def of(cls, lengths: Sequence[int]) -> PackedMicrobatch:
        """Returns that of documents of these lengths."""
        return cls(sum(lengths), sum(length * length for length in lengths), max(lengths))


class Packing(Struct, frozen=True):
    """The documents of all micro-batches."""

    microbatches: tuple[PackedMicrobatch, ...]
    """The different micro-batches, that of most attention first."""
    of_replica: tuple[tuple[int, ...], ...]
    """By replica, the index of each of its micro-batches among these."""

    @property
    def squares(self) -> int:
        """The sum of the squares of all lengths."""
        return sum(map(sum, self.squares_by_replica))

    @property
    def squares_by_replica(self) -> list[list[int]]:
        """By replica, the squares of the lengths in each of its micro-batches, summed."""
        return [[self.microbatches[index].squares for index in indices] for indices in self.of_replica]


def pack_documents(
    parameters: ModelParameters, replicas: int, microbatches: int, microbatch_size: int, seq: int
) -> Packing | None:
    """Returns the documents of `--seq-imbalance`; None where each sequence is one.

    microbatches: of a replica. microbatch_size: sequences of each. seq: tokens of a sequence. Raises
    `UsageError` and `InputError` with what was found and what would fit.
    """
    text = parameters.seq_imbalance
    if text is None:
        return None
    if replicas * microbatches > _MOST_MICROBATCHES:
        raise UsageError(
            f"--seq-imbalance: found {replicas * microbatches} micro-batches on "
            f"{plural(replicas, 'dp rank')}, at most {_MOST_MICROBATCHES} would fit"
        )
    if text.startswith(LOGNORMAL):
        sigma = read_sigma("--seq-imbalance", text, _MOST_SIGMA)
        packed = [
            _draw_replica(sigma, parameters.seed, replica, microbatches, microbatch_size, seq)
            for replica in range(replicas)
        ]
    else:
        packed = _read_lengths(text, replicas, microbatches, microbatch_size * seq)
    different = sorted({one for of_one in packed for one in of_one}, key=lambda one: (-one.squares, one))
    if different == [PackedMicrobatch.of((seq,) * microbatch_size)]:
        return None
    index_of = {one: index for index, one in enumerate(different)}
    return Packing(tuple(different), tuple(tuple(index_of[one] for one in of_one) for of_one in packed))


# A memory search and a sweep resolve the same training many times.
@lru_cache(maxsize=1 << 12)
def _draw_replica(
    sigma: float, seed: int, replica: int, microbatches: int, microbatch_size: int, seq: int
) -> tuple[PackedMicrobatch, ...]:
    """Returns the micro-batches of a replica: its documents lie end to end, cut at the end of each sequence.

    Their mean is the length of a sequence, so that with a deviation of 0 each sequence is a document.
    """
    # Imported here: most runs draw nothing.
    from simcore.model.hashed import OF_REPLICA, hashed_lognormal

    packed = []
    document = left = 0
    for _ in range(microbatches):
        lengths = []
        for _ in range(microbatch_size):
            room = seq
            while room:
                if not left:
                    left = hashed_lognormal(sigma, seq, seed, OF_REPLICA, replica, document, is_mean=True)
                    left = max(left, 1)
                    document += 1
                lengths.append(min(room, left))
                room -= lengths[-1]
                left -= lengths[-1]
        packed.append(PackedMicrobatch.of(lengths))
    return tuple(packed)


def _read_lengths(
    path: str, replicas: int, microbatches: int, tokens: int
) -> list[tuple[PackedMicrobatch, ...]]:
    """Returns the micro-batches of each replica in a file: a line has the dp rank, the micro-batch, and
    lengths of documents; several lines of one micro-batch add up.
    """
    # Imported here: most runs read no lengths.
    from simcore.workload.opening import read_file

    def refusal(message: str, line: int | None = None) -> InputError:
        column = None if line is None else 1
        return InputError(Diagnostic("error", "sequence-lengths", message, path, line, column))

    lengths: dict[tuple[int, int], list[int]] = {}
    totals: dict[tuple[int, int], int] = {}
    for line_number, line in enumerate(read_file(path).decode("utf-8-sig", "replace").splitlines(), 1):
        content = line.partition("#")[0]
        words = content.replace(",", " ").split()
        if not words or (not lengths and content.partition(",")[0].strip().lower() in _HEADERS):
            continue
        cells = [int(word) if is_whole(word, 15) else -1 for word in words]
        if min(cells) < 0 or len(cells) < 3 or 0 in cells[2:]:
            raise refusal(
                f"found {printable(content.strip(), 40)}, expected a dp rank, a micro-batch and lengths in "
                "tokens, like 0, 3, 6000, 2192",
                line_number,
            )
        replica, microbatch, *more = cells
        for word, index, count in (("dp rank", replica, replicas), ("micro-batch", microbatch, microbatches)):
            if index >= count:
                expected = f"0 to {count - 1}" if count > 1 else "0 alone"
                raise refusal(f"found {word} {index}, expected {expected}", line_number)
        where = (replica, microbatch)
        lengths.setdefault(where, []).extend(more)
        totals[where] = totals.get(where, 0) + sum(more)
        if totals[where] > tokens:
            raise refusal(
                f"found {totals[where]} tokens in micro-batch {microbatch} of dp rank {replica}, expected at "
                f"most {tokens}",
                line_number,
            )
    for replica in range(replicas):
        for microbatch in range(microbatches):
            if (replica, microbatch) not in lengths:
                raise refusal(
                    f"found no lengths of micro-batch {microbatch} of dp rank {replica}, expected those of "
                    f"{plural(microbatches, 'micro-batch')} on {plural(replicas, 'dp rank')}"
                )
    return [
        tuple(PackedMicrobatch.of(lengths[replica, microbatch]) for microbatch in range(microbatches))
        for replica in range(replicas)
    ]
