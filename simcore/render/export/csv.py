"""A timeline of any source as comma-separated values: one line a span, equal ranks in one line.

Written as RFC 4180 says, with a header line, in UTF-8, lines ended by a newline alone. A name that a
spreadsheet would take for a formula (it begins with = + - @) has an apostrophe in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from simcore.render.export.format import Export, Progress, RankFile, Request
from simcore.render.export.spans import (
    NO_END,
    NO_START,
    Fact,
    TrackSpans,
    in_pieces,
    made_once,
    ranks_in_words,
)
from simcore.render.export.told import told

COLUMNS = (
    "ranks", "rank_count", "stage", "stream", "phase", "kind", "layer", "row", "line", "microbatch",
    "start_ns", "end_ns", "duration_ns", "bytes", "group", "group_size", "blocking", "other_stage",
)  # fmt: skip
_UNSAFE = re.compile(r'^[=+\-@]|[,"\n\r]').search
_FORMULA = ("=", "+", "-", "@")


def export(request: Request) -> Export:
    """The spans of the ranks that are asked for, by itself of all: equal ranks share their lines."""
    spans = told(request, folded=False)
    if request.per_rank:
        progress = Progress(spans.total)
        files = (
            RankFile(f"rank-{rank}.csv", _pieces([(track, [rank])], progress))
            for track in spans.tracks
            for rank in track.ranks
        )
        return Export((), spans.what, spans.said, progress, files)
    progress = Progress(sum(map(len, spans.tracks)))
    pieces = _pieces([(track, track.ranks) for track in spans.tracks], progress)
    return Export(pieces, spans.what + spans.in_one_line, spans.said, progress)


def field(text: str) -> str:
    """One field, from text that has been made safe: quoted where it must be, and no formula."""
    if not _UNSAFE(text):
        return text
    if text.startswith(_FORMULA):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if _UNSAFE(text) else text


_HEAD = (",".join(COLUMNS) + "\n").encode()


def _pieces(tracks: Iterable[tuple[TrackSpans, Sequence[int]]], progress: Progress) -> Iterator[bytes]:
    yield _HEAD
    for track, ranks in tracks:
        stage = "" if track.stage is None else track.stage
        whose = f"{field(ranks_in_words(ranks))},{len(ranks)},{stage}"
        for piece, count in in_pieces(_lines(track, whose)):
            yield piece
            progress.done += count
        # Received transfers are the senders' spans, said once more.
        for piece, _ in in_pieces(_received_lines(track, whose)):
            yield piece


def _lines(track: TrackSpans, whose: str) -> Iterator[str]:
    every = made_once(track.kinds(), lambda span: _ends(track.fact(span), whose))
    return map(_line, every, track.microbatch, track.start, track.end)


def _received_lines(track: TrackSpans, whose: str) -> Iterator[str]:
    for one in track.received():
        yield _line(_ends(one.fact, whose), one.microbatch, one.start, one.end)


# Of a line what is before the micro-batch, and behind the duration; how its times are known, see `Fact`.
_Ends = tuple[str, str, str]


def _line(ends: _Ends, batch: int, start: int, end: int) -> str:
    """A line. batch: its micro-batch, -1 of none. start, end: ns; what was not recorded is empty."""
    first, last, known = ends
    where = batch if batch >= 0 else ""
    if known in NO_END:
        return f"{first}{where},{'' if known in NO_START else start},,{last}"
    return f"{first}{where},{start},{end},{end - start}{last}"


def _ends(fact: Fact, whose: str) -> _Ends:
    """The ends of a line. Unknown numbers are empty."""
    row_and_line = f"{fact.row},{fact.line}" if fact.row >= 0 else ","
    first = f"{whose},{field(fact.stream)},{fact.phase},{fact.kind},{field(fact.layer)},{row_and_line},"
    numbers = (fact.bytes, field(fact.group), fact.members or "", fact.blocking, fact.other_stage)
    last = "".join([f",{'' if number == -1 else number}" for number in numbers]) + "\n"
    return first, last, fact.known
