"""How long the largest files take to check and to report, and how much memory: whole processes.

Files of 2 million rows and of 100 MB in one line are made in a temporary folder. Each has to be
answered within 20 s and 1 GB: with a result, or with an error that has a place.
Usage: python benchmarks/reading.py [SHARE] [--write]; SHARE of the sizes (1); --write puts the table into
benchmarks/README.md. Exit status 1 when a limit is passed.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import WLTUI, Process, Table, finished, number_of, process

SECONDS, MEGABYTES = 20.0, 1000.0
HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 64\n"
ROW = "mlp_row\t-1\t1432430\tALLGATHER\t100663296\t1432430\tREDUCESCATTER\t0\t1432430\tNONE\t0\t100"
WRONG_ROW = ROW.replace("1432430", "14324x0", 1)
ODD_ROW = ROW.replace("\t-1\t", "\t0\t").replace("ALLGATHER", "Allgather")
COLUMNS = ["name"] + [
    f"{phase}_{what}"
    for phase in ("forward", "backward", "weight_grad")
    for what in ("compute_time", "comm_type", "comm_size")
] + ["process_time"]  # fmt: skip
CELLS = ["addmm", "0.7016471354290843", "None", 0, "1.4709335519000888", "None", 0, "0.05", "None", 0, 0]
OP = "\t".join(map(str, CELLS))
OBJECT = "{" + ", ".join(
    f'"{key}": {value if str(value)[0].isdigit() else chr(34) + str(value) + chr(34)}'
    for key, value in zip(COLUMNS, CELLS, strict=True)
) + "}"  # fmt: skip

TRACE = "rank:0:forward_step(batch_id=0,mg_state=steady,duration=1.00,timestamp=101.00,sub_operations=[])"


def inputs(share: float) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file."""
    rows, size = int(2_000_000 * share), int(100_000_000 * share)
    head = f"{HEADER}{rows}\n"
    joined = size // (len(ROW) + 1)
    yield "2 M rows", (head + f"{ROW}\n" * rows).encode()
    yield "2 M rows, CRLF", (head + f"{ROW}\n" * rows).replace("\n", "\r\n").encode()
    yield "2 M rows, each with something to say", (head + f"{ODD_ROW}\n" * rows).encode()
    yield "2 M rows, each with an error", (head + f"{WRONG_ROW}\n" * rows).encode()
    yield "2 M rows, gzip", gzip.compress((head + f"{ROW}\n" * rows).encode(), 1)
    yield "2 M rows of an op table", ("\t".join(COLUMNS) + "\n" + f"{OP}\n" * rows).encode()
    yield "2 M operations of a rank trace", f"{TRACE}\n".encode() * rows
    yield "100 MB in one line: rows", (f"{HEADER}{joined}\n" + f"{ROW} " * joined).encode()
    yield "100 MB in one line: behind the header", (HEADER.rstrip() + f" {ROW}" * joined).encode()
    yield "100 MB in one line: behind the count", (f"{HEADER}{joined}" + f" {ROW}" * joined).encode()
    yield "100 MB in one line: one word", (HEADER + "1\n" + "x" * size).encode()
    yield "100 MB in one line: one name", (HEADER + "1\n" + "x" * size + ROW).encode()
    yield "100 MB in one line: words", (HEADER + "1\n" + "word " * (size // 5)).encode()
    yield "100 MB in one line: bytes that are no text", HEADER.encode() + b"1\n" + b"\xff " * (size // 2)
    yield "100 MB in one line: header", (HEADER.rstrip() + " key: 1" * (size // 7)).encode()
    yield "100 MB in one line: columns", ("\t".join([*COLUMNS, "x\t" * (size // 2)])).encode()
    yield "100 MB in one line: tabs", ("\t".join(COLUMNS) + "\n" + OP + "\t" * size).encode()
    yield "100 MB in one line: JSON", ("[" + ",".join([OBJECT] * (size // len(OBJECT))) + "]").encode()
    yield "100 MB in one line: brackets", b'[{"forward_compute_time": ' + b"[" * size
    yield "100 MB of nothing, gzip", gzip.compress(HEADER.encode() + b" " * size, 1)


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a file is over a limit, or its answer is a traceback."""
    table = Table(f"limits {SECONDS:.0f} s, {MEGABYTES:.0f} MB")
    table.add(f"{'':<46}{'MB':>6}{'check':>10}{'':>9}{'report':>10}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for name, content in inputs(number_of(words, 1.0)):
            path.write_bytes(content)
            line = f"{name:<46}{len(content) / 1e6:>6.0f}"
            del content
            for command in ("check", "report"):
                done = process([*WLTUI, command, str(path)])
                line += f"{done.seconds:>8.1f} s{done.peak_mb:>6.0f} MB "
                table.judge(f"{command} of {name}, s", done.seconds, SECONDS)
                table.judge(f"{command} of {name}, MB", done.peak_mb, MEGABYTES)
                table.judge(f"{command} of {name}, answers that are none", is_no_answer(done), 0)
            table.add(line)
    return finished(__file__, table, words)


def is_no_answer(done: Process) -> bool:
    """Whether a process ended otherwise than with a result or a refusal in its own words."""
    return done.status not in (0, 1) or "Error:" in done.said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
