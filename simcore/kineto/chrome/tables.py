"""Makes the table of spans of a Chrome trace: ranks, kinds, groups and steps of its events."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import sub

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.kineto.chrome.events import NONE, ChromeSpans, read_spans
from simcore.kineto.chrome.ranks import Position, RankPositions, find_ranks
from simcore.kineto.chrome.rules import (
    IGNORED,
    STEP,
    WAITING,
    Meaning,
    Rule,
    Rules,
    communicates,
    format_map,
    recorded_meaning,
)
from simcore.kineto.damage import Damage
from simcore.kineto.events import KinetoFile
from simcore.kineto.recording import Recording, refuse_devices
from simcore.kineto.span_tables import recordings_of
from simcore.kineto.values import ranks_of, whole
from simcore.kineto.vocabulary import category_of_group_name
from simcore.measured.selecting import select_ints, select_items
from simcore.units import plural
from simcore.workload.spans import KINDS, TRANSFERS, UNSTATED, SpanGroup, SpanTable

FORM = "chrome"
_LISTED = 4
_RANKS = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?(?:,\s*|$)")
_MOST_MEMBERS, _MOST_STEP = 1 << 20, 10**12 - 1
_SENDS_TO = {"forward": 1, "backward": -1}
_AXIS_OF = {"tp": 0, "dp": 1, "pp": 2}


def read_chrome(
    path: str,
    file: KinetoFile,
    damage: Damage,
    own_rules: Sequence[Rule] = (),
    on_progress: Callable[[float], None] | None = None,
) -> tuple[list[Recording], list[Diagnostic]]:
    """Returns (a recording of each rank of a Chrome trace, diagnostics). own_rules: of `--trace-map`."""
    spans = read_spans(path, file, damage, on_progress)
    maker = _Maker(path, spans, own_rules, _exported_step(file), _is_exported(file))
    del spans
    table, is_rank_stated = maker.table(), maker.rank_positions.is_stated
    diagnostics = [*damage.diagnostics(), *maker.diagnostics]
    del maker
    refuse_devices(path, len({*table.rank}))
    recordings, more = recordings_of(path, FORM, table)
    for recording in recordings:
        recording.is_truncated = damage.is_cut
    if len(recordings) == 1:
        # Its clock is its own; which rank it is of, its file may say.
        recordings[0].on_one_clock = False
        if not is_rank_stated:
            recordings[0].rank = None
    return recordings, [*diagnostics, *more]


def starter_map(path: str, file: KinetoFile, damage: Damage) -> str:
    """Returns a trace map with a rule for each name of the file's spans, those that no rule knows first."""
    maker = _Maker(path, read_spans(path, file, damage), ())
    spans = maker.spans
    counts = Counter(zip(spans.name, spans.cat, strict=True))
    first: dict[tuple[str, str], int] = {}
    for span, key in enumerate(zip(spans.name, spans.cat, strict=True)):
        first.setdefault(key, span)
    names = [
        (*key, maker.thread_name(span), maker.meanings[span], counts[key]) for key, span in first.items()
    ]
    names.sort(key=lambda one: one[3].is_known)
    return format_map(names[:1000])


def _is_exported(file: KinetoFile) -> bool:
    """Returns whether a file is an export of wltui."""
    return isinstance(file.otherData, dict) and "wltui" in file.otherData


def _exported_step(file: KinetoFile) -> int | None:
    """Returns the step of which all of a file's spans are, as exports of wltui state it; None for others."""
    step = whole(file.otherData.get("step")) if _is_exported(file) else None
    return step if step is not None and 0 <= step <= _MOST_STEP else None


class _Maker:
    def __init__(
        self,
        path: str,
        spans: ChromeSpans,
        own_rules: Sequence[Rule],
        only_step: int | None = None,
        is_exported: bool = False,
    ) -> None:
        """only_step: of which all spans are. is_exported: whether spans state their steps, if any."""
        self.path, self.spans, self.only_step, self.is_exported = path, spans, only_step, is_exported
        self.diagnostics: list[Diagnostic] = []
        if not len(spans):
            message = "found no event with a time, expected spans: complete events, or begins and ends"
            raise InputError(Diagnostic("error", "no-events", message, path))
        rules = Rules(own_rules)
        names = self.thread_names = [spans.thread_names.get(key, "") for key in spans.threads]
        threads = map(names.__getitem__, spans.thread)
        keys = zip(spans.name, spans.cat, threads, strict=True)
        self.meanings: list[Meaning] = [*map(rules.__getitem__, keys)]
        for span in spans.texts:
            self.meanings[span] = self._recorded(span) or self.meanings[span]
        # Each once: most passes over all spans are for what few of them say, or none.
        self.distinct = {id(meaning): meaning for meaning in self.meanings}.values()
        self.rank_positions: RankPositions = find_ranks(spans, self.meanings)
        self.rank = [self.rank_positions.threads[thread].rank for thread in spans.thread]
        self.seat = {position: rank for rank, position in self.rank_positions.positions.items()}
        self.groups: dict[SpanGroup, int] = {}
        self.group_of: dict[tuple[int, str, str, int], int] = {}
        self.has_chunks = len({*spans.values["chunk"]} - {NONE}) > 1

    def _recorded(self, span: int) -> Meaning | None:
        texts = self.spans.texts.get(span)
        if texts is None or "known" not in texts:
            return None
        return recorded_meaning(self.spans.cat[span], texts.get("collective"))

    def thread_name(self, span: int) -> str:
        """Returns the name of a span's thread, "" for none."""
        return self.thread_names[self.spans.thread[span]]

    def table(self) -> SpanTable:
        """Returns the table of the spans that are shown."""
        spans, meanings = self.spans, self.meanings
        scopes = self._find_scopes()
        steps, windows = self._find_steps()
        kept_spans: range | list[int] = range(len(spans))
        if scopes or any(meaning.kind in (STEP, WAITING, IGNORED) for meaning in self.distinct):
            kept_spans = [
                span for span, meaning in enumerate(meanings)
                if meaning.kind not in (STEP, WAITING, IGNORED) and span not in scopes
            ]  # fmt: skip
        if not kept_spans:
            message = "found no span of work, expected complete events, or begins and ends, that are no steps"
            raise InputError(Diagnostic("error", "no-events", message, self.path))
        starts = self._find_arrivals(kept_spans)
        table = SpanTable(line_noun="event", windows=windows)
        table.stages, table.positions = self.rank_positions.stages, self.rank_positions.positions
        streams: dict[str, int] = {}
        base = min(0, min(starts), *(first for first, _ in windows.values()))
        kind_ids = {kind: KINDS.index(kind) for kind in KINDS}
        kept_meanings = select_items(meanings, kept_spans)
        threads = select_ints(spans.thread, kept_spans)
        stream_of = {
            thread: streams.setdefault(self.rank_positions.threads[thread].stream, len(streams))
            for thread in dict.fromkeys(threads)
        }
        table.rank = array("q", select_items(self.rank, kept_spans))
        table.start, table.end = starts, select_ints(spans.end, kept_spans)
        if base:
            table.start, table.end = (
                array("q", [time - base for time in times]) for times in (table.start, table.end)
            )
        table.name = select_items(spans.name, kept_spans)
        table.kind = bytearray([kind_ids[meaning.kind] for meaning in kept_meanings])
        table.stream = array("i", map(stream_of.__getitem__, threads))
        communicating = {meaning.kind for meaning in self.distinct if communicates(meaning.kind)}
        table.group = array("i", [
            self._group(span) if meaning.kind in communicating else UNSTATED
            for span, meaning in zip(kept_spans, kept_meanings, strict=True)
        ])  # fmt: skip
        table.step = select_ints(steps, kept_spans)
        table.microbatch = self._column("microbatch", kept_spans)
        table.line = select_ints(spans.event, kept_spans)
        if self.has_chunks:
            table.chunk = self._column("chunk", kept_spans)
        if base:
            table.windows = {key: (first - base, last - base) for key, (first, last) in windows.items()}
        table.streams, table.groups = list(streams), list(self.groups)
        table.has_steps = any(step != UNSTATED for step in {*table.step})
        if not table.has_steps and self.only_step is not None:
            table.step = array("q", (self.only_step,)) * len(table)
            table.has_steps = True
        if not table.has_steps:
            table.step = array("q", bytes(8 * len(table)))
            self._say("note", "no-steps", "no step is stated: all spans are taken to be of one step, 0")
        self._note(kept_spans, kept_meanings, len(scopes))
        return table

    # -- what spans say --------------------------------------------------------------

    def _column(self, key: str, kept_spans: range | list[int]) -> array[int]:
        """Returns what shown spans say by their names, else by their arguments."""
        column, meanings = self.spans.values[key], self.meanings
        if not any(key in meaning.values for meaning in self.distinct):
            return select_ints(column, kept_spans)
        return array("q", [
            int(meanings[span].values[key]) if key in meanings[span].values else column[span]
            for span in kept_spans
        ])  # fmt: skip

    def _find_scopes(self) -> set[int]:
        """Returns the spans of no known kind that contain others of a known one on their thread: calls."""
        spans = self.spans
        if len({meaning.is_known for meaning in self.distinct}) == 1:
            return set()
        order = sorted(
            range(len(spans)), key=lambda span: (spans.thread[span], spans.start[span], -spans.end[span])
        )
        scopes: set[int] = set()
        open_spans: list[int] = []
        for span in order:
            while open_spans and (
                spans.thread[open_spans[-1]] != spans.thread[span]
                or spans.end[open_spans[-1]] < spans.end[span]
                or spans.end[open_spans[-1]] <= spans.start[span]
            ):
                open_spans.pop()
            if self.meanings[span].is_known:
                # Those below them are scopes already.
                while open_spans:
                    scopes.add(open_spans.pop())
            else:
                open_spans.append(span)
        return scopes

    def _find_steps(self) -> tuple[array[int], dict[tuple[int, int], tuple[int, int]]]:
        """Returns (the step of each span, UNSTATED where nothing says it; from when to when each rank's steps
        last, where more than their spans says it).
        """
        spans, windows = self.spans, dict[tuple[int, int], tuple[int, int]]()
        steps = self._column("step", range(len(spans)))

        def widen(rank: int, step: int, first: int, last: int) -> None:
            before = windows.get((rank, step), (first, last))
            windows[rank, step] = min(first, before[0]), max(last, before[1])

        for thread, step, time_ns in spans.instants:
            widen(self.rank_positions.threads[thread].rank, step, time_ns, time_ns)
        if all(meaning.kind != STEP for meaning in self.distinct):
            return steps, windows
        steps = steps[:]
        by_rank: dict[int, list[tuple[int, int, int]]] = {}
        for span, meaning in enumerate(self.meanings):
            if meaning.kind == STEP and steps[span] != NONE:
                by_rank.setdefault(self.rank[span], []).append(
                    (spans.start[span], spans.end[span], steps[span])
                )
                widen(self.rank[span], steps[span], spans.start[span], spans.end[span])
        if self.is_exported:
            return steps, windows
        for marks in by_rank.values():
            marks.sort()
        for span, step in enumerate(steps):
            marks = by_rank.get(self.rank[span], [])
            if step == NONE and marks:
                at = bisect_right(marks, (spans.start[span], spans.end[span] + (1 << 62), 0)) - 1
                if at >= 0 and spans.start[span] < marks[at][1]:
                    steps[span] = marks[at][2]
        return steps, windows

    def _find_arrivals(self, kept_spans: range | list[int]) -> array[int]:
        """Returns when each shown span begins: where the file says from when on a rank waits for it, then."""
        spans = self.spans
        starts = select_ints(spans.start, kept_spans)
        if all(meaning.kind != WAITING for meaning in self.distinct):
            return starts
        by_name: dict[tuple[int, str], list[tuple[int, int]]] = {}
        waits = [span for span, meaning in enumerate(self.meanings) if meaning.kind == WAITING]
        for index, span in enumerate(kept_spans):
            by_name.setdefault((self.rank[span], spans.name[span]), []).append((spans.end[span], index))
        for some in by_name.values():
            some.sort()
        for span in waits:
            name = spans.texts.get(span, {}).get("for")
            some = by_name.get((self.rank[span], name), []) if isinstance(name, str) else []
            at = bisect_right(some, (spans.end[span], -1))
            if at < len(some):
                index = some[at][1]
                starts[index] = min(starts[index], spans.start[span])
        return starts

    # -- who communicates ------------------------------------------------------------

    def _group(self, span: int) -> int:
        """Returns the group of a span; of spans that say the same on one thread it is computed once."""
        spans = self.spans
        if span in spans.texts:
            return self._find_group(span)
        key = spans.thread[span], spans.name[span], spans.cat[span], spans.values["peer"][span]
        group = self.group_of.get(key)
        if group is None:
            group = self.group_of[key] = self._find_group(span)
        return group

    def _find_group(self, span: int) -> int:
        spans, meaning = self.spans, self.meanings[span]
        texts = spans.texts.get(span, {})
        name = next((texts[key] for key in ("group", "process_group", "pg_name", "comm_group", "CommHash")
                     if isinstance(texts.get(key), str)), "")  # fmt: skip
        axis = meaning.group or next(
            (
                axis for text in (name, spans.name[span], self.thread_name(span), spans.cat[span])
                if (axis := category_of_group_name(text)) != "comm"
            ),
            "pp" if meaning.kind in TRANSFERS else "",
        )  # fmt: skip
        ranks = _parse_ranks(texts.get("ranks", texts.get("members")))
        if meaning.kind in TRANSFERS:
            ranks = self._partners(span) or (ranks if ranks is not None and len(ranks) == 2 else None)
        elif ranks is None:
            ranks = self._members(self.rank[span], axis)
        return self.groups.setdefault(SpanGroup(name or axis, ranks), len(self.groups))

    def _members(self, rank: int, axis: str) -> tuple[int, ...] | None:
        """Returns the ranks along an axis of the layout, None where it is not known."""
        positions = self.rank_positions.positions
        own = positions.get(rank)
        if axis == "world":
            return tuple(sorted({*self.rank}))
        if own is None:
            return None
        if axis == "embedding":
            last = max(stage for _, _, stage in positions.values())
            ends = {self.seat.get((*own[:2], stage)) for stage in (0, last)}
            return tuple(sorted(rank for rank in ends if rank is not None))
        if axis not in _AXIS_OF:
            return None
        free = _AXIS_OF[axis]
        return tuple(sorted(
            other for other, position in positions.items()
            if all(at == free or position[at] == own[at] for at in range(3))
        ))  # fmt: skip

    def _partners(self, span: int) -> tuple[int, ...] | None:
        """Returns the two ranks of a transfer, None where they are not known."""
        spans, meaning, rank = self.spans, self.meanings[span], self.rank[span]
        texts = spans.texts.get(span, {})
        if "known" in texts:
            return _parse_ranks(texts.get("ranks"))
        peer: int | None = spans.values["peer"][span]
        if peer == NONE:
            position = self.rank_positions.positions.get(rank)
            if position is None:
                return None
            peer = self._peer_by_stage(span, meaning, position)
        return None if peer is None or peer == rank else tuple(sorted((rank, peer)))

    def _peer_by_stage(self, span: int, meaning: Meaning, position: Position) -> int | None:
        other_stage = meaning.values.get("to", meaning.values.get("from"))
        if other_stage is not None:
            return self.seat.get((*position[:2], int(other_stage)))
        spans = self.spans
        text = f"{spans.name[span]} {spans.cat[span]}".lower()
        words = [
            word for word in _SENDS_TO if word in text or {"forward": "fwd", "backward": "bwd"}[word] in text
        ]
        if len(words) != 1:
            return None
        stage = position[2] + _SENDS_TO[words[0]] * (1 if meaning.kind == "send" else -1)
        if self.has_chunks:
            stage %= max(stage for _, _, stage in self.rank_positions.positions.values()) + 1
        return self.seat.get((*position[:2], stage))

    # -- what is said ----------------------------------------------------------------

    def _note(self, kept_spans: range | list[int], kept_meanings: Sequence[Meaning], scopes: int) -> None:
        spans = self.spans
        flags = bytes([not meaning.is_known for meaning in kept_meanings])
        if 1 in flags:
            unknown = Counter(compress(select_items(spans.name, kept_spans), flags))
            times = select_ints(spans.end, kept_spans), select_ints(spans.start, kept_spans)
            ns = sum(compress(map(sub, *times), flags))
            listed = ", ".join(
                f"{printable(name, 40)} ({count})" for name, count in unknown.most_common(_LISTED)
            )
            more = f" and {plural(len(unknown) - _LISTED, 'more name')}" if len(unknown) > _LISTED else ""
            of_all = sum(map(sub, *times)) or 1
            share = f"{100 * ns / of_all:.0f} % of the time of all"
            message = (
                f"{plural(sum(unknown.values()), 'span')} that no rule knows, {share}, busy time without a "
                f"phase: {listed}{more}; --trace-map FILE says what they are, and "
                "wltui check FILE --save-map MAP writes one to begin with"
            )
            self._say("note", "unknown-span", message)
        left = {what: count for what, count in spans.left.items() if count}
        if negative := left.pop("negative duration", 0):
            message = f"{plural(negative, 'event')} with a negative duration, taken as 0"
            self._say("warning", "negative-duration", message)
        untimed = {what: left.pop(what) for what in _PLURALS if what in left}
        if untimed:
            self._say("warning", "no-time", f"{_listed(untimed)}, left out")
        if scopes:
            left["call around others"] = scopes
        if left:
            self._say("note", "spans-not-shown", f"not shown: {_listed(left)}")

    def _say(self, severity: Severity, code: str, message: str) -> None:
        self.diagnostics.append(Diagnostic(severity, code, message, self.path))


# What is left out for want of a time, if it is several.
_PLURALS = {
    "begin without an end": "begins without an end", "end without a begin": "ends without a begin",
    "event without a time": "events without a time",
}  # fmt: skip


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{count} {_PLURALS[what]}" if count > 1 and what in _PLURALS
        else plural(count, "call") + " around others" if what == "call around others"
        else plural(count, what)
        for what, count in sorted(counts.items())
    )  # fmt: skip


def _parse_ranks(value: object) -> tuple[int, ...] | None:
    """Returns the ranks of `[0, 1]` or `0-3,8`, ascending; None for all else."""
    ranks = ranks_of(value)
    if ranks is not None:
        return tuple(sorted({*ranks}))
    if (
        not isinstance(value, str)
        or len(value) > _MOST_MEMBERS
        or not re.fullmatch(rf"(?:{_RANKS.pattern})+", value)
    ):
        return None
    ends = [(int(first), int(last or first)) for first, last in _RANKS.findall(value)]
    if any(last < first for first, last in ends) or sum(last - first for first, last in ends) > _MOST_MEMBERS:
        return None
    return tuple(sorted({rank for first, last in ends for rank in range(first, last + 1)}))
