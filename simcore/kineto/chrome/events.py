"""The events of a Chrome trace as spans: complete events, pairs of begin and end, and asynchronous ones."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from simcore.kineto.damage import Damage
from simcore.kineto.events import Event, KinetoFile, batches
from simcore.kineto.values import MOST_US, NO_NAME, Pool, whole

_ARGS = msgspec.json.Decoder(dict[str, Any])
# Names of numbers in the arguments of events, those that tools write.
_KEYS = {
    "step": ("step", "iteration", "iter", "global_step", "step_id", "iteration_id"),
    "microbatch": ("microbatch", "microbatch_id", "micro_batch", "micro_batch_id", "mb", "mb_id", "mbs_id"),
    "chunk": ("model_chunk", "chunk", "chunk_id", "model_chunk_id", "vpp_rank", "virtual_stage"),
    "rank": ("rank", "Rank", "global_rank", "world_rank"),
    "pp": ("pp_rank", "pipeline_rank", "stage", "stage_id", "pp_stage"),
    "dp": ("dp_rank", "data_rank", "data_parallel_rank"),
    "tp": ("tp_rank", "tensor_rank", "tensor_parallel_rank"),
    "peer": ("peer", "Peer", "peer_rank", "dst", "dst_rank", "src", "src_rank", "to_rank", "from_rank"),
}  # fmt: skip
_KEY_OF = {word: key for key, words in _KEYS.items() for word in words}
# `known` is in what wltui exports of a recording: how the times are known.
_TEXTS = frozenset((
    "known", "group", "ranks", "members", "for", "collective", "process_group", "pg_name", "comm_group",
    "CommHash",
))  # fmt: skip
NONE = -1
_MOST_NUMBER = 10**12 - 1

Thread = tuple[Any, Any]


class ChromeSpans:
    """Spans in the order in which they end in the file, as columns of equal length.

    thread: an index into `threads`, (pid, tid) as written; start, end: ns; values: by key (`step`,
    `microbatch` ...) what the arguments state, NONE where they do not; texts: by span some arguments that are
    texts; event: the position in the file, from 0.
    """

    def __init__(self) -> None:
        self.threads: dict[Thread, int] = {}
        self.thread, self.start, self.end, self.event = array("i"), array("q"), array("q"), array("q")
        self.name: list[str] = []
        self.cat: list[str] = []
        self.values = {key: array("q") for key in _KEYS}
        self.texts: dict[int, dict[str, Any]] = {}
        self.process_names: dict[Any, list[str]] = {}
        self.thread_names: dict[Thread, str] = {}
        # (thread, step, ns) of instants: they may bound a step.
        self.instants: list[tuple[int, int, int]] = []
        # What is not shown: counters, flows, instants without a step, ends without a begin ...
        self.left = Counter[str]()

    def __len__(self) -> int:
        return len(self.name)


def read_spans(
    path: str, file: KinetoFile, damage: Damage, on_progress: Callable[[float], None] | None = None
) -> ChromeSpans:
    """Returns the spans of a file's events, which are let go of. Raises InputError for an event that is
    none.
    """
    reader = _Reader()
    first = 0
    for batch in batches(path, file, damage, on_progress):
        reader.take_all(batch, first)
        first += len(batch)
    # The bytes of a file are a third of what a report of it takes at most.
    damage.release()
    file.traceEvents = msgspec.Raw()
    spans = reader.finish()
    left = spans.left
    left["begin without an end"] += sum(map(len, reader.open.values())) + sum(
        map(len, reader.open_async.values())
    )
    return spans


class _OpenEvent(msgspec.Struct, gc=False):
    """An event that began, us as written."""

    event_index: int
    ts: float
    name: str
    cat: str
    thread: int
    args: Mapping[str, Any]


# Spans are added to the columns so many at a time: 2 us each where it was 5.
_BATCH = 4096


# Arguments are mostly those of an event before: so many texts of them are decoded once.
_MOST_TEXTS = 8192


class _Arguments:
    """What arguments of spans state, by number, 0 of nothing: a column a key, as far as stated, and texts."""

    def __init__(self) -> None:
        self.count = 1
        self.values = {key: array("q", (NONE,)) for key in _KEYS}
        self.texts: dict[int, dict[str, Any]] = {}
        # Those of NCCL's profiler plugin state the rank of their thread.
        self.of_plugin: set[int] = set()
        self._number_by_text: dict[bytes, int] = {}

    def find(self, event: Event) -> int:
        """Returns the number of an event's arguments."""
        text = bytes(event.args)
        arguments_number = self._number_by_text.get(text)
        if arguments_number is None:
            if len(self._number_by_text) == _MOST_TEXTS:
                self._number_by_text.clear()
            arguments_number = self._number_by_text[text] = self.add(_args_of(event))
        return arguments_number

    def add(self, args: Mapping[str, Any]) -> int:
        """Returns the number of arguments, which are not there yet."""
        stated_values: dict[str, int] = {}
        for word, value in args.items():
            # Of two words for one thing the first counts.
            if word in _KEY_OF and _KEY_OF[word] not in stated_values:
                is_plain = type(value) is int and 0 <= value <= _MOST_NUMBER
                stated_values[_KEY_OF[word]] = value if is_plain else _count_of(value)
        has_texts = not _TEXTS.isdisjoint(args)
        if not stated_values and not has_texts:
            return 0
        arguments_number = self.count
        self.count += 1
        for key, value in stated_values.items():
            column = self.values[key]
            if len(column) < arguments_number:
                column.extend(array("q", (NONE,)) * (arguments_number - len(column)))
            column.append(value)
        if has_texts:
            self.texts[arguments_number] = {
                key: str(value) if key == "CommHash" else value
                for key, value in args.items()
                if key in _TEXTS and isinstance(value, (str, list) if key != "CommHash" else int)
            }
            if "CommHash" in args:
                self.of_plugin.add(arguments_number)
        return arguments_number


class _Reader:
    def __init__(self) -> None:
        self.spans = ChromeSpans()
        self.pool = Pool()
        # Spans that are no columns yet: (thread, start, end, event, name, category, arguments).
        self.rows: list[tuple[int, int, int, int, str, str, int]] = []
        self.arguments = _Arguments()
        # By span the arguments_number of its arguments.
        self.arguments_numbers = array("i")
        self.open: dict[int, list[_OpenEvent]] = {}
        self.open_async: dict[tuple[Any, ...], list[_OpenEvent]] = {}

    def take_all(self, events: Sequence[Event], first: int) -> None:
        """Takes a batch of events. Most are complete: they are taken here without a call each. first: the
        position in the file of the first one.
        """
        threads, pool, rows, latest = self.spans.threads, self.pool, self.rows, MOST_US
        find, of_plugin = self.arguments.find, self.arguments.of_plugin
        for at, event in enumerate(events, first):
            ts, dur = event.ts, event.dur or 0
            if event.ph != "X" or ts is None or not -latest < ts < latest or not 0 <= dur < latest:
                self.take(at, event)
                continue
            arguments_number = 0
            if event.args:
                arguments_number = find(event)
                if arguments_number in of_plugin:
                    self.take(at, event)
                    continue
            key = event.pid, event.tid
            thread = threads.get(key)
            if thread is None:
                threads[key] = thread = len(threads)
            cat = pool[event.cat] if event.cat else ""
            rows.append(
                (
                    thread,
                    round(ts * 1000),
                    round((ts + dur) * 1000),
                    at,
                    pool[event.name],
                    cat,
                    arguments_number,
                )
            )
        if len(rows) >= _BATCH:
            self._add_rows()

    def take(self, at: int, event: Event) -> None:
        """Takes one event."""
        phase = event.ph
        if phase == "M":
            self._take_name(event)
            return
        if phase not in "XBEbeiInR" or not phase:
            self.spans.left["counter" if phase == "C" else "flow" if phase in "stf" else "other event"] += 1
            return
        ts = event.ts
        if ts is None or not -MOST_US < ts < MOST_US:
            self.spans.left["event without a time"] += 1
            return
        args = _args_of(event)
        thread = self._thread(event) if "CommHash" not in args else self._thread_of_rank(event, args)
        name = self.pool[event.name]
        cat = self.pool[event.cat] if event.cat else ""
        if phase == "X":
            dur = event.dur or 0
            if not dur < MOST_US:
                self.spans.left["event without a time"] += 1
                return
            if dur < 0:
                self.spans.left["negative duration"] += 1
            self._add(at, ts, ts + dur if dur > 0 else ts, name, cat, thread, args)
        elif phase == "B":
            self.open.setdefault(thread, []).append(_OpenEvent(at, ts, name, cat, thread, args))
        elif phase == "E":
            self._end(self.open.get(thread, []), ts, name, args)
        elif phase == "b":
            self.open_async.setdefault(_async_key(event, thread), []).append(
                _OpenEvent(at, ts, name, cat, thread, args)
            )
        elif phase == "e":
            self._end(self.open_async.get(_async_key(event, thread), []), ts, name, args)
        else:
            step = _find_number(args, "step")
            if step == NONE:
                self.spans.left["instant"] += 1
            else:
                self.spans.instants.append((thread, step, _ns(ts)))

    def _end(self, open_events: list[_OpenEvent], ts: float, name: str, args: Mapping[str, Any]) -> None:
        """Ends the last event of this name that is open, of an end without a name the last one."""
        for index in range(len(open_events) - 1, -1, -1):
            if name in (NO_NAME, open_events[index].name):
                open_event = open_events.pop(index)
                self._add(
                    open_event.event_index, open_event.ts, max(ts, open_event.ts), open_event.name,
                    open_event.cat, open_event.thread, {**open_event.args, **args},
                )  # fmt: skip
                return
        self.spans.left["end without a begin"] += 1

    def _thread(self, event: Event) -> int:
        threads = self.spans.threads
        return threads.setdefault((event.pid, event.tid), len(threads))

    def _thread_of_rank(self, event: Event, args: Mapping[str, Any]) -> int:
        """Returns the thread of an event of NCCL's profiler plugin: a process may have several ranks."""
        rank = _find_number(args, "rank")
        key = event.pid, f"rank {rank}"
        if rank == NONE:
            return self._thread(event)
        self.spans.thread_names[key] = key[1]
        return self.spans.threads.setdefault(key, len(self.spans.threads))

    def _add(
        self, at: int, start: float, end: float, name: str, cat: str, thread: int, args: Mapping[str, Any]
    ) -> None:
        arguments_number = self.arguments.add(args) if args else 0
        self.rows.append((thread, _ns(start), _ns(end), at, name, cat, arguments_number))

    def _add_rows(self) -> None:
        spans, texts = self.spans, self.arguments.texts
        if self.rows:
            thread, start, end, event, name, cat, arguments_numbers = zip(*self.rows, strict=True)
            for span, arguments_number in enumerate(arguments_numbers, len(spans)) if texts else ():
                if arguments_number in texts:
                    spans.texts[span] = texts[arguments_number]
            spans.thread.extend(thread)
            spans.start.extend(start)
            spans.end.extend(end)
            spans.event.extend(event)
            spans.name.extend(name)
            spans.cat.extend(cat)
            self.arguments_numbers.extend(arguments_numbers)
            self.rows.clear()

    def finish(self) -> ChromeSpans:
        """Returns the spans of all events so far."""
        self._add_rows()
        # What no span states has one column.
        nothing = array("q", (NONE,)) * len(self.spans)
        for key, values in self.arguments.values.items():
            if max(values) == NONE:
                self.spans.values[key] = nothing
                continue
            values.extend(array("q", (NONE,)) * (self.arguments.count - len(values)))
            self.spans.values[key] = array("q", map(values.__getitem__, self.arguments_numbers))
        return self.spans

    def _take_name(self, event: Event) -> None:
        args = _args_of(event)
        spans = self.spans
        name, labels = args.get("name"), args.get("labels")
        if event.name == "process_name" and isinstance(name, str):
            spans.process_names.setdefault(event.pid, []).insert(0, name)
        elif event.name == "process_labels" and isinstance(labels, str):
            spans.process_names.setdefault(event.pid, []).append(labels)
        elif event.name == "thread_name" and isinstance(name, str):
            spans.thread_names[event.pid, event.tid] = name


def _count_of(value: Any) -> int:
    integer = whole(value)
    return integer if integer is not None and 0 <= integer <= _MOST_NUMBER else NONE


def _find_number(args: Mapping[str, Any], key: str) -> int:
    return next((_count_of(args[word]) for word in _KEYS[key] if word in args), NONE)


def _ns(us: float) -> int:
    """Returns a time, us as written, in ns."""
    return round(us * 1000)


def _async_key(event: Event, thread: int) -> tuple[Any, ...]:
    identity = event.id if isinstance(event.id, (str, int, float)) else None
    return event.cat, identity, thread if identity is None else event.pid


def _args_of(event: Event) -> Mapping[str, Any]:
    if not event.args:
        return {}
    try:
        return _ARGS.decode(event.args)
    except UnicodeDecodeError:
        try:
            return _ARGS.decode(bytes(event.args).decode("utf-8", "replace").encode())
        except (ValueError, RecursionError):
            return {}
    except (ValueError, RecursionError):
        return {}
