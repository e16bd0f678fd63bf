"""A file is opened by what is in it; everything else is refused by name, and nothing waits."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from simcore.sources.inputs import read_input
from simcore.workload import open_workload
from tests.findings import finding, findings

from .texts import FIXTURES, HEADER, REPOSITORY, read, row, text_of


def refusal(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        open_workload(str(path))
    return str(caught.value)


def refusal_of(content: str | bytes) -> str:
    data = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(InputError) as caught:
        read(data, "f")
    return str(caught.value)


def unsupported(name: str) -> str:
    return f"f:1:1: error unsupported-format found {name}, a format that this version does not open"


def packed(content: str | bytes) -> bytes:
    return gzip.compress(content if isinstance(content, bytes) else content.encode())


def test_a_file_of_any_name_opens_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "trace *.json"
    path.write_text(text_of(row()))
    workload = open_workload(str(path))
    assert (len(workload), workload.path) == (1, str(path))


def test_bytes_open_as_the_file_does(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text_of(row()))
    assert read(path.read_bytes(), str(path)) == open_workload(str(path))


def test_a_file_longer_than_the_head_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text_of(*[row(f"attention_row_{number}") for number in range(30_000)]))
    assert path.stat().st_size > 1 << 20
    workload = open_workload(str(path))
    assert (len(workload), workload.name[-1], workload.diagnostics) == (30_000, "attention_row_29999", ())


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    assert finding(refusal(path)) == f"{path}: error no-such-file"
    assert finding(refusal("")) == "-: error no-such-file"
    assert finding(refusal("a\0b")) == "a\\x00b: error no-such-file"


def test_a_directory(tmp_path: Path) -> None:
    assert finding(refusal(tmp_path)) == f"{tmp_path}: error is-a-directory"


def test_a_path_through_a_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path / "file" / "w.txt"
    assert finding(refusal(path)) == f"{path}: error unreadable-file {os.strerror(errno.ENOTDIR)}"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text_of(row()))

    def deny(*_: object) -> None:  # chmod 0 does not stop root, who runs the tests in a container
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("builtins.open", deny)
    message = refusal(path)
    monkeypatch.undo()
    assert finding(message) == f"{path}: error unreadable-file {os.strerror(errno.EACCES)}"


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert finding(refusal(path)) == f"{path}: error not-a-regular-file"
    assert "named pipe" in refusal(path)


def test_a_device_is_refused() -> None:
    assert finding(refusal("/dev/zero")) == "/dev/zero: error not-a-regular-file"
    assert "character device" in refusal("/dev/zero")


def test_a_socket_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))  # the address of a socket is limited to 107 bytes
        assert finding(refusal(path)) == f"{path}: error not-a-regular-file"
        assert "a socket" in refusal(path)


@pytest.mark.parametrize("content", ["", "\n", " \t\r\n\r", "\ufeff\n"])
def test_an_empty_file(content: str) -> None:
    assert finding(refusal_of(content)) == "f:1:1: error empty-file"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("Dear reader,\nthis is prose.\n", "Dear reader,"),
        ("DATA is what we need\nmore of\n", "DATA is what we need"),
        ("# only a comment\n", "# only a comment"),
        ('{"a": 1}', '{"a": 1}'),
        (b"\x1b[2J is no text\xff", "\\x1b[2J is no text\\xff"),
        ("x" * 50, "x" * 37 + "..."),
    ],
)
def test_an_unknown_format_shows_its_first_line_safely(content: str | bytes, shown: str) -> None:
    message = f"f:1:1: error unknown-format found '{shown}', expected the first line of a known format"
    assert refusal_of(content) == message


def test_the_rank_trace_is_refused_by_name() -> None:
    assert refusal(FIXTURES / "004_megatron_rank7_trace.txt").endswith(
        "error measured-run found a Megatron rank trace, expected a workload to simulate"
    )


# Metadata of no content, then a node: id 1, name "a".
CHAKRA = bytes([0, 5, 0x08, 1, 0x12, 1, ord("a")])


GIVE = "give the SimAI, ASTRA-sim 1.0 or op-table file that it was made from"
INSTEAD = {
    "UTF-16 text": "save it as UTF-8",
    "Chakra JSON": GIVE,
    "Chakra execution trace": GIVE,
    "PyTorch execution trace": "it has no times; open the profiler trace that was recorded beside it",
    "Vidur table": "it is a profile of inference; an op table (name, forward_compute_time ...) opens",
    "AICB log": "it is what a run measured; give the workload that AICB wrote for SimAI",
}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("layers\n".encode("utf-16"), "UTF-16 text"),
        (json.dumps({"schema": "1.0.2-chakra.0.0.4", "nodes": []}), "PyTorch execution trace"),
        (json.dumps({"workload_graph": []}), "Chakra JSON"),
        (CHAKRA, "Chakra execution trace"),
        (b"\x02\x0a\x00" + CHAKRA, "Chakra execution trace"),
        ("layer_id\tlayer_name\tcomp_time\tcomm_size\n0\ta\t1\t2\n", "Vidur table"),
        ("comm_type,comm_group,msg_size\n", "AICB log"),
    ],
)
def test_a_known_format_that_is_not_opened_is_named(content: str | bytes, name: str) -> None:
    instead = f"; {INSTEAD[name]}" if name in INSTEAD else ""
    line = 2 if content[:1] == "\n" else 1
    message = (unsupported(name) + instead).replace("f:1:", f"f:{line}:")
    assert refusal_of(content) == message
    assert refusal_of(packed(content)) == message


@pytest.mark.parametrize("name", ["000_gpt13b_tp4_old_header.txt", "003_gpt2_large_op_table.txt"])
def test_gzip_opens_as_what_is_inside(tmp_path: Path, name: str) -> None:
    plain = (FIXTURES / name).read_bytes()
    workload = read(plain, "f")
    assert read(packed(plain), "f") == workload
    assert read(packed(packed(plain)), "f") == workload
    half = len(plain) // 2
    assert read(packed(plain[:half]) + packed(plain[half:]) + b"\0" * 700, "f") == workload
    many = b"".join(packed(plain[at : at + 7]) for at in range(0, len(plain), 7))
    assert read(many, "f") == workload
    path = tmp_path / "w.gz"
    path.write_bytes(packed(plain))
    assert open_workload(str(path)).name == workload.name


def test_gzip_that_is_cut_off_or_damaged_is_refused() -> None:
    data = packed((FIXTURES / "002_gpt_1024npu.txt").read_bytes())
    early = "f:1:1: error bad-gzip the gzip data ends early, at byte"
    damaged = "f:1:1: error bad-gzip the gzip data is damaged, before byte"
    assert refusal_of(data[:-9]) == f"{early} {len(data) - 9}"
    assert refusal_of(data[:10]) == f"{early} 10"
    # Too little to tell a format.
    few = packed("{" + "".join(map(chr, range(0x4E00, 0x4F00))))
    assert refusal_of(few[:100]) == f"{early} 100"
    assert refusal_of(b"\x1f\x8b") == f"{early} 2"
    assert refusal_of(data + b"rest") == f"{damaged} {len(data) + 4}"
    assert refusal_of(b"\x1f\x8b\x08\0rest") == f"{early} 8"
    flipped = data[:500] + bytes([data[500] ^ 255]) + data[501:]
    assert refusal_of(flipped).startswith(damaged)
    twice = packed(data)
    assert refusal_of(twice[:-9]) == f"{early} {len(twice) - 9}"


def test_gzip_inside_gzip_ends_somewhere() -> None:
    data = text_of(row()).encode()
    for _ in range(3):
        data = packed(data)
    assert len(read(data, "f")) == 1
    assert finding(refusal_of(packed(data))) == "f:1:1: error bad-gzip 3"


@pytest.mark.slow
def test_more_than_the_limit_is_refused_without_growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gzip bomb, a file, a stream without end."""
    monkeypatch.setattr("simcore.workload.source.MOST_BYTES", 3 * 2**20)
    start = text_of(row())
    message = "f:1:1: error too-large found more than 3 MiB, expected at most 3 MiB"
    assert refusal_of(packed(start + " " * 2**26)) == message
    assert refusal_of(start + " " * 2**23) == message

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            begun, self.given = self.given, self.given + size
            return b" " * size if begun else start.encode()

    endless = Endless()
    with pytest.raises(InputError) as caught:
        read_input(endless, name="f")  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert endless.given < 8 * 2**20


def test_an_unopened_format_is_named_without_reading_it_all() -> None:
    start = b'{"workload_graph": ['

    class Once(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            begun, self.given = self.given, self.given + size
            return b" " * size if begun else start

    stream = Once()
    with pytest.raises(InputError, match="Chakra JSON"):
        read_input(stream)  # type: ignore[arg-type]
    assert stream.given <= 2 * 2**20


def test_a_stream_that_comes_in_drops_opens_as_a_file() -> None:
    data = packed(text_of(*[row()] * 50))

    class Drops(io.RawIOBase):
        at = 0

        def read(self, size: int = -1) -> bytes:
            self.at += 1
            return data[self.at - 1 : self.at]

    assert len(read_input(Drops())) == 50  # type: ignore[arg-type]


def test_a_stream_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        read_input(None)
    assert finding(str(caught.value)) == "standard input: error unreadable-file"
    assert "closed" in str(caught.value)

    class Folder(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    with pytest.raises(InputError) as caught:
        read_input(Folder())  # type: ignore[arg-type]
    assert finding(str(caught.value)) == f"standard input: error unreadable-file {os.strerror(errno.EISDIR)}"


@pytest.mark.parametrize(
    "content",
    [
        b"\x05\x08\x01",  # shorter than its length says
        b"\x02\x0b\x00",  # a group, which no trace has
        b"\x02\x00\x01",  # field number 0
        b"\x02\x12\x7f",  # a string beyond the message
        b"\x01\x09",  # 8 bytes beyond the message
        b"\x02\x08\xff",  # a number without end
        b"\x01\x12",  # a length without end
        b"\xff" * 11 + b"\x01",
    ],
)
def test_bytes_that_only_look_like_protobuf_are_no_chakra_trace(content: bytes) -> None:
    assert "error unknown-format" in refusal_of(content)


def test_blank_lines_a_byte_order_mark_and_comments_may_come_before_the_header() -> None:
    workload = read("\ufeff\n  \n# made by hand\n" + text_of(row()), "f")
    assert findings([one.text() for one in workload.diagnostics]) == ["f:3:1: note comment '#'"]
    assert workload.line[0] == 6


def test_the_policy_may_be_in_lower_case() -> None:
    workload = read(text_of(row(), header=HEADER.lower().replace("npu", "NPU")), "f")
    assert workload.policy == "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
    assert workload.header.tp == 2


def test_importing_the_room_loads_no_screen_and_no_heavy_module() -> None:
    code = "import sys, simcore.workload; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "simcore.workload.opening" in loaded
    assert not loaded & {"textual", "rich", "tui", "json", "pathlib", "asyncio", "logging"}
