"""Which lanes the words of a filter mean: ranks, or words of a title."""

from __future__ import annotations

import re

from tui.timeline.lanes import LaneSource

_LIST = r"(\d{1,9}(?:-\d{1,9})?(?:\s*,\s*\d{1,9}(?:-\d{1,9})?)*)"
_RANK_WORDS = re.compile(rf"(?:ranks?\s+)?{_LIST}", re.ASCII | re.IGNORECASE)
_STAGE_WORDS = re.compile(rf"stages?\s+{_LIST}", re.ASCII | re.IGNORECASE)
# No pipeline has more stages than ranks that are simulated.
_MOST_STAGES = 100_000


def matching(source: LaneSource, text: str) -> set[int]:
    """The groups of ranks that a filter's words mean."""
    numbers = _RANK_WORDS.fullmatch(text)
    if numbers is not None:
        found = set()
        for part in numbers[1].replace(" ", "").split(","):
            first, _, last = part.partition("-")
            found |= _with_ranks(source, range(int(first), int(last or first) + 1))
        return found
    stages = _STAGE_WORDS.fullmatch(text)
    if stages is not None:
        wanted = {
            f"stage {stage}" for part in stages[1].replace(" ", "").split(",") for stage in _stages(part)
        }
        return {number for number in source.numbers if _stage_words(source, number) & wanted}
    # `stage 1` is not stage 10: a number at the end is a whole one.
    ending = r"(?!\d)" if text[-1:].isdigit() else ""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in text.split()) + ending, re.IGNORECASE)
    return {
        number for number in source.numbers
        if any(pattern.search(words) for words in (source.lane(number).title, *source.of.headings(number)))
    }  # fmt: skip


def _stages(part: str) -> range:
    """The stages of a part of a list: `3`, `2-4`."""
    first, _, last = part.partition("-")
    return range(int(first), min(int(last or first), int(first) + _MOST_STAGES) + 1)


def _stage_words(source: LaneSource, number: int) -> set[str]:
    """`stage 5` where a group of ranks is of it: from its headings, or from the title of its lane."""
    return {" ".join(words.split()) for words in (*source.of.headings(number), source.lane(number).title)}


def _with_ranks(source: LaneSource, wanted: range) -> set[int]:
    """The groups that have one of these ranks; the shorter of the two is gone through."""
    if len(wanted) <= sum(map(source.count, source.numbers)):
        return {number for number in map(source.of.number_of, wanted) if number is not None}
    return {number for number in source.numbers if any(rank in wanted for rank in source.of.ranks(number))}
