"""What a run understands of a query: a word that no span of it is, is looked for in its names."""

from __future__ import annotations

from dataclasses import replace

from tui.timeline.lanes import LaneSource
from tui.timeline.query import Query, Word


def understood(query: Query, source: LaneSource) -> Query:
    """The query with such words in names: `ep` finds `ep_allreduce` where nothing is of group ep."""
    words = tuple(_understood(word, source) for word in query.words)
    return query if words == query.words else replace(query, words=words)


def missing(source: LaneSource, query: Query) -> str:
    """Which rank, stage or micro-batch of a query the run does not have; "" if it has all."""
    return source.of.missing(query.rank, query.stage, query.microbatch)


def _understood(word: Word, source: LaneSource) -> Word:
    named = Word((), "", word.whole)
    # Lanes are looked through only for a word that a name has.
    if not word.whole or not any(map(named.is_in, source.of.names())) or _occurs(word, source):
        return word
    return named


def _occurs(word: Word, source: LaneSource) -> bool:
    alone = Query(words=(word,))
    for number in source.numbers:
        if 1 in source.lane(number).matches(alone):
            return True
    return any(1 in lane.matches(alone) for number in source.numbers for lane in source.streams(number))
