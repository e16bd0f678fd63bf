"""A trace with one damaged place: everything else is read, and a warning names the byte."""

from __future__ import annotations

import json
import random
import re
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import Diagnostic, InputError
from simcore.kineto.damage import MOST_LOST
from simcore.kineto.reading import read_file_events
from simcore.measured import MeasuredRun
from simcore.sources.inputs import open_input
from tests.says import said

# Texts on both sides of a damaged place are told apart from it by no more.
NEAR = 25
HEAD = '{"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 4}, "traceEvents": ['
TAIL = '], "traceName": "t", "baseTimeNanoseconds": 1700000000000000000}'
BASE = 17 * 10**17
FORMS = ("object", "list", "lines")


def kernel(number: int) -> dict[str, Any]:
    """A kernel of a name of its own, objects in its arguments that look like the start of an event."""
    args = {"stream": 7, "device": 0, "correlation": number, "grid": [1, 2, 3],
            "list": [{"a": 1}, {"name": "b"}]}  # fmt: skip
    return {"ph": "X", "cat": "kernel", "name": f"k{number}", "pid": 0, "tid": 7, "ts": 100.5 + 20 * number,
            "dur": 10.25, "args": args}  # fmt: skip


def written(drawn: random.Random, form: str) -> tuple[str, list[tuple[int, int]]]:
    """A trace as text, and where in it each of its events begins and ends."""
    between = "\n" if form == "lines" else drawn.choice((", ", ",\n", "\n  ,"))
    indents = (None,) if form == "lines" else (None, None, 2)
    text, places = {"object": HEAD, "list": "[", "lines": ""}[form], []
    for number in range(drawn.choice((2, 5, 30))):
        event = json.dumps(kernel(number), indent=drawn.choice(indents))
        text += between if number else ""
        places.append((len(text), len(text) + len(event)))
        text += event
    return text + {"object": TAIL, "list": "]", "lines": "\n"}[form], places


Place = tuple[int, int]
Change = Callable[[bytes, Place, random.Random], bytes]
ODD = b'"{}[],:\\x1\x00\x02'


def _deleted(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + data[min(place[1], at + drawn.randint(1, 6)) :]


def _inserted(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + bytes(drawn.choice(ODD) for _ in range(drawn.randint(1, 3))) + data[at:]


def _replaced(data: bytes, place: Place, drawn: random.Random) -> bytes:
    at = drawn.randrange(*place)
    return data[:at] + bytes([drawn.choice(ODD)]) + data[at + 1 :]


def _zeros(data: bytes, place: Place, drawn: random.Random) -> bytes:
    begin, end = sorted(drawn.randrange(*place) for _ in range(2))
    return data[:begin] + bytes(end + 1 - begin) + data[end + 1 :]


def _short(data: bytes, place: Place, drawn: random.Random) -> bytes:
    return data[: drawn.randrange(*place)] + data[place[1] :]


def _in_name(what: bytes) -> Change:
    def changed(data: bytes, place: Place, drawn: random.Random) -> bytes:
        at = data.index(b'"k', place[0]) + 1 + drawn.randrange(2)
        return data[:at] + what + data[at:]

    return changed


def _no_number(data: bytes, place: Place, drawn: random.Random) -> bytes:
    """A length, or the first of a list, as what is no number."""
    before = data.index(drawn.choice((b'"dur": ', b'"correlation": ')), place[0])
    begin = data.index(b":", before) + 2
    end = min(data.index(mark, begin) for mark in (b",", b"\n") if data.find(mark, begin) >= 0)
    return data[:begin] + drawn.choice((b"NaN", b"-Infinity", b"-nan", b"inf")) + data[end:]


def _behind(*words: bytes) -> Change:
    def changed(data: bytes, place: Place, drawn: random.Random) -> bytes:
        return data[: place[1]] + drawn.choice(words) + data[place[1] :]

    return changed


CHANGES: dict[str, Change] = {
    "deleted": _deleted, "inserted": _inserted, "replaced": _replaced, "zeros": _zeros, "short": _short,
    "no number": _no_number, "quote": _in_name(b'"'), "control": _in_name(b"\x01"),
    "escape": _in_name(b"\\U"), "half a pair": _in_name(b"\\ud800"), "not UTF-8": _in_name(b"\xff"),
    "between": _behind(b"xyz", b"\0\0", b'"}'), "bracket": _behind(b"]", b"}", b"{", b"["),
    "comma": _behind(b",", b",,"),
}  # fmt: skip


def read(data: bytes) -> tuple[set[str], list[Diagnostic]]:
    """The names of the kernels in a file, and what was found."""
    recordings, found = read_file_events("f", data)
    return {name for recording in recordings for name in recording.ops.name}, found


def bytes_named(found: list[Diagnostic]) -> list[int]:
    """The bytes that warnings name."""
    named = (re.search(r"at bytes? ([\d, ]*\d)", one.message) for one in found if one.severity == "warning")
    return [int(word) for places in named if places for word in places[1].split(", ")]


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", CHANGES)
def test_one_damaged_place_costs_one_event_at_most(
    change: str, form: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for seed in range(60 if request.config.getoption("--whole") else 20):
        drawn = random.Random(f"{change} {form} {seed}")
        monkeypatch.setattr("simcore.kineto.repairing._STRETCH", drawn.choice((200, 1000, 1 << 18)))
        text, places = written(drawn, form)
        number = drawn.randrange(len(places))
        place = places[number]
        data = CHANGES[change](text.encode(), place, drawn)
        names, found = read(data)
        others = {f"k{other}" for other in range(len(places)) if other != number}
        assert others <= names, (seed, data)
        if not is_json(data) and form != "lines":
            near = range(place[0] - NEAR, place[1] + NEAR)
            assert any(byte in near for byte in bytes_named(found)), (seed, data, found)


# Copies of one trace of three steps of 5.570 ms, each damaged in one way: what is said of it.
CASES = Path(__file__).parent / "cases" / "refused"
SAID = {
    "array_top": None,
    "array_unclosed": "cut-file",
    "bad_escape": "damaged-file",
    "bad_utf8": "not-utf-8",
    "bom": "damaged-file",
    "control_char": "damaged-file",
    "jsonl": "damaged-file",
    "nan_value": "damaged-file",
    "quote_in_name": "damaged-file",
    "trailing_comma": "damaged-file",
    "ts_strings": "damaged-file",
    "two_objects": "damaged-file",
}


@pytest.mark.parametrize("name", SAID)
def test_a_damaged_copy_shows_the_step_of_the_whole_one(name: str) -> None:
    run, whole = (open_input(str(CASES / f"{one}.json")) for one in (name, "array_top"))
    assert isinstance(run, MeasuredRun)
    assert isinstance(whole, MeasuredRun)
    assert run.step_time_ns == whole.step_time_ns == 5_570_000
    assert run.ops == whole.ops
    damage = [one.code for one in run.diagnostics if one.code in ("damaged-file", "not-utf-8", "cut-file")]
    assert damage == [one for one in [SAID[name]] if one]


def trace(*events: str, head: str = HEAD, tail: str = TAIL) -> bytes:
    return (head + ", ".join(events) + tail).encode()


def kernels(count: int) -> list[str]:
    return [json.dumps(kernel(number)) for number in range(count)]


def messages(found: list[Diagnostic]) -> str:
    return "\n".join(one.message for one in found)


@pytest.mark.parametrize(
    ("head", "tail", "rank", "base"),
    [
        (HEAD, TAIL.replace('"t"', r'"C:\Users\t"'), 3, BASE),
        (HEAD.replace('"schemaVersion": 1', '"note": "a "quoted" word"'), TAIL, 3, BASE),
        (HEAD.replace("1,", "NaN,", 1), TAIL, 3, BASE),
        (HEAD.replace('"rank": 3', '"rank": "3"'), TAIL.replace("17", '"17').replace("0}", '0"}'), 3, BASE),
        (HEAD.replace('"rank": 3', '"rank": x'), TAIL, None, BASE),
        (HEAD, TAIL.replace('"t"', '"t'), 3, BASE),
        (HEAD, TAIL[1:], 3, BASE),
        (HEAD.replace("traceEvents", "trace\x01Events"), TAIL, 3, BASE),
        (HEAD, "]", 3, 0),
    ],
)  # fmt: skip
def test_damage_beside_the_events_costs_none_of_them(
    head: str, tail: str, rank: int | None, base: int
) -> None:
    recordings, found = read_file_events("f", trace(*kernels(5), head=head, tail=tail))
    (recording,) = recordings
    assert sorted(recording.ops.name) == [f"k{number}" for number in range(5)]
    assert (recording.rank, recording.first_ns) == (rank, base + 100_500)
    assert any(one.severity == "warning" for one in found) or '"3"' in head


def test_bytes_that_are_no_text_are_counted_where_they_stand() -> None:
    """Those of what is read; of a file with other damage those of all of it."""
    data = trace(*kernels(3), head=HEAD.replace("{", '{"by": "J?rg", ', 1)).replace(b"?", b"\xf6")
    data = data.replace(b'"k1"', b'"k\xff\xfe"')
    said(messages(read(data)[1]).splitlines(), "2 bytes", "UTF-8", f"at byte {data.index(0xFF)}")
    data = data.replace(b'"schemaVersion": 1', b'"schemaVersion": NaN')
    names, found = read(data)
    assert names == {"k0", "k\ufffd\ufffd", "k2"}
    said(messages(found).splitlines(), "3 bytes", "UTF-8", f"at byte {data.index(0xF6)}")


def test_a_name_with_quotes_and_one_that_ends_in_a_backslash_are_kept() -> None:
    events = [
        one.replace('"k1"', r'"{"device": "cpu"}(12): run"').replace('"k2"', r'"C:\dir\"')
        for one in kernels(4)
    ]
    names, found = read(trace(*events))
    assert names == {"k0", '{"device": "cpu"}(12): run', "C:\\dir\\", "k3"}
    assert "4 quotes inside names" in messages(found)
    assert "2 backslashes" in messages(found)


def test_numbers_as_text_are_those_numbers() -> None:
    """Of every event, and of one among others: what runs where and what launched it is the same."""
    plain = [
        kernel(number) | {"args": {"stream": 7, "device": 0, "correlation": number}} for number in range(3)
    ]
    launches = [
        {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 9, "tid": 9, "ts": 90 + number, "dur": 1,
         "args": {"correlation": number}}
        for number in range(3)
    ]  # fmt: skip
    step = launches[0] | {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 80, "dur": 11.5}
    events = [step, *launches, *plain]
    (whole,), none = read_file_events("f", json.dumps({"traceEvents": events}).encode())
    assert none == []

    def as_text(event: Any) -> Any:
        if isinstance(event, dict):
            return {key: as_text(value) for key, value in event.items()}
        return str(event) if isinstance(event, (int, float)) else event

    for some in (range(len(events)), [5], [0, 2]):
        texts = [as_text(event) if index in some else event for index, event in enumerate(events)]
        (found,), notes = read_file_events("f", json.dumps({"traceEvents": texts}).encode())
        assert (found.ops.start, found.ops.end, found.step) == (whole.ops.start, whole.ops.end, whole.step)
        assert found.columns.stream == whole.columns.stream
        assert found.columns.correlation == whole.columns.correlation
        said(messages(notes).splitlines(), "as text", f"event {min(some)}")


@pytest.mark.parametrize("word", ["soon", "", "1_0", "0x10", " 5"])
def test_an_event_whose_time_is_a_text_that_is_no_number_is_lost(word: str) -> None:
    names, found = read(trace(kernels(1)[0], json.dumps(kernel(1) | {"ts": word})))
    assert names == {"k0"}
    said(messages(found).splitlines(), "found 1 event")


def test_a_time_that_is_no_number_is_absent() -> None:
    for word in ('"NaN"', "NaN", '"-inf"'):
        names, found = read(trace(*kernels(2)).replace(b"120.5", word.encode()))
        assert names == {"k0"}
        assert "1 event without a time, left out" in messages(found)


def test_how_many_events_are_lost_is_said_and_their_bytes() -> None:
    events = kernels(20)
    for number in (3, 4, 9, 12, 17):
        events[number] = events[number].replace('"tid": 7', '"tid": seven')
    data = trace(*events)
    names, found = read(data)
    assert len(names) == 15
    places = [found.start() for found in re.finditer(rb'\{"ph"', data)]
    lost = [str(places[number]) for number in (3, 4, 9, 12)]
    said(messages(found).splitlines(), "5 events", *lost, "later ones")


def test_places_of_events_behind_a_lost_one_stay_what_they_are() -> None:
    events = kernels(5)
    events[2] = events[2].replace("7", "seven")
    (found,), _ = read_file_events("f", trace(*events))
    assert list(found.ops.line) == [0, 1, 3, 4]


def test_a_file_of_which_too_much_is_lost_is_refused() -> None:
    events = [one.replace('"tid": 7', '"tid": seven') for one in kernels(MOST_LOST + 1)]
    with pytest.raises(InputError, match=rf"more than {MOST_LOST} events that cannot be read, up to byte"):
        read(trace(*events))
    assert len(read(trace(*events[1:], *kernels(1)))[0]) == 1


HOSTILE = {
    "a value in each": lambda count: trace(*[one.replace("10.25", "NaN") for one in kernels(count)]),
    "a quote in each": lambda count: trace(*[one.replace('"k', '"k"') for one in kernels(count)]),
    "each lost": lambda count: trace(*[one.replace("10.25", "x") for one in kernels(count)]),
    "each open": lambda count: trace(*['{"ph": "X", "name": "'] * (10 * count)),
    "each a text that does not end": lambda count: trace(*[r'{"ph": "X", "name": "\"\"\"\"'] * (5 * count)),
    "no events": lambda count: trace(*['{"x": 1, "name": "a"b", "pid": 1}'] * (3 * count)),
    "commas": lambda count: trace(kernels(1)[0] + "," * (200 * count)),
    "brackets": lambda count: trace(kernels(1)[0] + "]" * (200 * count)),
    "beginnings": lambda count: trace('{"ph": ' * (20 * count)),
    "blanks": lambda count: trace("[" + " \n" * (100 * count)),
    "backslashes": lambda count: trace('{"name": "' + "\\" * (200 * count)),
    "quotes": lambda count: trace('{"name": ' + '"' * (200 * count)),
    "keys": lambda count: trace('{"name": "a' * (20 * count)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_damage_everywhere_takes_time_and_memory_by_the_bytes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times the bytes take hardly more than four times as long, and no more than twelve times them.

    An event that is lost takes 1.3 ms, whatever the size: so fifty show what a thousand would.
    """
    monkeypatch.setattr("simcore.kineto.damage.MOST_LOST", 50)

    def seconds(data: bytes) -> float:
        begin = time.process_time()
        with suppress(InputError):
            read(data)
        return time.process_time() - begin

    # With half of these a list of events that is copied for each of them is not seen.
    short, long = HOSTILE[name](1000), HOSTILE[name](4000)
    assert seconds(long) < 10 * seconds(short) + 0.25
    tracemalloc.start()
    try:
        seconds(short)
        assert tracemalloc.get_traced_memory()[1] < 12 * len(short) + (4 << 20)
    finally:
        tracemalloc.stop()
