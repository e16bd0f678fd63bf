"""Damaged and hostile profiler traces: each is a picture with diagnostics, or an error that says where.

Each file of the corpus beside the checkout, cut, with bits flipped, its events shuffled, its times and names
replaced by hostile ones, at PLACES places each; then what is made large. A process of its own opens each and
makes the page and the JSON of it. A finding is a traceback, an end by a signal, an error without the file and
the place, a control character in what is printed, accounts that do not sum to the step, more than
MOST_SECONDS of the processor, or more memory beside what the smallest trace takes than TIMES_SIZE times the
bytes out of gzip and KB_OF_OPERATION for each operation and step shown (and SPARE_MB). Damage N is the same
on every machine.
Usage: python benchmarks/damaged_traces.py [PLACES] [--only WORD]; PLACES (50); WORD: in the names of files.
Exit status 1 when something was found.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import resource
import sqlite3
import sys
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import ROOT, number_of
from simcore.diagnostics import InputError, UsageError
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.fuzz.mutants import NUMBERS, UNSAFE
from tests.hostile.names import NASTY

CORPUS = ROOT.parent / "shared" / "corpus"
PLACES, MOST_SECONDS, TIMES_SIZE, KB_OF_OPERATION, SPARE_MB = 50, 20.0, 3.0, 4.0, 15.0
# An error has one of these: where in the file it is, or that the whole file is meant.
PLACE = re.compile(
    r"\bbyte \d|\bevent \d|\brow \d|the list of tables|:\d+:\d+: error unknown-format|no event"
    r"|more than \d+ MiB|UTF-8|error unsupported-format"
)
NUMBER = re.compile(rb"\d+")
ODD_TIMES: tuple[Any, ...] = (
    -1, -1e9, 0, 1e-9, 0.5, 2**53, 1e15, 1e18, 1e300, Raw(b"1" * 30), None, "7", True, [], {}
)  # fmt: skip

Damage = Callable[[bytes, random.Random], bytes]


class Outcome(NamedTuple):
    """What came of one file. said: its error, "" of a picture; ops: operations and steps of a picture; wrong:
    what was found of it.
    """

    said: str
    ops: int
    seconds: float
    megabytes: float
    wrong: str


def cut(data: bytes, drawn: random.Random) -> bytes:
    """The bytes up to one of them."""
    return data[: drawn.randrange(len(data))]


def flipped(data: bytes, drawn: random.Random) -> bytes:
    """1 to 20 bits, anywhere."""
    changed = bytearray(data)
    for _ in range(drawn.randint(1, 20)):
        changed[drawn.randrange(len(changed))] ^= 1 << drawn.randrange(8)
    return bytes(changed)


def numbers(data: bytes, drawn: random.Random) -> bytes:
    """Numbers of the text, 5 of them, as others; of a database bytes."""
    changed = bytearray(data)
    for _ in range(5):
        found = NUMBER.search(changed, drawn.randrange(len(changed)))
        if found:
            changed[found.start() : found.end()] = drawn.choice(NUMBERS)
    return bytes(changed)


def _of_events(change: Callable[[list[dict[str, Any]], random.Random], None]) -> Damage:
    def made(data: bytes, drawn: random.Random) -> bytes:
        file = msgspec.json.decode(data)
        change(file["traceEvents"], drawn)
        return msgspec.json.encode(file)

    return made


def _shuffle(events: list[dict[str, Any]], drawn: random.Random) -> None:
    drawn.shuffle(events)


def _times(events: list[dict[str, Any]], drawn: random.Random) -> None:
    """Times and lengths of 1 to 50 events, and of all of a category."""
    for event in drawn.sample(events, min(len(events), drawn.randint(1, 50))):
        event[drawn.choice(("dur", "ts"))] = drawn.choice(
            ODD_TIMES if drawn.random() < 0.01 else ODD_TIMES[:7]
        )
    cat = drawn.choice(("kernel", "cpu_op", "cuda_runtime", "user_annotation", "gpu_memcpy"))
    factor = drawn.choice((-1, 0, 1e-6, 1e6))
    for event in events:
        if event.get("cat") == cat and isinstance(event.get("dur"), (int, float)):
            event["dur"] *= factor


def _names(events: list[dict[str, Any]], drawn: random.Random) -> None:
    """Names and arguments of a tenth of the events."""
    odd: tuple[Any, ...] = (*NASTY.values(), "x" * 100_000, "ProfilerStep#" + "9" * 40, "nccl" * 200, 7, None)
    for event in drawn.sample(events, len(events) // 10 + 1):
        event["name"] = drawn.choice(odd)
        if isinstance(event.get("args"), dict) and event["args"]:
            event["args"][drawn.choice(list(event["args"]))] = drawn.choice(odd)


def _nested(events: list[dict[str, Any]], drawn: random.Random) -> None:
    """Lists inside each other in an event: as many as Python's own writer makes."""
    deep: list[Any] = []
    for _ in range(drawn.choice((10, 100, 400))):
        deep = [deep]
    drawn.choice(events)[drawn.choice(("args", "name", "ts", "extra"))] = deep


OF_TEXT: dict[str, Damage] = {
    "cut": cut, "flipped": flipped, "numbers": numbers, "shuffled": _of_events(_shuffle),
    "times": _of_events(_times), "names": _of_events(_names), "nested": _of_events(_nested),
}  # fmt: skip
OF_BYTES: dict[str, Damage] = {"cut": cut, "flipped": flipped}


def _rows(path: Path, drawn: random.Random) -> None:
    """Cells of a database, 200 of each table of kernels, copies and ranges, as others."""
    connection = sqlite3.connect(path)
    odd = [-1, 0, 2**62, -(2**63), 1e300, None, "x", b"\xff", *NASTY.values()]
    with connection:
        tables = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            if table.startswith("CUPTI") or table in ("NVTX_EVENTS", "StringIds"):
                columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
                rows = [row[0] for row in connection.execute(f"select rowid from {table}")]
                for row in drawn.sample(rows, min(len(rows), 200)):
                    words = f"update or ignore {table} set {drawn.choice(columns)} = ? where rowid = ?"
                    try:
                        connection.execute(words, (drawn.choice(odd), row))
                    except sqlite3.IntegrityError:
                        continue
    connection.close()


def _event(**given: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10} | given


def large() -> Iterator[tuple[str, str, bytes]]:
    """(what it is, name, bytes) of files that are made to take long."""
    million = 10**6
    head, tail = '{"traceEvents": [', "]}"
    one = json.dumps(_event())
    streams = (one.replace("100", str(n % 1000)).replace('"tid": 7', f'"tid": {n}') for n in range(million))
    yield "10^6 streams", "streams.json", (head + ",".join(streams) + tail).encode()
    names = (one.replace("gemm", f"k{n}") for n in range(million // 4))
    yield "250,000 names", "names.json", (head + ",".join(names) + tail).encode()
    step = json.dumps(_event(cat="user_annotation", name="ProfilerStep#100", dur=2))
    steps = (step.replace("100", str(n)) for n in range(100_000))
    yield "100,000 steps", "steps.json", (head + ",".join([one, *steps]) + tail).encode()
    ops = (
        json.dumps(_event(cat="cpu_op", name="a", tid=1, ts=n, dur=2 * (million - n))) for n in range(100_000)
    )
    launch = json.dumps(_event(cat="cuda_runtime", tid=1, ts=99_999, args={"correlation": 5}))
    kernel = json.dumps(_event(args={"correlation": 5}))
    yield (
        "100,000 operations inside each other",
        "deep.json",
        (head + ",".join([kernel, launch, *ops]) + tail).encode(),
    )
    calls = (json.dumps(_event(name="ncclKernel_AllReduce", ts=n)) for n in range(100_000))
    yield "100,000 collectives at once", "calls.json", (head + ",".join(calls) + tail).encode()
    for what, inside in (("[", "lists"), ('{"a":', "objects")):
        text = head + '{"ph": "X", "cat": "kernel", "args": ' + what * million
        yield f"10^6 {inside} inside each other", "nested.json", text.encode()
        yield f"10^6 {inside}, gzip", "nested.json.gz", gzip.compress(text.encode(), 1)
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    blanks = (bomb.compress(b" " * 2**20) for _ in range(20_000))
    data = b"".join([bomb.compress(head.encode()), *blanks, bomb.flush()])
    yield "gzip of 20 GiB of blanks", "bomb.json.gz", data
    yield "gzip of gzip", "twice.json.gz", gzip.compress(gzip.compress((head + one + tail).encode()))
    for what, odd in (("NaN", one.replace(" 10}", " NaN}")), ("a quote", one.replace("gemm", 'ge"mm'))):
        text = head + ",".join([odd] * (million // 4)) + tail
        yield f"250,000 times {what} where none may be", "odd.json", text.encode()
    yield "one value of 100 MB", "value.json", (head + one.replace("gemm", "x" * 10**8) + tail).encode()


def _opened(path: Path) -> tuple[str, int, str]:
    """(the error, "" of a picture; its operations and steps; what is wrong with the answer)."""
    try:
        found = open_input(str(path), OpeningOptions(cache=False))
        if not isinstance(found, MeasuredRun):
            return "", 0, "is no measured run"
        results = run_recording(found, Parameters())
        page = run_page(results)
        values = run_json(results)
    except (InputError, UsageError) as error:
        said = str(error).split("\n")
        if any(UNSAFE.search(line) for line in said):
            return said[0], 0, "control character"
        if not all(path.name in line for line in said) or not any(PLACE.search(line) for line in said):
            return said[0], 0, f"no file or place: {said[0]}"
        return said[0], 0, ""
    count = found.ops + len(found.recorded.steps if found.recorded else ())
    text = page if isinstance(page, str) else "\n".join(page)
    said = [*text.split("\n"), *(one.text() for one in found.diagnostics)]
    unsafe = next((line for line in said if UNSAFE.search(line)), None)
    if unsafe is not None:
        return "", count, f"control character: {unsafe[:80]!r}"
    for one in values["classes"]:
        accounts = sum(one["compute_ns"].values()) + sum(one["exposed_ns"].values())
        accounts += sum(one[f"{name}_ns"] for name in ("wait", "bubble", "host", "idle"))
        if accounts != values["step_time_ns"]:
            return "", count, f"accounts of {accounts} ns in a step of {values['step_time_ns']} ns"
    return "", count, ""


def _outcome(path: Path) -> Outcome:
    """Opens a file in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        # What runs away is ended: a signal is a finding.
        resource.setrlimit(resource.RLIMIT_CPU, (int(3 * MOST_SECONDS), int(3 * MOST_SECONDS)))
        try:
            said = _opened(path)
        except BaseException:
            said = "", 0, "traceback: " + " | ".join(traceback.format_exc().split("\n")[-4:])
        os.write(writing, json.dumps([said[0][:2000], said[1], said[2][:2000]]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status, used = os.wait4(child, 0)
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6
    if status or not answer:
        return Outcome("", 0, seconds, megabytes, f"ended with {status}")
    said, ops, wrong = json.loads(answer)
    return Outcome(said, ops, seconds, megabytes, wrong)


class Opener:
    """Opens files in processes that begin with the memory of this one before it made any damage."""

    def __init__(self) -> None:
        asked, self._asks = os.pipe()
        self._answers, answers = os.pipe()
        if not os.fork():
            os.close(self._asks)
            with os.fdopen(asked) as paths:
                for line in paths:
                    os.write(answers, json.dumps(_outcome(Path(line.rstrip("\n")))).encode() + b"\n")
            os._exit(0)
        os.close(asked)
        os.close(answers)
        self._lines = os.fdopen(self._answers)

    def __call__(self, path: Path) -> Outcome:
        os.write(self._asks, f"{path}\n".encode())
        return Outcome(*json.loads(self._lines.readline()))


class Search:
    """Opens files and prints a line of each kind of damage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened = Opener()
        self.found: list[str] = []
        self.errors: dict[str, int] = {}
        small = folder / "small.json"
        small.write_text(json.dumps({"traceEvents": [_event()]}))
        self.least = self.opened(small).megabytes

    def line(self, what: str, files: Iterator[tuple[Path, int]]) -> None:
        """files: each with its bytes out of gzip."""
        count = pictures = 0
        seconds = megabytes = of_bound = 0.0
        for path, unpacked in files:
            one = self.opened(path)
            bound = self.least + TIMES_SIZE * unpacked / 1e6 + KB_OF_OPERATION * one.ops / 1e3 + SPARE_MB
            count += 1
            pictures += not one.said
            seconds, megabytes = max(seconds, one.seconds), max(megabytes, one.megabytes)
            of_bound = max(of_bound, one.megabytes / bound)
            if one.said:
                kind = re.sub(r"'[^']*'|`[^`]*`|\d+", "N", one.said.replace(str(path), "FILE"))
                self.errors[kind] = self.errors.get(kind, 0) + 1
            wrong = one.wrong
            if not wrong and one.seconds > MOST_SECONDS:
                wrong = f"{one.seconds:.1f} s"
            if not wrong and one.megabytes > bound:
                wrong = f"{one.megabytes:.0f} MB, bound {bound:.0f}"
            if wrong:
                self.found.append(f"{what}, {path.name}: {wrong}")
            path.unlink()
        print(
            f"{what:<44}{count:>6}{pictures:>10}{count - pictures:>9}{seconds:>8.2f} s{megabytes:>6.0f} MB"
            f"{of_bound:>10.2f}",
            flush=True,
        )

    def damaged(self, files: Sequence[Path], damage: Damage, what: str, places: int) -> None:
        """Each of the files with a damage of its text, or of its bytes as they are."""

        def made() -> Iterator[tuple[Path, int]]:
            for file in files:
                data = file.read_bytes()
                unpacked = data if file.suffix != ".gz" else gzip.decompress(data)
                is_text = not what.startswith("gzip") and file.suffix == ".gz"
                end = ".json" if is_text else file.suffix
                for number in range(places):
                    drawn = random.Random(f"{file.name} {what} {number}")
                    path = self.folder / f"{file.name.split('.')[0]}_{number}{end}"
                    path.write_bytes(damage(unpacked if is_text else data, drawn))
                    yield path, path.stat().st_size if is_text else len(unpacked)

        self.line(what, made())

    def cells(self, files: Sequence[Path], places: int) -> None:
        """Databases with other cells."""

        def made() -> Iterator[tuple[Path, int]]:
            for file in files:
                for number in range(places):
                    copy = self.folder / f"{number}.sqlite"
                    copy.write_bytes(file.read_bytes())
                    _rows(copy, random.Random(f"{file.name} rows {number}"))
                    yield copy, copy.stat().st_size

        self.line("database, cells", made())

    def made(self) -> None:
        """What is made large."""
        for what, name, data in large():
            path = self.folder / name
            path.write_bytes(data)
            # What is refused for its size is read up to a hundred times it.
            size = len(data) * (100 if name.startswith("bomb") else 1)
            del data
            self.line(what, iter([(path, size)]))


def main() -> int:
    """Opens all, prints the table and what was found."""
    words = sys.argv[1:]
    only = words[words.index("--only") + 1] if "--only" in words else ""
    places = int(number_of(words, PLACES))
    print(f"python {sys.version.split()[0]}, {places} places, at most {MOST_SECONDS:.0f} s of the processor")
    print(f"{'':<44}{'files':>6}{'pictures':>10}{'refused':>9}{'slowest':>10}{'most':>9}{'of bound':>10}")
    with tempfile.TemporaryDirectory() as folder:
        search = Search(Path(folder))
        texts = [path for path in sorted((CORPUS / "kineto").rglob("*.json.gz")) if only in str(path)]
        databases = [path for path in sorted((CORPUS / "nsys").glob("*.sqlite")) if only in str(path)]
        for what, damage in OF_TEXT.items():
            search.damaged(texts, damage, what, places)
        for what, damage in OF_BYTES.items():
            search.damaged(texts, damage, f"gzip, {what}", places)
        for what, damage in OF_BYTES.items():
            search.damaged(databases, damage, f"database, {what}", places)
        search.cells(databases, places)
        if only in "made":
            search.made()
    print("errors:")
    for kind, count in sorted(search.errors.items(), key=lambda one: -one[1]):
        print(f"{count:>6}  {kind[:160]}")
    for line in search.found:
        print(f"found: {line}")
    print(f"found: {len(search.found) or 'nothing'}")
    return int(bool(search.found))


if __name__ == "__main__":
    sys.exit(main())
