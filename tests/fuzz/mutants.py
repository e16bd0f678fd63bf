"""Real files with mistakes in them: mutant N is the same on every machine and Python version.

The source of all choices is a hash of (number, what it is about), not a random generator whose
sequence a Python version may change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# Any file of the fixtures, and small ones of the kinds that they have no example of.
SMALL = {
    "op_table.json": b'[{"name": "a_grad", "forward_compute_time": 1.5, "forward_comm_type": null, '
    b'"forward_comm_size": 0, "backward_compute_time": 2e-3, "backward_comm_type": "ALLREDUCE_ASYNC", '
    b'"backward_comm_size": 4096, "weight_grad_compute_time": 0, "weight_grad_comm_type": "None", '
    b'"weight_grad_comm_size": 0, "process_time": 0}]\n',
    "old_transformer.txt": b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 2 0 1 "
    b"checkpoint_initiates: 1 2\n3\nQ -1 50 ALLREDUCE 4000 60 NONE 0 70 ALLREDUCE 9000 10\n"
    b"K -1 50 ALLGATHER_EP 4000 60 ALLTOALL 8 70 ALLREDUCE_DP_EP 9000 10\n"
    b"V -1 50 NONE 0 60 REDUCESCATTER 7 70 NONE 0 10\n",
    "spans.csv": b"rank,stream,start_ns,end_ns,name,kind,group,step,microbatch\n0,7,10,50,a,forward,,3,0\n"
    b'0,8,50,75,sum,all-reduce,tp:0-1,3,0\n0,8,75,90,"a ""b"", c",send,"0,1",3,0\n0,7,75,80,,host,,,\n'
    b'1,7,10,60,a,forward,,3,0\n1,8,60,75,sum,all-reduce,tp:0-1,3,0\n1,8,80,90,act,receive,"0,1",3,0\n',
}
NUMBERS = (
    b"0", b"-1", b"1", b"1e9", b"1e400", b"9" * 18, b"9223372036854775807", b"9223372036854775808",
    b"9" * 60, b"0.5", b"nan", b"inf", b"1_0", b"0x10", "\u0663".encode(), b"", b"+7", b"1e-400",
    b"16777216", b"16777217",
)  # fmt: skip
PIECES = (
    b"\0", b"\x1b[2J", b"\x7f", b"\x08", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8",
    b"\xe2\x80\xae", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\r",
    b"\r\n", b"\n", b"\t", b" ", b"#", b"//", b":", b",", b'"', b"{", b"]", b"\\u0000", b"NONE",
    b"ALLREDUCE_EP", b"SENDRECV", b"\x1f\x8b",
)  # fmt: skip
# What a terminal must never get from a file.
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNOPENED = re.compile("rank|astra-sim__|libra|yleintel|all_gather")


class Chooser:
    """Choices that depend on a number and on how many were made before, and on nothing else."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._made = 0

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1 (0 for no limit)."""
        self._made += 1
        digest = blake2b(b"%d %d" % (self._number, self._made), digest_size=8).digest()
        return int.from_bytes(digest, "big") % max(limit, 1)

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]


def originals(more: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files that are mutated, by name: the fixtures, small ones, and `more`."""
    files = [*sorted(FIXTURES.glob("*.txt")), *more]
    return {path.name: path.read_bytes() for path in files} | SMALL


def mutant(number: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """(what it was made of, the bytes of mutant `number`)."""
    choose = Chooser(number)
    opened = [name for name in sorted(files) if not _UNOPENED.search(name)]
    # Of formats that are refused by name, one in ten: there is little to break.
    name = choose.one_of(sorted(files) if choose.below(10) == 0 else opened)
    data = files[name]
    changes = []
    for _ in range(choose.one_of((1, 1, 1, 2, 2, 3, 5))):
        change = choose.one_of(CHANGES)
        data = change(data, choose)
        changes.append(change.__name__.lstrip("_"))
    return f"{name}: {', '.join(changes)}", data


def _flip(data: bytes, choose: Chooser) -> bytes:
    at = choose.below(len(data))
    return data[:at] + bytes([data[at] ^ (1 << choose.below(8))]) + data[at + 1 :] if data else data


def _random_byte(data: bytes, choose: Chooser) -> bytes:
    at = choose.below(len(data))
    return data[:at] + bytes([choose.below(256)]) + data[at + 1 :]


def _insert(data: bytes, choose: Chooser) -> bytes:
    at = choose.below(len(data) + 1)
    return data[:at] + choose.one_of(PIECES) * (1 + choose.below(3)) + data[at:]


def _cut_off(data: bytes, choose: Chooser) -> bytes:
    return data[: choose.below(len(data) + 1)]


def _cut_beginning(data: bytes, choose: Chooser) -> bytes:
    return data[choose.below(min(len(data), 400) + 1) :]


def _drop_line(data: bytes, choose: Chooser) -> bytes:
    lines = data.split(b"\n")
    lines.pop(choose.below(len(lines)))
    return b"\n".join(lines)


def _double_line(data: bytes, choose: Chooser) -> bytes:
    lines = data.split(b"\n")
    line = choose.below(len(lines))
    return b"\n".join([*lines[:line], *[lines[line]] * (2 + choose.below(50)), *lines[line + 1 :]])


def _join_lines(data: bytes, choose: Chooser) -> bytes:
    lines = data.split(b"\n")
    line = choose.below(len(lines))
    joined = choose.one_of((b"", b" ", b"\t")).join(lines[line : line + 2])
    return b"\n".join([*lines[:line], joined, *lines[line + 2 :]])


def _join_all(data: bytes, choose: Chooser) -> bytes:
    return data.replace(b"\n", choose.one_of((b"", b" ", b"\t", b"\r")))


def _break_line(data: bytes, choose: Chooser) -> bytes:
    words = data.split(b"\t")
    at = choose.below(len(words))
    return b"\t".join(words[:at]) + b"\n" + b"\t".join(words[at:])


def _swap_lines(data: bytes, choose: Chooser) -> bytes:
    lines = data.split(b"\n")
    first, second = choose.below(len(lines)), choose.below(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _swap_columns(data: bytes, choose: Chooser) -> bytes:
    first, second = choose.below(12), choose.below(12)
    lines = []
    for line in data.split(b"\n"):
        cells = line.split(b"\t") if b"\t" in line else line.split(b" ")
        if max(first, second) < len(cells):
            cells[first], cells[second] = cells[second], cells[first]
        lines.append((b"\t" if b"\t" in line else b" ").join(cells))
    return b"\n".join(lines)


def _other_number(data: bytes, choose: Chooser) -> bytes:
    words = data.replace(b"\t", b" ").split(b" ")
    places = [at for at, word in enumerate(words) if word.isdigit()]
    if not places:
        return data
    # Half of the time one of the header: there are few of them, and they decide most.
    words[choose.one_of(places[:12] if choose.below(2) else places)] = choose.one_of(NUMBERS)
    return b" ".join(words)


def _crlf(data: bytes, choose: Chooser) -> bytes:
    return data.replace(b"\n", choose.one_of((b"\r\n", b"\r", b"\n\n", b"\n\r")))


def _other_encoding(data: bytes, choose: Chooser) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(choose.one_of(("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp037")), "replace")


def _gzip(data: bytes, choose: Chooser) -> bytes:
    import gzip

    packed = gzip.compress(data, mtime=0)
    return packed[: len(packed) - choose.below(20)] if choose.below(2) else packed


_GENTLE = (_flip, _random_byte, _insert, _drop_line, _double_line, _join_lines, _break_line, _swap_lines)
_ROUGH = (_cut_off, _cut_beginning, _join_all, _swap_columns, _crlf, _other_encoding, _gzip)
CHANGES = (*_GENTLE * 3, *(_other_number,) * 8, *_ROUGH)
