"""The process that unpickles: dumps come in on standard input, columns of plain values go out.

It runs this file alone, as a program, because a pickle can end a process before any class is asked for: nine
bytes let the memo grow to 2 GB, 3 MB of nested tuples overflow the stack where one is hashed. The system
bounds its memory and its processor time for each dump. A pickle makes plain containers here and nothing
else: every request for a class or for an object by its id is refused.

A request is the length of a dump, 8 bytes, and the dump, or (OF_FILE) those of the path of its file; a
reply the length and what `marshal` writes, which holds no objects: the table of the dump, or in words why it
cannot be read. The first argument is the file whose `read_table` makes the table: `simcore/flight/columns.py`
of a flight recorder, `simcore/snapshots/columns.py` of an allocator. Such a file takes from here what both
need.
"""

from __future__ import annotations

import gc
import marshal
import sys
from _pickle import Unpickler, UnpicklingError
from array import array
from operator import itemgetter

if False:  # `typing` takes 5 ms to import.
    from collections.abc import Callable, Sequence
    from typing import Any

# Objects take up to 20 times the bytes of a dump whose strings and frames are shared.
_MEMORY_BYTES, _MEMORY_RATIO = 96 << 20, 40
# A dump of 2,000 entries, 0.6 MB, takes 20 ms.
_SECONDS, _SECONDS_A_BYTE = 5, 2e-6
_MOST_FRAMES, _MOST_TEXT = 256, 4096
# The bit of a length that says that a path follows.
OF_FILE = 1 << 62
NONE, _LEAST, _MOST = -1, -(1 << 63), (1 << 63) - 1
# The name by which tables import this file, also where it runs as a program.
_NAME = "simcore.unpickling.worker"


class _PlainUnpickler(Unpickler):
    """Makes plain containers alone."""

    def find_class(self, module: str, name: str) -> object:
        raise UnpicklingError(f"it asks for {module[:60]}.{name[:60]}")

    def persistent_load(self, name: object) -> object:
        raise UnpicklingError("it asks for an object by its id")


class _Bytes:
    """Bytes as a file that is read ahead to its end at once: of one that is not, each opcode is a call."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def peek(self, count: int) -> bytes:
        return self.data[self.at :]

    def read(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def readline(self) -> bytes:
        end = self.data.find(b"\n", self.at) + 1 or len(self.data)
        return self.read(end - self.at)


class DumpError(ValueError):
    """Why a dump cannot be read."""


def load(data: bytes) -> object:
    """Returns the plain containers in a dump, a pickle or JSON. Raises `DumpError`."""
    try:
        if data[:1] == b"\x80":
            return _PlainUnpickler(_Bytes(data)).load()
        import json

        return json.loads(data)
    except MemoryError:
        raise
    except RecursionError:
        raise DumpError("it is nested too deeply") from None
    except Exception as error:
        words = str(error) or type(error).__name__
        message = f"it is damaged, or holds more than plain values: {words[:200]}"
        raise DumpError(message) from None


def text_of(value: object) -> str:
    return value[:_MOST_TEXT].encode(errors="replace").decode() if isinstance(value, str) else ""


def integer_of(value: object) -> int:
    return value if type(value) is int and _LEAST <= value <= _MOST else NONE


def index_values(values: list[Any], text: Callable[[Any], Any]) -> tuple[list[Any], array[int]]:
    """Returns (the distinct values as `text` gives them, the index of each). Raises TypeError for lists."""
    distinct = dict.fromkeys(values)
    index_of = dict(zip(distinct, range(len(distinct)), strict=True))
    return list(map(text, distinct)), array("I", list(map(index_of.__getitem__, values)))


def index_stacks(stacks: Sequence[Any]) -> tuple[list[str], array[int]]:
    """Returns (the distinct stacks, a frame a line, the innermost first; the index of each)."""
    if not any(stacks):
        return [""], array("I", bytes(4 * len(stacks)))
    # Lists that are shared are looked at once: a dump can name one a million times.
    distinct = {id(stack): stack for stack in stacks}
    # Equal stacks are told by their lines and one comparison: a key of all texts takes twice as long.
    first: dict[object, object] = {}
    equal_ones: dict[int, int] = {}
    for key, stack in distinct.items():
        try:
            other = first.setdefault(tuple(map(_LINE, stack[:_MOST_FRAMES])), stack)
            equal_ones[key] = id(other) if other == stack else key
        except (TypeError, KeyError, IndexError):
            equal_ones[key] = key
    key_of = {key: _stack_key(distinct[key]) for key in {*equal_ones.values()}}
    try:
        table, indices = index_values([key_of[equal_ones[key]] for key in distinct], _stack_text)
    except TypeError:
        return [""], array("I", bytes(4 * len(stacks)))
    # A key of all frames is hashed once for each list: tuples do not keep their hash.
    index_of = dict(zip(distinct, indices, strict=True))
    return table, array("I", [index_of[id(stack)] for stack in stacks])


_LINE, _FRAME = itemgetter("line"), itemgetter("name", "filename", "line")


def _stack_key(stack: object) -> tuple[object, ...]:
    if not isinstance(stack, (list, tuple)):
        return ()
    frames = stack[:_MOST_FRAMES]
    try:
        return tuple(map(_FRAME, frames))
    except (TypeError, KeyError, IndexError):
        return tuple(
            (frame.get("name"), frame.get("filename"), integer_of(frame.get("line")))
            for frame in frames
            if isinstance(frame, dict)
        )


def _stack_text(stack: tuple[tuple[object, object, object], ...]) -> str:
    """Returns a frame a line: name, file and line number with tabs between them."""
    lines = (f"{text_of(name)}\t{text_of(file)}\t{integer_of(line)}" for name, file, line in stack)
    return "\n".join(" ".join(line.split("\n")) for line in lines)


def reply_to(data: bytes, read_table: Callable[[object, int], dict[str, Any]]) -> dict[str, Any] | str:
    """Returns the table of a dump, or in words why it cannot be read.

    read_table: makes it of the plain containers and the bytes of the dump.
    """
    try:
        return read_table(load(data), len(data))
    except DumpError as error:
        return str(error)
    except MemoryError:
        return f"it needs more memory than a dump of {len(data)} bytes may take"
    except RecursionError:
        return "it is nested too deeply"


def _set_limits(size: int) -> None:
    """Bounds the memory and the processor time of this process for a dump of `size` bytes."""
    try:
        import resource
    except ImportError:
        return
    try:
        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        used = 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limits = (
        (resource.RLIMIT_AS, used + _MEMORY_BYTES + _MEMORY_RATIO * size),
        (resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime + _SECONDS + _SECONDS_A_BYTE * size) + 1),
    )
    for limit, value in limits:
        hard = resource.getrlimit(limit)[1]
        try:
            resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        except (OSError, ValueError):
            continue


def _table_maker(path: str) -> Callable[[object, int], dict[str, Any]]:
    """Returns the `read_table` of a file of this program."""
    from importlib.machinery import SourceFileLoader

    sys.modules[_NAME] = sys.modules["__main__"]
    namespace: dict[str, Any] = {"__name__": "columns"}
    code = SourceFileLoader("columns", path).get_code("columns")
    assert code is not None
    exec(code, namespace)
    maker: Callable[[object, int], dict[str, Any]] = namespace["read_table"]
    return maker


def main() -> None:
    """Answers requests until standard input ends."""
    read_table = _table_maker(sys.argv[1])
    # A dump has no circles, and a collection walks through all of it many times.
    gc.disable()
    receive, send = sys.stdin.buffer, sys.stdout.buffer
    while len(head := receive.read(8)) == 8:
        request = int.from_bytes(head, "little")
        data = receive.read(request & ~OF_FILE)
        answer: dict[str, Any] | str = ""
        if request & OF_FILE:
            try:
                with open(data, "rb") as file:
                    data = file.read()
            except OSError as error:
                answer = f"the file cannot be read: {error.strerror or error}"
        _set_limits(len(data))
        try:
            reply = marshal.dumps(answer or reply_to(data, read_table))
        except (MemoryError, ValueError):
            reply = marshal.dumps("its columns need more memory than a dump may take")
        del data, answer
        send.write(len(reply).to_bytes(8, "little"))
        send.write(reply)
        send.flush()


if __name__ == "__main__":
    main()
