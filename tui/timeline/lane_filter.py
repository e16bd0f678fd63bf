"""Which lanes the words of a filter mean: ranks, or words of a title."""

from __future__ import annotations

import re

from tui.timeline.spans import LaneSource

_RANK_LIST = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", re.ASCII)


def matching(source: LaneSource, text: str) -> set[int]:
    """The groups of ranks that a filter's words mean."""
    if _RANK_LIST.fullmatch(text):
        found = set()
        for part in text.split(","):
            first, _, last = part.partition("-")
            found |= _with_ranks(source, range(int(first), int(last or first) + 1))
        return found
    # `stage 1` is not stage 10: a number at the end is a whole one.
    ending = r"(?!\d)" if text[-1:].isdigit() else ""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in text.split()) + ending, re.IGNORECASE)
    return {
        number for number in source.numbers
        if any(pattern.search(words) for words in (source.lane(number).title, *source.headings(number)))
    }  # fmt: skip


def _with_ranks(source: LaneSource, wanted: range) -> set[int]:
    """The groups that have one of these ranks; the shorter of the two is gone through."""
    if len(wanted) <= sum(map(source.count, source.numbers)):
        return {number for number in map(source.number_of, wanted) if number is not None}
    return {number for number in source.numbers if any(rank in wanted for rank in source.ranks(number))}
