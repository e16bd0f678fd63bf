"""What a run understands of a query: a word that no span of it is, is looked for in its names."""

from __future__ import annotations

from dataclasses import replace

from tui.timeline.moves import Moves
from tui.timeline.query import Query, Word
from tui.timeline.spans import LaneSource


def understood(query: Query, source: LaneSource, moves: Moves) -> Query:
    """The query with such words in names: `ep` finds `ep_allreduce` where nothing is of group ep."""
    words = tuple(_understood(word, source, moves) for word in query.words)
    return query if words == query.words else replace(query, words=words)


def _understood(word: Word, source: LaneSource, moves: Moves) -> Word:
    named = Word((), "", word.whole)
    # Lanes are looked through only for a word that a name has.
    if not word.whole or not any(map(named.is_in, moves.names())) or _occurs(word, source):
        return word
    return named


def _occurs(word: Word, source: LaneSource) -> bool:
    alone = Query(words=(word,))
    for number in source.numbers:
        if 1 in source.lane(number).matches(alone):
            return True
    return any(1 in lane.matches(alone) for number in source.numbers for lane in source.streams(number))
