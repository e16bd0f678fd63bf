"""The lanes of a run as columns that a page carries: packed here, unpacked by the browser."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.trace.lane_spans import KINDS, NAMELESS

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.lane_spans import Spans
    from simcore.trace.lanes import Lanes
    from simcore.trace.run import Run

# Spans of a page. Seed 002 has 82 thousand, which pack to 0.7 MB; a browser draws a million in 50 ms.
MOST_SPANS = 400_000
_NAME, _WORDS = 80, 400


class Strings:
    """Texts, each once, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._cleaned: dict[str, int] = {}

    def cleaned(self, text: str) -> int:
        """The number of a text without what a terminal or a page would obey, line by line."""
        number = self._cleaned.get(text)
        if number is None:
            lines = (printable(line, _WORDS) for line in text.split("\n"))
            number = self._cleaned[text] = self.number("\n".join(lines))
        return number

    def number(self, text: str) -> int:
        """The number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


class PackedRun:
    """What a page has of a run's timeline, once `fill` is done.

    room: the most spans, though one track is there whatever it has. ranks: whose tracks, None for all.
    left_out: tracks that found no room. values: what the script of the page gets.
    """

    def __init__(self, run: Run, strings: Strings, room: int, ranks: RankSet | None) -> None:
        self.left_out = 0
        self.values: dict[str, Any] = {}
        self._run = run
        self._strings = strings
        self._room = room
        self._ranks = ranks

    def fill(self) -> Iterator[int]:
        """Packs track by track, and gives how many spans each has."""
        lanes, ranks = self._run.lanes, self._ranks
        tracks: list[dict[str, Any]] = []
        spans = 0
        for number in lanes.facts.numbers:
            if ranks is not None and not any(rank in ranks for rank in lanes.track(number).ranks):
                continue
            size = _size(lanes, number)
            if tracks and spans + size > self._room:
                self.left_out += 1
                continue
            tracks.append(self._track(lanes, number))
            spans += size
            yield size
        self.values = {
            "name": printable(self._run.path, _WORDS),
            "length": lanes.facts.length,
            "timed": lanes.facts.timed,
            "tracks": tracks,
            "path": _path(lanes, {track["number"] for track in tracks}),
        }

    def _track(self, lanes: Lanes, number: int) -> dict[str, Any]:
        """A track and, folded in it, its streams; the first one is what its ranks do all the time."""
        streams, track = lanes.streams(number), lanes.track(number)
        alone = len(streams) == 1
        return {
            "number": number,
            "title": _one_line(track.title),
            "ranks": track.ranks.text(),
            "seams": list(track.seams),
            "lane": self._lane(lanes, number, None),
            "streams": [] if alone else [self._lane(lanes, number, stream) for stream in streams],
        }

    def _lane(self, lanes: Lanes, number: int, stream: str | None) -> dict[str, Any]:
        content, words = lanes.content(number, stream), lanes.words
        spans, drawn = content.spans, content.drawn
        ranks, put, cleaned = lanes.track(number).ranks, self._strings.number, self._strings.cleaned
        what, more, cause, to = [], [], [], []
        titles: dict[int, int] = {}
        for index in range(len(spans.start)):
            said = words.said(number, stream, index, ranks)
            op = spans.op[index]
            if op not in titles:
                # Where nothing runs there is no operation that has a name.
                name = () if spans.category[index] in NAMELESS else lanes.name(number, op)
                titles[op] = put(printable(" ".join(filter(None, name)), _NAME))
            what.append(put(printable(said.what, _WORDS)))
            asides = (
                said.more, *said.itself, words.volume(number, stream, index),
                words.aside(number, stream, index, True, None),
            )  # fmt: skip
            more.append(cleaned("\n".join(filter(None, asides))))
            steps = words.walk(number, stream, index, None, -1)
            if steps:
                first = steps[0]
                cause.append(cleaned(first.words))
                to += [first.number, -1 if first.stream is None else put(first.stream), first.start_ns]
            else:
                cause.append(-1)
                to += [-1, -1, -1]
        parts = None
        if drawn is not spans:
            # Inside of its spans other things run: they have the colours.
            parts = {
                "start": _differences(drawn.start), "length": _lengths(drawn), "kind": list(drawn.category)
            }  # fmt: skip
        return {
            "parts": parts,
            "title": "" if stream is None else _one_line(lanes.streams(number)[stream]),
            "stream": -1 if stream is None else put(stream),
            "start": _differences(spans.start),
            "length": _lengths(spans),
            "kind": list(spans.category),
            "name": [titles[op] for op in spans.op],
            "what": what,
            "more": more,
            "cause": cause,
            "to_track": to[0::3],
            "to_stream": to[1::3],
            "to_start": _differences(to[2::3]),
        }


def _one_line(title: str) -> str:
    """The name of a lane without what aligns it on a screen of cells."""
    return " ".join(printable(title, _NAME).split())


def _size(lanes: Lanes, number: int) -> int:
    """Spans of a track: its own lane and its streams."""
    return sum(len(lanes.spans(number, stream).start) for stream in (None, *lanes.streams(number)))


def _differences(column: Sequence[int]) -> list[int]:
    """Each number less the one before it: small ones pack well."""
    differences, before = [], 0
    for number in column:
        differences.append(number - before)
        before = number
    return differences


def _lengths(spans: Spans) -> list[int]:
    return [end - start for start, end in zip(spans.start, spans.end, strict=True)]


def _path(lanes: Lanes, tracks: set[int]) -> dict[str, Any] | None:
    """The critical path where it runs through the tracks of the page; None without a common time."""
    if not lanes.facts.concurrent:
        return None
    kept = [segment for segment in lanes.path() if segment[2] in tracks]
    return {
        "start": _differences([leg[0] for leg in kept]),
        "length": [leg[1] - leg[0] for leg in kept],
        "track": [leg[2] for leg in kept],
    }


def packed(values: dict[str, Any]) -> str:
    """Values as JSON, deflated, in base64."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def timelines(runs: Sequence[PackedRun], strings: Strings) -> dict[str, Any]:
    """What the page's script begins with."""
    return {"kinds": list(KINDS), "strings": strings.texts, "runs": [run.values for run in runs]}
