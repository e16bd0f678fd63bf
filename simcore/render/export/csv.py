"""A timeline of any source as comma-separated values: one line for each span, equal ranks in one line; of
memory snapshots one line for each allocation.

Written by RFC 4180, with a header line, in UTF-8, lines ended by a newline alone. A name that a spreadsheet
would read as a formula (it starts with = + - @) has an apostrophe in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from simcore.render.export.format import Export, Progress, RankFile, Request
from simcore.render.export.span_selection import select_spans
from simcore.render.export.spans import (
    NO_END,
    NO_START,
    Fact,
    TrackSpans,
    build_cached,
    encode_in_chunks,
    ranks_in_words,
)
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.render.export.held_memory import HeldMemory

COLUMNS = (
    "ranks", "rank_count", "stage", "stream", "phase", "kind", "layer", "row", "line", "microbatch",
    "start_ns", "end_ns", "duration_ns", "bytes", "group", "group_size", "blocking", "other_stage",
)  # fmt: skip
ALLOCATION_COLUMNS = (
    "rank", "device", "address", "bytes", "start_ns", "end_ns", "free_ns", "segment", "mark", "site",
    "frames",
)  # fmt: skip
_UNSAFE = re.compile(r'^[=+\-@\uff1d\uff0b\uff0d\uff20]|[,"\n\r]').search
# A spreadsheet takes full-width ones for the same.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def export(request: Request) -> Export:
    """Returns the spans of the requested ranks, by default of all: equal ranks share their lines."""
    if request.opened.format == "memory-snapshot":
        return _allocation_export(request)
    spans = select_spans(request, folded=False)
    if request.per_rank:
        progress = Progress(spans.total)
        files = (
            RankFile(f"rank-{rank}.csv", _csv_chunks([(track, [rank])], progress))
            for track in spans.tracks
            for rank in track.ranks
        )
        return Export((), spans.what, spans.diagnostics, progress, files)
    progress = Progress(sum(map(len, spans.tracks)))
    chunks = _csv_chunks([(track, track.ranks) for track in spans.tracks], progress)
    return Export(chunks, spans.what + spans.in_one_line, spans.diagnostics, progress)


def _allocation_export(request: Request) -> Export:
    from simcore.render.export.held_memory import select_held_memory

    memory = select_held_memory(request)
    progress = Progress(memory.count())

    def chunks() -> Iterator[bytes]:
        yield (",".join(ALLOCATION_COLUMNS) + "\n").encode()
        for track_id in memory.track_ids:
            for chunk, count in encode_in_chunks(_allocation_lines(memory, track_id)):
                yield chunk
                progress.written_count += count

    return Export(chunks(), f"{memory.devices}, {plural(progress.total, 'allocation')}", (), progress)


def _allocation_lines(memory: HeldMemory, track_id: int) -> Iterator[str]:
    device = memory.device(track_id)
    first = f"{_format_number(device.rank)},{device.device}"
    for one in memory.allocations(track_id):
        times = ",".join(map(_format_number, (one.start, one.end, one.free)))
        segment = "" if one.segment is None else f"{one.segment:#x}"
        texts = ",".join(map(field, (one.mark, one.site, one.frames)))
        yield f"{first},{one.address:#x},{one.bytes},{times},{segment},{texts}\n"


def _format_number(value: int | None) -> str:
    return "" if value is None else str(value)


def field(text: str) -> str:
    """Returns one field, from text that has been made safe: quoted where needed, and never a formula."""
    if not _UNSAFE(text):
        return text
    if text.startswith(_FORMULA):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if _UNSAFE(text) else text


_HEAD = (",".join(COLUMNS) + "\n").encode()


def _csv_chunks(tracks: Iterable[tuple[TrackSpans, Sequence[int]]], progress: Progress) -> Iterator[bytes]:
    yield _HEAD
    for track, ranks in tracks:
        stage = "" if track.stage is None else track.stage
        rank_columns = f"{field(ranks_in_words(ranks))},{len(ranks)},{stage}"
        for chunk, count in encode_in_chunks(_lines(track, rank_columns)):
            yield chunk
            progress.written_count += count
        # Received transfers are the spans of their senders, written again.
        for chunk, _ in encode_in_chunks(_received_lines(track, rank_columns)):
            yield chunk


def _lines(track: TrackSpans, rank_columns: str) -> Iterator[str]:
    line_ends = build_cached(track.kinds(), lambda span: _ends(track.fact(span), rank_columns))
    return map(_line, line_ends, track.microbatch, track.start, track.end)


def _received_lines(track: TrackSpans, rank_columns: str) -> Iterator[str]:
    for one in track.received():
        yield _line(_ends(one.fact, rank_columns), one.microbatch, one.start, one.end)


# The parts of a line before the micro-batch and after the duration; how its times are known, see `Fact`.
_Ends = tuple[str, str, str]


def _line(ends: _Ends, batch: int, start: int, end: int) -> str:
    """Returns a line. batch: its micro-batch, -1 for none. start, end: ns; times that were not recorded are
    empty.
    """
    first, last, time_source = ends
    batch_text = batch if batch >= 0 else ""
    if time_source in NO_END:
        return f"{first}{batch_text},{'' if time_source in NO_START else start},,{last}"
    return f"{first}{batch_text},{start},{end},{end - start}{last}"


def _ends(fact: Fact, rank_columns: str) -> _Ends:
    """Returns the ends of a line. Unknown numbers are empty."""
    words = (fact.stream, fact.phase, fact.kind, fact.layer)
    row_and_line = f"{fact.row},{fact.line}" if fact.row >= 0 else ","
    first = f"{rank_columns},{','.join(map(field, words))},{row_and_line},"
    figures = (fact.bytes, field(fact.group), fact.members or "", fact.blocking, fact.other_stage)
    last = "".join([f",{'' if figure == -1 else figure}" for figure in figures]) + "\n"
    return first, last, fact.time_source
