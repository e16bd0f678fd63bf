"""`wltui op`: one operation on an idle GPU, or those of a CSV file, as text, table or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.model.operations.alone import EXPECTED, KINDS, PRECISIONS, parse_whole, price_file, price_sizes
from simcore.names import GPU_NAMES
from tui.commands.parser import Parser

if TYPE_CHECKING:
    from simcore.model.operations.alone import OperationTimes

SCHEMA = "wltui.op/1"
_DEFAULT_PRECISION = "bf16"
_DESCRIPTION = (
    "Time one operation alone on a GPU, forward: a matrix product, causal attention, or the feed-forward "
    "part of experts that all get as many tokens. With --from FILE each row of a CSV file is an operation; "
    "its columns are "
    + "; ".join(f"{', '.join([kind.types, *kind.columns.values()])} ({name})" for name, kind in KINDS.items())
    + "; others are ignored."
)
_SIZES = {
    "m": "rows of the left matrix and of the result: tokens",
    "n": "columns of the right matrix and of the result",
    "k": "columns of the left and rows of the right matrix",
    "batch": "sequences",
    "seq": "tokens of a sequence",
    "heads": "query heads",
    "kv_heads": "key-value heads",
    "head_dim": "numbers of a head",
    "tokens": "tokens of all ranks that the experts lie on",
    "hidden": "hidden size",
    "ffn": "inner size of an expert",
    "top_k": "experts of a token",
    "experts": "experts of the layer",
    "tp": "ranks that share each expert (default 1)",
    "ep": "ranks that the experts lie on (default 1)",
}


def build_parser() -> Parser:
    """Returns the parser of `wltui op`."""
    # Imported here: pricing needs no model of training.
    from simcore.model.resolving import DEFAULT_GPU

    parser = Parser(prog="wltui op", description=_DESCRIPTION)
    parser.add_argument("operation", metavar="OPERATION", help=", ".join(KINDS))
    parser.add_argument(
        "--from", dest="file", metavar="FILE", help="price each row of a CSV file, in gzip or not"
    )
    parser.add_argument(
        "--gpu", metavar="NAME|FILE", default=DEFAULT_GPU,
        help=f"{', '.join(GPU_NAMES)}, or a TOML file (default {DEFAULT_GPU})",
    )  # fmt: skip
    parser.add_argument(
        "--precision", metavar="TYPE",
        help="bf16 (default), fp8 (a scale to a tensor), fp8_block (to 128 numbers), mxfp8 (to 32), nvfp4 "
        "(to 16); of a file's rows, where it has no column of it",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help=f"the figures as JSON (schema {SCHEMA})")
    for kind in KINDS.values():
        group = parser.add_argument_group(f"sizes of {kind.plural}")
        for name in kind.columns:
            group.add_argument(_option(name), dest=name, metavar="N", help=_SIZES[name])
    return parser


def main(words: list[str]) -> int:
    """Prices operations and prints them. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    kind = arguments.operation
    if kind not in KINDS:
        raise UsageError(
            f"OPERATION {printable(kind, 60)}: one of {', '.join(KINDS)} is "
            f"expected{did_you_mean(kind, KINDS)}"
        )
    if arguments.precision not in (None, *PRECISIONS):
        raise UsageError(
            f"--precision {printable(arguments.precision, 40)}: one of {', '.join(PRECISIONS)} is expected"
            f"{did_you_mean(arguments.precision, PRECISIONS)}"
        )
    size_texts = {name: text for name in _SIZES if (text := getattr(arguments, name)) is not None}
    # Imported here: --help needs no GPU.
    from simcore.model.gpu import find_gpu

    if arguments.file is None:
        sizes = _parse_sizes(kind, size_texts)
        times = price_sizes(find_gpu(arguments.gpu), kind, arguments.precision or _DEFAULT_PRECISION, sizes)
    elif size_texts:
        raise UsageError(
            f"{', '.join(map(_option, size_texts))}: the rows of --from have their own, give one of the two"
        )
    else:
        times = price_file(find_gpu(arguments.gpu), kind, arguments.file, arguments.precision)
    if arguments.json:
        from simcore.render.report.json_text import json_chunks

        head = {"schema": SCHEMA, "operation": kind, "gpu": times.gpu.name}
        sys.stdout.writelines(json_chunks({**head, "operations": times.rows()}))
        print()
    elif arguments.file is None:
        print("\n".join(_format_one(times)))
    else:
        sys.stdout.writelines(f"{line}\n" for line in _format_table(times))
    return 0


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parse_sizes(kind: str, texts: dict[str, str]) -> dict[str, int]:
    """Returns the sizes of one operation. Raises `UsageError` for one that is missing, belongs to others, or
    is no number.
    """
    kind_sizes = KINDS[kind]
    expected = ", ".join(map(_option, kind_sizes.columns))
    others = [_option(name) for name in texts if name not in kind_sizes.columns]
    if others:
        raise UsageError(f"{', '.join(others)}: no size of {kind}, which has {expected}")
    missing = [
        _option(name) for name in kind_sizes.columns if name not in texts and name not in kind_sizes.optional
    ]
    if missing:
        raise UsageError(f"{kind}: {', '.join(missing)} expected, or --from FILE (see wltui op --help)")
    sizes = {}
    for name, text in texts.items():
        size = parse_whole(text)
        if size is None:
            raise UsageError(f"{_option(name)} {printable(text, 60)}: {EXPECTED} is expected")
        sizes[name] = size
    return sizes


def _format_one(times: OperationTimes) -> list[str]:
    from simcore.units import duration

    (row,) = times.rows()
    precision, gpu = row["precision"], times.gpu
    sizes = ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in times.sizes)
    return [
        f"{times.kind}, {sizes}, in {precision} on {printable(gpu.name, 40)}: {duration(row['ns'])}",
        f"  bound by  {row['bound']}",
        f"  reaches   {row['tflops']:.1f} TFLOP/s",
        f"  of peak   {100 * row['share_of_peak']:.1f} % of {gpu.peak_of(precision):g} TFLOP/s",
    ]


def _format_table(times: OperationTimes) -> Iterator[str]:
    yield f"# {times.kind} on {printable(times.gpu.name, 40)}"
    widths = {name: max(len(name), len(str(max(sizes)))) for name, sizes in times.sizes.items()}
    names = " ".join(f"{name:>{width}}" for name, width in widths.items())
    yield f"{'precision':9} {names} {'us':>14} {'TFLOP/s':>8} {'% of peak':>9}  bound"
    for row in times.rows():
        sizes = " ".join(f"{row[name]:>{width}}" for name, width in widths.items())
        yield (
            f"{row['precision']:9} {sizes} {row['ns'] / 1000:>14.3f} {row['tflops']:>8.1f} "
            f"{100 * row['share_of_peak']:>9.1f}  {row['bound']}"
        )
