"""One operation alone on a GPU: what `wltui op` prices, from sizes or from the rows of a CSV file.

A kind of operation is one entry of `KINDS`. Columns of a file are those of ai-dynamo/aiconfigurator's tables.
Rows are priced as they are read and kept as columns, 8 bytes a number.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.gpu import Gpu
from simcore.model.operations.attention import attention_time
from simcore.model.operations.experts import NOT_GATED, experts_time
from simcore.model.operations.products import product_time
from simcore.model.operations.timing import OperationTime
from simcore.records import NamedTuple, Struct
from simcore.units import is_whole

PRECISIONS = ("bf16", "fp8", "fp8_block", "mxfp8", "nvfp4")
# What files call them.
_TYPES = {"bfloat16": "bf16", **{name: name for name in PRECISIONS}}
# Kernels count each size in 32 bits.
MOST = 2**31 - 1
EXPECTED = "a whole number from 1 to 2^31 - 1"
# The largest table has 1.7 MB.
_MOST_BYTES = 64 << 20
# Without their caches: no row of a file comes twice, and what 39,277 rows would leave there is 16 MB.
_product_time = product_time.__wrapped__
_attention_time = attention_time.__wrapped__
_experts_time = experts_time.__wrapped__


class Kind(Struct, frozen=True):
    """A kind of operation.

    columns: its sizes, and what a file calls each. types: the column of the precision. optional: sizes that
    may be missing, and what is taken then. time: the time for a GPU, a precision and the sizes, in their
    order; raises `UsageError` for sizes that do not fit together. plural: how sentences call it.
    """

    plural: str
    columns: Mapping[str, str]
    types: str
    time: Callable[..., OperationTime]
    optional: Mapping[str, int] = {}


class OperationTimes(Struct):
    """Operations of one kind and what they take on a GPU, a column each.

    sizes: by name. seconds: with the launch. bounds: `compute`, `memory` or `launch`. flops: that each
    computes.
    """

    gpu: Gpu
    kind: str
    precisions: list[str]
    sizes: dict[str, array[int]]
    seconds: array[float]
    bounds: list[str]
    flops: array[float]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Gives each operation: its precision and sizes; ns; bound; tflops, TFLOP/s that it reaches; and
        share_of_peak, those as a share of what the GPU's data sheet says for the precision.
        """
        peaks = {precision: self.gpu.peak_of(precision) for precision in set(self.precisions)}
        for index, seconds in enumerate(self.seconds):
            precision = self.precisions[index]
            tflops = self.flops[index] / seconds / 1e12
            yield {
                "precision": precision,
                **{name: column[index] for name, column in self.sizes.items()},
                "ns": round(seconds * 1e9),
                "bound": self.bounds[index],
                "tflops": tflops,
                "share_of_peak": tflops / peaks[precision],
            }

    def add(self, precision: str, sizes: Sequence[int]) -> None:
        """Price one more operation. Raises `UsageError` for sizes that do not fit together."""
        time = KINDS[self.kind].time(self.gpu, precision, *sizes)
        for column, size in zip(self.sizes.values(), sizes, strict=True):
            column.append(size)
        self.precisions.append(precision)
        self.seconds.append(time.seconds)
        self.bounds.append(time.bound_by)
        self.flops.append(time.flops)


def price_sizes(gpu: Gpu, kind: str, precision: str, sizes: Mapping[str, int]) -> OperationTimes:
    """Returns one operation and what it takes. sizes: all but those that are optional.

    Raises `UsageError` for a precision that the GPU does not compute this kind in, and for sizes that do not
    fit together.
    """
    _check_precision(gpu, kind, precision)
    result = _empty_result(gpu, kind)
    sizes = {**KINDS[kind].optional, **sizes}
    result.add(precision, [sizes[name] for name in result.sizes])
    return result


def price_file(gpu: Gpu, kind: str, path: str, precision: str | None = None) -> OperationTimes:
    """Returns the operation of each row of a CSV file, in its order, and what it takes.

    precision: where the file has no column of it. Raises InputError with the line and what was found there.
    """
    # Imported here: most calls have no file.
    import csv
    import io

    from simcore.workload.opening import read_file

    if precision is not None:
        _check_precision(gpu, kind, precision)
    data = io.BytesIO(read_file(path, _MOST_BYTES))
    # Bytes that are no text are kept: in columns that nobody asks for they do no harm.
    text = io.TextIOWrapper(data, "utf-8-sig", "surrogateescape", newline="")
    result = _empty_result(gpu, kind)
    heading: _Heading | None = None
    line = next_line = 1
    try:
        cells = csv.reader(text, strict=True)
        for row in cells:
            # Of a row whose quoted cells have line ends, the first.
            line, next_line = next_line, cells.line_num + 1
            if not any(map(str.strip, row)):
                continue
            if heading is None:
                heading = _parse_heading(kind, [word.strip() for word in row], precision)
            else:
                _add_row(result, heading, row)
        line = 1
        if not result.seconds:
            content = "nothing" if heading is None else "a heading alone"
            raise UsageError(f"found {content}, expected {_columns(kind)} and a row for each operation")
    except csv.Error as error:
        raise _refusal(path, next_line, f"found no CSV ({error}), expected {_columns(kind)}") from None
    except UsageError as error:
        raise _refusal(path, line, str(error)) from None
    return result


@lru_cache(maxsize=64)
def precisions_of(gpu: Gpu, kind: str) -> tuple[str, ...]:
    """Returns the precisions that a GPU computes a kind of operation in."""
    kind_info = KINDS[kind]
    available = []
    for precision in PRECISIONS:
        try:
            # What no product is computed in, no other operation is.
            product_time(gpu, precision, 1, 1, 1)
            kind_info.time(gpu, precision, *(1 for _ in kind_info.columns))
        except UsageError:
            continue
        available.append(precision)
    return tuple(available)


def parse_whole(text: str) -> int | None:
    """Returns a size as it is written, None for text that is none."""
    word = text.strip()
    if is_whole(word, 20) and 1 <= int(word) <= MOST:
        return int(word)
    return None


def _product(gpu: Gpu, precision: str, m: int, n: int, k: int) -> OperationTime:
    product = _product_time(gpu, precision, m, n, k)
    return OperationTime(product.seconds, product.bound_by, 2.0 * m * n * k)


def _attention(
    gpu: Gpu, precision: str, batch: int, seq: int, heads: int, kv_heads: int, head_dim: int
) -> OperationTime:
    if heads % kv_heads:
        near = _nearest_divisor(heads, kv_heads)
        raise UsageError(f"found {kv_heads} key-value heads for {heads} heads, which they do not divide: "
                         f"{near} would fit")  # fmt: skip
    return _attention_time(gpu, precision, batch, seq, heads, kv_heads, head_dim)


def _experts(
    gpu: Gpu, precision: str, tokens: int, hidden: int, ffn: int, top_k: int, experts: int, tp: int, ep: int
) -> OperationTime:
    if top_k > experts:
        raise UsageError(f"found {top_k} experts a token out of {experts}, expected at most {experts}")
    if experts % ep:
        near = _nearest_divisor(experts, ep)
        raise UsageError(f"found ep {ep} for {experts} experts, which it does not divide: {near} would fit")
    if ffn % tp:
        near = _nearest_divisor(ffn, tp)
        raise UsageError(f"found tp {tp} for ffn {ffn}, which it does not divide: {near} would fit")
    gated = (hidden, ffn, top_k, experts) not in NOT_GATED
    each = tokens * top_k / experts
    return _experts_time(
        gpu, precision, experts // ep, each, hidden, ffn // tp, gated, tokens, top_k, experts
    )


KINDS = {
    "product": Kind("products", {"m": "m", "n": "n", "k": "k"}, "gemm_dtype", _product),
    "attention": Kind(
        "attention",
        {
            "batch": "batch_size",
            "seq": "isl",
            "heads": "num_heads",
            "kv_heads": "num_key_value_heads",
            "head_dim": "head_dim",
        },
        "attn_dtype",
        _attention,
    ),
    "experts": Kind(
        "experts",
        {
            "tokens": "num_tokens",
            "hidden": "hidden_size",
            "ffn": "inter_size",
            "top_k": "topk",
            "experts": "num_experts",
            "tp": "moe_tp_size",
            "ep": "moe_ep_size",
        },
        "moe_dtype",
        _experts,
        {"tp": 1, "ep": 1},
    ),
}


def _empty_result(gpu: Gpu, kind: str) -> OperationTimes:
    sizes = {name: array("q") for name in KINDS[kind].columns}
    return OperationTimes(gpu, kind, [], sizes, array("d"), [], array("d"))


def _nearest_divisor(value: int, limit: int) -> int:
    """The greatest divisor of a number that is at most `wanted`."""
    best, other = 1, 1
    while other * other <= value:
        if value % other == 0:
            best = max([best, *(one for one in (other, value // other) if one <= limit)])
        other += 1
    return best


def _check_precision(gpu: Gpu, kind: str, precision: str) -> None:
    if precision not in precisions_of(gpu, kind):
        raise UsageError(f"--precision {_quote(precision)}: {_expected_text(gpu, kind)}")


def _expected_text(gpu: Gpu, kind: str) -> str:
    fitting = precisions_of(gpu, kind)
    words = f"{'one of ' if len(fitting) > 1 else ''}{', '.join(fitting)}"
    return f"expected {words}, in which {printable(gpu.name, 40)} computes {KINDS[kind].plural}"


class _Heading(NamedTuple):
    """names: of the columns. places: where a row has each size, and what is taken where it has none. typed:
    where it has the precision. precision: that of all rows, where they have none.
    """

    names: list[str]
    positions: list[tuple[int | None, int]]
    precision_index: int | None
    precision: str


def _parse_heading(kind: str, names: list[str], precision: str | None) -> _Heading:
    """Raises `UsageError` for a column that is missing, or there twice."""
    kind_info = KINDS[kind]
    for column in (*kind_info.columns.values(), kind_info.types):
        if names.count(column) > 1:
            raise UsageError(f"found the column {column} {names.count(column)} times, expected it once")
    message = f"found the columns {_quote(', '.join(names), 200)}, expected"
    least = [column for name, column in kind_info.columns.items() if name not in kind_info.optional]
    if not set(least) <= set(names):
        raise UsageError(f"{message} {_columns(kind)}")
    if kind_info.types not in names and precision is None:
        # As bf16 a table of FP8 would have wrong times that nobody notices.
        raise UsageError(f"{message} {kind_info.types} beside them, or --precision")
    positions = [
        (names.index(column) if column in names else None, kind_info.optional.get(name, 1))
        for name, column in kind_info.columns.items()
    ]
    precision_index = names.index(kind_info.types) if kind_info.types in names else None
    return _Heading(names, positions, precision_index, precision or "")


def _add_row(result: OperationTimes, heading: _Heading, row: list[str]) -> None:
    """Raises `UsageError` for a row that is no operation of the GPU."""
    names = heading.names
    if len(row) != len(names):
        cells = f"{len(row)} cell{'' if len(row) == 1 else 's'}"
        raise UsageError(f"found {cells}, expected {len(names)} as in the heading")
    precision = heading.precision
    if heading.precision_index is not None:
        word = row[heading.precision_index].strip()
        precision = _TYPES.get(word, "")
        if precision not in precisions_of(result.gpu, result.kind):
            column = names[heading.precision_index]
            raise UsageError(f"found {_quote(word)} for {column}, {_expected_text(result.gpu, result.kind)}")
    sizes = []
    for position, size in heading.positions:
        whole = size if position is None else parse_whole(row[position])
        if whole is None:
            message = f"found {_quote(row[position or 0].strip())} for {names[position or 0]}"
            raise UsageError(f"{message}, expected {EXPECTED}")
        sizes.append(whole)
    result.add(precision, sizes)


def _columns(kind: str) -> str:
    kind_info = KINDS[kind]
    return f"the columns {', '.join([kind_info.types, *kind_info.columns.values()])}"


def _quote(word: str, limit: int = 40) -> str:
    return printable(word, limit) or "nothing"


def _refusal(path: str, line: int, message: str) -> InputError:
    return InputError(Diagnostic("error", "operations-file", message, path, line))
