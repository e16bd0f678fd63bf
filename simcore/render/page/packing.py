"""The lanes of a run as columns of a page: packed here, unpacked by the browser."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.trace.lane_spans import KINDS, NAMELESS, TIME

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.lane_spans import Spans
    from simcore.trace.lanes import Lanes
    from simcore.trace.run import Run

# The most spans of a page. Seed 002 has 82 thousand, which pack to 0.7 MB; a browser draws a million in 50
# ms.
MOST_SPANS = 400_000
_NAME, _WORDS = 80, 400


class Strings:
    """Texts, each once, with its index."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._indices: dict[str, int] = {}
        self._printable_indices: dict[str, int] = {}

    def index_of_printable(self, text: str) -> int:
        """Returns the index of a text without control characters, line by line."""
        index = self._printable_indices.get(text)
        if index is None:
            lines = (printable(line, _WORDS) for line in text.split("\n"))
            index = self._printable_indices[text] = self.index_of("\n".join(lines))
        return index

    def index_of(self, text: str) -> int:
        """Returns the index of a text."""
        index = self._indices.get(text)
        if index is None:
            index = self._indices[text] = len(self.texts)
            self.texts.append(text)
        return index


class PackedRun:
    """The timeline of a run on a page, complete once `fill` has ended.

    room: the most spans, though one track is packed in any case. ranks: whose tracks are packed; None: all.
    left_out: how many tracks found no room. values: the data for the script of the page.
    """

    def __init__(self, run: Run, strings: Strings, room: int, ranks: RankSet | None) -> None:
        self.left_out = 0
        self.values: dict[str, Any] = {}
        self._run = run
        self._strings = strings
        self._room = room
        self._ranks = ranks

    def fill(self) -> Iterator[int]:
        """Packs track by track, and yields how many spans each has."""
        lanes, ranks = self._run.lanes, self._ranks
        tracks: list[dict[str, Any]] = []
        spans = 0
        for track_id in lanes.facts.track_ids:
            if ranks is not None and not any(rank in ranks for rank in lanes.track(track_id).ranks):
                continue
            size = _count_spans(lanes, track_id)
            if tracks and spans + size > self._room:
                self.left_out += 1
                continue
            tracks.append(self._pack_track(lanes, track_id))
            spans += size
            yield size
        self.values = {
            "name": printable(self._run.path, _WORDS),
            "length": lanes.facts.length,
            "timed": lanes.facts.axis.units == TIME.units,
            "tracks": tracks,
            "path": _pack_path(lanes, {track["number"] for track in tracks}),
        }

    def _pack_track(self, lanes: Lanes, track_id: int) -> dict[str, Any]:
        """Returns a track with its streams collapsed; its own lane is what its ranks do all the time."""
        streams, track = lanes.streams(track_id), lanes.track(track_id)
        alone = len(streams) == 1
        return {
            "number": track_id,
            "title": _one_line(track.title),
            "ranks": track.ranks.text(),
            "seams": list(track.seams),
            "lane": self._pack_lane(lanes, track_id, None),
            "streams": [] if alone else [self._pack_lane(lanes, track_id, stream) for stream in streams],
        }

    def _pack_lane(self, lanes: Lanes, track_id: int, stream: str | None) -> dict[str, Any]:
        content, words = lanes.content(track_id, stream), lanes.words
        spans, colour_spans = content.spans, content.cell_spans
        ranks, index_of, index_of_printable = (
            lanes.track(track_id).ranks,
            self._strings.index_of,
            self._strings.index_of_printable,
        )
        summaries, details, causes, targets = [], [], [], []
        titles: dict[int, int] = {}
        for index in range(len(spans.start)):
            summary = words.summarize(track_id, stream, index, ranks)
            op = spans.op[index]
            if op not in titles:
                # Idle spans have no operation, and so no name.
                name = () if spans.category[index] in NAMELESS else lanes.span_name(track_id, op)
                titles[op] = index_of(printable(" ".join(filter(None, name)), _NAME))
            summaries.append(index_of(printable(summary.description, _WORDS)))
            asides = (
                summary.details, *summary.partner, words.volume(track_id, stream, index),
                words.side_note(track_id, stream, index, True, None),
            )  # fmt: skip
            details.append(index_of_printable("\n".join(filter(None, asides))))
            steps = words.find_steps(track_id, stream, index, None, -1)
            if steps:
                first = steps[0]
                causes.append(index_of_printable(first.words))
                targets += [
                    first.track_id,
                    -1 if first.stream is None else index_of(first.stream),
                    first.start_ns,
                ]
            else:
                causes.append(-1)
                targets += [-1, -1, -1]
        parts = None
        if colour_spans is not spans:
            # Other spans run inside these: they have the colours.
            parts = {
                "start": _differences(colour_spans.start),
                "length": _lengths(colour_spans),
                "kind": list(colour_spans.category),
            }
        return {
            "parts": parts,
            "title": "" if stream is None else _one_line(lanes.streams(track_id)[stream]),
            "stream": -1 if stream is None else index_of(stream),
            "start": _differences(spans.start),
            "length": _lengths(spans),
            "kind": list(spans.category),
            "name": [titles[op] for op in spans.op],
            "what": summaries,
            "more": details,
            "cause": causes,
            "to_track": targets[0::3],
            "to_stream": targets[1::3],
            "to_start": _differences(targets[2::3]),
        }


def _one_line(title: str) -> str:
    """Returns the name of a lane without the blanks that align it on a screen of cells."""
    return " ".join(printable(title, _NAME).split())


def _count_spans(lanes: Lanes, track_id: int) -> int:
    """Returns the number of spans of a track: its own lane and its streams."""
    return sum(len(lanes.spans(track_id, stream).start) for stream in (None, *lanes.streams(track_id)))


def _differences(column: Sequence[int]) -> list[int]:
    """Returns each number less the one before it: small numbers pack well."""
    differences, before = [], 0
    for value in column:
        differences.append(value - before)
        before = value
    return differences


def _lengths(spans: Spans) -> list[int]:
    return [end - start for start, end in zip(spans.start, spans.end, strict=True)]


def _pack_path(lanes: Lanes, tracks: set[int]) -> dict[str, Any] | None:
    """Returns the critical path where it runs through the tracks of the page; None without a common time."""
    if not lanes.facts.concurrent:
        return None
    visible_segments = [segment for segment in lanes.path() if segment[2] in tracks]
    return {
        "start": _differences([path_segment[0] for path_segment in visible_segments]),
        "length": [path_segment[1] - path_segment[0] for path_segment in visible_segments],
        "track": [path_segment[2] for path_segment in visible_segments],
    }


def pack_json(values: dict[str, Any]) -> str:
    """Returns values as JSON, deflated, in base64."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def page_data(runs: Sequence[PackedRun], strings: Strings) -> dict[str, Any]:
    """Returns the data that the page's script starts with."""
    return {"kinds": list(KINDS), "strings": strings.texts, "runs": [run.values for run in runs]}
