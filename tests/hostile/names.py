"""Names that are made to hurt, and a workload and a measured run that have all of them everywhere."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.measured.traces import Op, Sub, write_set

NASTY = {
    "csi": "\x1b[31;5;7mX\x1b[2J\x1b[?1049l",
    "osc 8": "\x1b]8;;http://x\x07y\x1b]8;;\x1b\\",
    "osc 52": "\x1b]52;c;QQ==\x07",
    "title": "\x1b]0;owned\x07",
    "dcs": "\x1bP+q544e\x1b\\\x1bc",
    "c1": "\x9b2J\x9d0;owned\x9c",
    "markup": "[bold]x[/][@click=app.bell]z[/]",
    "bidirectional": "\u202etxt\u2066a\u2069\u200f",
    "combining": "a" + "\u0301\u20dd" * 30,
    "wide": "\u6f22\u5b57\uff21\ud55c",
    "joined": "\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea\ufe0f",
    "shell": "$(touch${IFS}owned)`touch${IFS}owned`{0}%s",
    "formula": "=1+HYPERLINK('x')",
    "at": "@SUM(1)",
    "invisible": "a\u034fb\u3164c\u115fd\U000e0041",
    "full-width": "\uff1dcmd",
    "long": "x" * 3000,
}
# Stands in names of files, too: no slash, and at most 255 bytes.
IN_FILE_NAMES = "".join(NASTY[key] for key in ("csi", "osc 52", "c1", "markup", "bidirectional", "joined"))
# Names that somebody handed us, as Python writes them, bytes that are no UTF-8 as surrogates.
_HANDED = (Path(__file__).parent / "cases" / "names.txt").read_text(encoding="utf-8")
HANDED = [
    name if isinstance(name := ast.literal_eval(line), str) else name.decode("utf-8", "surrogateescape")
    for line in _HANDED.split("\n")
    if line
]
IN_FILE_NAMES = IN_FILE_NAMES.replace("/", "")
ALL = "".join(NASTY.values())
HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 1 ga: 2 all_gpus: 2"


def workload(folder: Path, compute_ns: int = 5000) -> str:
    """A file of one block for each name, and a key of its header for each."""
    rows = [
        f"{name}\t-1\t{compute_ns}\tALLREDUCE\t100000\t6000\tNONE\t0\t7000\tALLREDUCE\t50000\t100"
        for name in NASTY.values()
    ]
    keys = " ".join(f"{name}: {name}" for name in NASTY.values())
    path = folder / f"{compute_ns}{IN_FILE_NAMES}.txt"
    path.write_text("\n".join([f"{HEADER} {keys}", str(len(rows)), *rows]) + "\n", encoding="utf-8")
    return str(path)


def traces(folder: Path) -> str:
    """A directory of two ranks whose operations have the names wherever a trace has a name."""
    path = folder / f"traces{IN_FILE_NAMES}"
    path.mkdir()
    texts = {}
    for rank in range(2):
        ops = [Op("forward_step", "1004.00", "4.00", stage=rank), Op("a", "1005.00", "1.00", stage=rank)]
        ops += [
            Op("weird", f"{1010 + place}.00", "1.00", description=name, state=name, group=name, shape=name,
               stage=rank, subs=(Sub(name=name, source=name, group=name, collective=name, dtype=name),))
            for place, name in enumerate(NASTY.values())
        ]  # fmt: skip
        ops.append(Op("backward_step", "1046.00", "8.00", stage=rank))
        texts[rank] = "".join(op.line(rank) + "\n" for op in ops)
    write_set(path, texts, world=2)
    return str(path)
