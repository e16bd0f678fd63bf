"""Sets of ranks, stored without listing them: a stage of a million ranks is one block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from simcore.diagnostics import UsageError, printable
from simcore.records import NamedTuple

# The most ranks that are listed by a text.
_MOST_STATED = 10**6
_RANKS = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?(?:\+([0-9]{1,7})\*([0-9]{1,7}))?")
# Listing so many ranks takes a millisecond.
_MAX_LISTED = 4096


def ranks_of_domain(gpus: int, world: int) -> int:
    """Returns how many ranks of a job of `world` ranks are in each NVLink domain of `gpus` GPUs.

    Schedulers place jobs on racks of 72 in multiples of 64, so that groups of 2, 4, ... 64 lie in one rack
    each: the result is the largest power of two in the domain, unless the job fills whole domains and no
    whole number of such parts.
    """
    part = 1 << (gpus.bit_length() - 1)
    if world <= gpus or (world % gpus == 0 and world % part):
        return min(gpus, world)
    return part


class Block(NamedTuple):
    """Ranks first..last, and the same ranks shifted: `repeats` times in all, each `stride` further on."""

    first: int
    """The lowest rank."""
    last: int
    """The highest rank of the first repeat."""
    stride: int = 0
    """The distance from one repeat to the next, in ranks."""
    repeats: int = 1
    """How often the ranks are repeated, the first time included."""


class RankSet:
    """An immutable set of ranks in ascending order of their blocks."""

    __slots__ = ("_size", "blocks")

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        self._size = sum((block.last - block.first + 1) * block.repeats for block in self.blocks)

    @classmethod
    def of(cls, ranks: Iterable[int]) -> RankSet:
        """Returns the set of `ranks`, which may come in any order; equal steps become strided blocks."""
        runs: list[list[int]] = []
        for rank in sorted(set(ranks)):
            if runs and rank == runs[-1][1] + 1:
                runs[-1][1] = rank
            else:
                runs.append([rank, rank])
        blocks: list[Block] = []
        for first, last in runs:
            if blocks:
                before = blocks[-1]
                stride = first - (before.first + before.stride * (before.repeats - 1))
                if last - first == before.last - before.first and before.stride in (0, stride):
                    blocks[-1] = Block(before.first, before.last, stride, before.repeats + 1)
                    continue
            blocks.append(Block(first, last))
        return cls(_split_pairs(blocks))

    @classmethod
    def merge_blocks(cls, blocks: Iterable[Block]) -> RankSet:
        """Returns the set of disjoint `blocks`, in the form that `of` gives it.

        Ranks are listed up to 4096; more stay in their blocks.
        """
        merged = cls(sorted(blocks))
        return cls.of(merged) if len(merged) <= _MAX_LISTED else merged

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        for first, last, stride, repeats in self.blocks:
            for step in range(repeats):
                yield from range(first + step * stride, last + step * stride + 1)

    def __contains__(self, rank: int) -> bool:
        for first, last, stride, repeats in self.blocks:
            if first <= rank <= last + stride * (repeats - 1):
                offset = (rank - first) % stride if stride else rank - first
                if offset <= last - first:
                    return True
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankSet) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((self._size, self.first))

    @property
    def first(self) -> int:
        """The lowest rank."""
        return self.blocks[0].first

    @property
    def last(self) -> int:
        """The highest rank."""
        return max(block.last + block.stride * (block.repeats - 1) for block in self.blocks)

    def text(self) -> str:
        """Returns the ranks as JSON prints them: `0-63`, `3`, `0-7+64*16` (a block, its stride, its
        repeats).
        """
        return ",".join(
            (f"{first}-{last}" if last > first else str(first))
            + (f"+{stride}*{repeats}" if repeats > 1 else "")
            for first, last, stride, repeats in self.blocks
        )

    def words(self) -> str:
        """Returns the ranks as sentences name them: `0-63`; of a pattern its ends: `10-11, 26-27 ...
        58-59`.
        """
        parts = []
        for first, last, stride, repeats in self.blocks:
            runs = [(first + stride * step, last + stride * step) for step in (0, 1, repeats - 1)]
            run_texts = [f"{begin}-{end}" if end > begin else str(begin) for begin, end in runs]
            between = ", " if repeats == 3 else " ... "
            parts.append(
                f"{run_texts[0]}, {run_texts[1]}{between}{run_texts[2]}" if repeats > 1 else run_texts[0]
            )
        return ",".join(parts)

    def of_world(self, world: int) -> str:
        """Returns `all ranks` of a world of several ranks, else `rank 3` or `ranks 0-63`."""
        if 1 < len(self) == world:
            return "all ranks"
        text = self.words()
        return f"rank {text}" if len(self) == 1 else f"ranks {text}"

    def __repr__(self) -> str:
        return f"RankSet({self.text()!r})"


def _split_pairs(blocks: list[Block]) -> list[Block]:
    """Returns the blocks with pairs split: `3, 5` reads better than `3+2*2`; a pattern has three ranks."""
    plain: list[Block] = []
    for block in blocks:
        if block.repeats == 2:
            plain += [
                Block(block.first, block.last),
                Block(block.first + block.stride, block.last + block.stride),
            ]
        else:
            plain.append(block)
    return plain


def describe_position(position: tuple[int, int, int]) -> str:
    """Returns the position of a rank in words, `stage 3, dp 0, tp 1`. position: (tp, dp, stage)."""
    tp, dp, stage = position
    return f"stage {stage}, dp {dp}, tp {tp}"


def parse_ranks(option: str, text: str) -> RankSet:
    """Returns `0-7,64` as ranks, also blocks as reports print them (`0-7+64*16`). Raises UsageError."""
    ranks: set[int] = set()
    for item in text.split(","):
        match_ = _RANKS.fullmatch(item)
        if match_ is None:
            raise UsageError(
                f"{option} {printable(text, 60)}: ranks are expected, for example 0-7,64 "
                f"(found `{printable(item, 40)}`)"
            )
        first, last = int(match_[1]), int(match_[2] or match_[1])
        stride, repeats = int(match_[3] or 0), int(match_[4] or 1)
        if last < first or last + stride * (repeats - 1) >= _MOST_STATED:
            raise UsageError(
                f"{option} {printable(text, 60)}: `{printable(item, 40)}` is not ascending "
                f"from 0 to {_MOST_STATED - 1}"
            )
        for step in range(repeats):
            ranks.update(range(first + step * stride, last + step * stride + 1))
            if len(ranks) == _MOST_STATED:
                break
    return RankSet.of(ranks)
