"""Files that are no input are named for what they are, with the way on, through every door."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input, read_input
from tests.says import figures

CASES = Path(__file__).parents[1] / "kineto" / "cases" / "refused"
RAW = re.compile(r"\\u[dD][89a-fA-F]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# File -> what it is called, and what is said of the way on.
SAID = {
    "ascend_trace_view.json": ("Ascend", "Kineto"),
    "autograd_legacy.json": ("torch.autograd.profiler", "torch.profiler"),
    "deepspeed_comms.log": ("DeepSpeed", "torch.profiler"),
    "horovod.json": ("Horovod", "torch.profiler"),
    "jax.trace.json": ("JAX", "nsys export --type sqlite"),
    "lfs_pointer.json": ("Git LFS pointer", "git lfs pull"),
    "nccl_tests.log": ("nccl-tests", "wltui collective"),
    "op_statistic.csv": ("Ascend", "Kineto"),
    "perfetto.pftrace": ("Perfetto", "JSON"),
    "ray_timeline.json": ("Ray", "torch.profiler"),
    "report.nsys-rep": ("Nsight Systems report", "nsys export --type sqlite"),
    "trace.json.zst": ("Zstandard", "unpack it first"),
    "trace.xplane.pb": ("XLA", "nsys export --type sqlite"),
    "traces.tar.gz": ("tar archive", "unpack it first"),
    "traces.zip": ("zip archive", "unpack it first"),
}


def refusal(data: bytes, name: str = "f") -> str:
    """What is said of bytes that come from a stream."""
    with pytest.raises(InputError) as caught:
        read_input(io.BytesIO(data), name=name)
    (one,) = caught.value.diagnostics
    assert one.severity == "error"
    assert not RAW.search(one.text()), one.text()
    return f"{one.code}: {one.message}"


@pytest.mark.parametrize("name", SAID)
def test_a_file_is_named_with_the_way_on_through_every_door(name: str, tmp_path: Path) -> None:
    path = CASES / name
    said = refusal(path.read_bytes())
    assert said.startswith("unsupported-format: found a"), said
    assert all(word in said for word in SAID[name]), said
    for door in (lambda: open_input(str(path)), lambda: open_input(str(path), OpeningOptions(ranks="0"))):
        with pytest.raises(InputError) as caught:
            door()
        assert [f"{one.code}: {one.message}" for one in caught.value.diagnostics] == [said]
    checked = check_file_of(lambda: open_input(str(path)))
    assert (checked.errors, [one.code for one in checked.diagnostics]) == (1, ["unsupported-format"])
    (tmp_path / name).write_bytes(path.read_bytes())
    with pytest.raises(InputError) as caught:
        open_input(str(tmp_path))
    alone = str(caught.value)
    assert name in alone
    assert "unpack" in alone if "unpack" in said else all(word in alone for word in SAID[name]), alone
    assert not RAW.search(alone)
    # Beside a trace.
    (tmp_path / "rank0.json").write_bytes((CASES / "array_top.json").read_bytes())
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    beside = "\n".join(one.text() for one in run.diagnostics)
    assert SAID[name][0] in beside, beside


def tar(form: int, name: str = "rank0.json") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        data = b"{" + b" " * 2000
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def zipped(*names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return packed.getvalue()


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def message(number: int, *fields: bytes) -> bytes:
    """A field of Protocol Buffers that is a text or a message."""
    content = b"".join(fields)
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


OLD_TAR = tar(tarfile.USTAR_FORMAT)
BEHIND_SUM = OLD_TAR[156:257] + bytes(8) + OLD_TAR[265:512]
# Of before the word ustar.
FIRST_TAR = OLD_TAR[:148] + b"%06o\0 " % (sum(OLD_TAR[:148]) + 8 * 32 + sum(BEHIND_SUM)) + BEHIND_SUM
CHROME = {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}


def events(*some: dict[str, Any], **top: Any) -> bytes:
    return json.dumps({"traceEvents": [*some, CHROME]} | top).encode()


KINDS: list[tuple[bytes, str]] = [
    *((tar(form), "tar archive") for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)),
    (tar(tarfile.GNU_FORMAT, "long/" * 40 + "name"), "tar archive"),
    (FIRST_TAR + OLD_TAR[512:], "tar archive"),
    (gzip.compress(tar(tarfile.PAX_FORMAT)), "tar archive"),
    (zipped("a.json", "b.json"), "zip archive"),
    (zipped(), "zip archive"),
    (lzma.compress(b"{}"), "xz file"),
    (lzma.compress(tar(tarfile.GNU_FORMAT)), "xz file"),
    (bz2.compress(b"{}"), "bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(60), "7z archive"),
    (b"\x28\xb5\x2f\xfd\x24\x02\x11\0\0{}", "Zstandard file"),
    (b"version https://git-lfs.github.com/spec/v1\next-0-a sha256:1\noid sha256:2\n", "Git LFS pointer"),
    (pickle.dumps({"a": 1}), "Python pickle"),
    (message(1, message(2, b"/host:CPU"), message(3, b"\x08\x01")) + message(2, b"e"), "XLA profile"),
    (message(1, number(1, 300), message(2, b"/device:TPU:0"), message(3, bytes(2**21))), "XLA profile"),
    (message(1, message(2, b"/host:metadata")), "XLA profile"),
    (message(1, message(6, number(1, 1)), number(10, 1)) + message(1, number(8, 2**40)), "Perfetto"),
    (message(1, number(8, 5), number(10, 77), message(11, number(9, 1))) * 50_000, "Perfetto"),
    (b"NVIDIA Tegra Profiler Report 2023@1@2\0" + bytes(range(256)), "Nsight Systems report"),
    (b"# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 8\n", "nccl-tests"),
    (b"# nccl-tests version 2.17.1 nccl-headers=22703\n", "nccl-tests"),
    (b"srun: job 7\n#       size         count      type   redop\n", "nccl-tests"),
    (b"[2024-01-01 00:00:00,123] [INFO] [Rank 0] comm op: all_reduce | time (ms): 1.2 | msg size: 4.0 KB",
     "DeepSpeed"),
    (b"Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type\n0,0,1,1,1,a,b\n", "Ascend"),
    (b"Model Name,OP Type,Core Type,Count,Total Time(us)\na,b,c,1,2\n", "Ascend"),
    (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "x", "nodes": []}', "PyTorch execution"),
    (events({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:TPU:0"}}), "JAX"),
    (events(CHROME | {"args": {"hlo_module": "jit_f"}}, displayTimeUnit="ns"), "JAX"),
    (events({"ph": "B", "name": "NEGOTIATE_ALLGATHER", "ts": 1, "pid": 1}), "Horovod"),
    (events(CHROME | {"cat": "task:execute", "tid": "worker:01ab"}), "Ray"),
    (events(CHROME | {"pid": "CUDA functions"}), "torch.autograd.profiler"),
    (events({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "Ascend Hardware"}}), "Ascend"),
    (events(CHROME | {"cat": "cpu_op"}, CHROME | {"args": {"Task Type": "AI_VECTOR_CORE"}}), "Ascend"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "name"), KINDS, ids=[f"{at} {kind[1]}" for at, kind in enumerate(KINDS)])
def test_more_of_each_kind(data: bytes, name: str) -> None:
    said = refusal(data)
    assert said.startswith("unsupported-format: found "), said
    assert name in said
    assert "; " in said
    assert refusal(gzip.compress(data)) == said


@pytest.mark.parametrize(
    "data",
    [
        events(CHROME | {"cat": "io"}, CHROME | {"cat": "net,rpc"}),
        json.dumps([CHROME] * 3).encode()[:-1],
        ("\n".join([json.dumps(CHROME)] * 3)).encode(),
        (CASES.parent / "pipeline_chrome.json").read_bytes(),
    ],
)
def test_chrome_traces_of_other_programs_open(data: bytes) -> None:
    run = read_input(io.BytesIO(data))
    assert isinstance(run, MeasuredRun)
    assert run.recorded is not None
    assert run.recorded.format == "chrome"


def test_a_trace_of_kineto_may_say_such_words() -> None:
    """A device of its own: what another tool calls itself in an argument or name is no reason."""
    kernel = CHROME | {"cat": "kernel", "args": {"stream": 7, "Task Type": "AI_CORE", "hlo_op": "a"}}
    run = read_input(io.BytesIO(events(kernel, CHROME | {"name": "NEGOTIATE_ALLREDUCE", "cat": "cpu_op"})))
    assert isinstance(run, MeasuredRun)
    named = CHROME | {"name": "NEGOTIATE_ALLREDUCE"}
    host = read_input(io.BytesIO(events(CHROME | {"cat": "cpu_op"}, named)))
    assert isinstance(host, MeasuredRun)
    assert refusal(events(CHROME | {"cat": "overhead"})).startswith("no-events")
    assert refusal(b'{"traceEvents": [{"ph": "M", "name": "a"}]}').startswith("no-events")


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"\xff\xfb\x90\x64" * 9, b"\0\1\2", b"\x7fELF\2\1\1", b"\x1b[2J\xff", bytes(700)],
)
def test_binary_data_is_shown_in_hex(data: bytes) -> None:
    said = refusal(data)
    assert said == f"unknown-format: found binary data ({data[:8].hex(' ')}), expected a known format"


def test_text_in_another_encoding_shows_its_bytes() -> None:
    """No code of Python's own for them, such as `\\udce9`."""
    assert "'Caf\\xe9 au lait" in refusal("Café au lait, s'il vous plaît".encode("latin-1"))


def test_files_left_aside_are_named_by_kind(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_bytes((CASES / "array_top.json").read_bytes())
    for index in range(6):
        (tmp_path / f"trace{index}.pftrace").write_bytes((CASES / "perfetto.pftrace").read_bytes())
    others = ("report.nsys-rep", "lfs_pointer.json", "trace.json.zst", "nccl_tests.log", "op_statistic.csv")
    for name in others:
        (tmp_path / name).write_bytes((CASES / name).read_bytes())
    (tmp_path / "notes.txt").write_text("Dear reader,\n")
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    (said,) = (one.message for one in run.diagnostics if one.code == "other-files")
    assert (figures(said)[0], figures(said)[-1]) == ("12", "1")
    assert said.endswith("not opened")
    (tmp_path / "rank0.json").unlink()
    with pytest.raises(InputError) as caught:
        open_input(str(tmp_path))
    assert str(caught.value).count("nsys export") == 1
    for name in others:
        (tmp_path / name).unlink()
    with pytest.raises(InputError, match="and 5 others are each a Perfetto trace") as caught:
        open_input(str(tmp_path))
    assert str(caught.value).count("Perfetto") == 1
