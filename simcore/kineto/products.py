"""The products that the host of a profiler trace called, with their shapes: a pass of their own over a file.

Only a run that is to state FLOPs asks for it, so that reading traces costs nothing more. Of calls inside each
other the outermost whose inputs tell its FLOPs counts: `aten::linear` and the `aten::addmm` in it are one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import msgspec

from simcore.diagnostics import InputError
from simcore.kineto.events import Event, batches, correlation_of, decode_file, kernel_args_of
from simcore.kineto.loading import most_bytes
from simcore.kineto.product_shapes import Product, is_forward, is_product, precision_of, product_of
from simcore.kineto.values import MOST_US, whole
from simcore.kineto.vocabulary import HOST_OPS, KERNELS, is_launch, phase_of
from simcore.records import NamedTuple
from simcore.workload.opening import read_file

_EMBEDDING = "aten::embedding"
NO_CALL = -1


class _Args(msgspec.Struct, gc=False):
    dims: Any = msgspec.field(default=None, name="Input Dims")
    old_dims: Any = msgspec.field(default=None, name="Input dims")
    types: Any = msgspec.field(default=None, name="Input type")
    values: Any = msgspec.field(default=None, name="Concrete Inputs")


_decode = msgspec.json.Decoder(_Args).decode


class NamedProduct(NamedTuple):
    """A product with the operation that makes it."""

    name: str
    """The operation of the host."""
    product: Product
    precision: str
    """The type of its operands, as `precision_of` has it."""


class Lookup(NamedTuple):
    """A look-up of rows in a table of weights, as of an embedding."""

    rows: int
    """The rows of the table."""
    width: int
    """The size of a row."""
    shape: tuple[int, ...]
    """Which rows are looked up: the sizes of that tensor."""


class FileProducts:
    """The products of a file. `products` has each distinct one, the columns the calls, by thread and start.

    backward: whether any operation of a backward pass is in the file.
    """

    def __init__(self) -> None:
        self.products: list[NamedProduct] = []
        self.product, self.start = array("i"), array("d")
        self.is_again = bytearray()
        """By call, whether it makes in the backward pass what the forward pass did: recomputation."""
        self.call_of: dict[int, int] = {}
        """Correlation of a launch -> the call that launched."""
        self.has_kernel = bytearray()
        """By call, whether any kernel of it was recorded."""
        self.lookups: list[tuple[Lookup, float]] = []
        """Look-ups in tables, with their starts, us."""
        self.backward = False
        self.times_of_lines: list[tuple[float, float]] = []
        """(start, end) of the events that were asked for, us."""


def read_products(path: str, lines: Collection[int] = ()) -> FileProducts | None:
    """Returns the products of a Kineto file; None where it cannot be read again, as a stream cannot.

    lines: positions of events whose times are wanted.
    """
    try:
        data = read_file(path, most_bytes(path), is_part_enough=True)
        file, damage = decode_file(path, data)
        reader = _Reader(lines)
        index = 0
        for batch in batches(path, file, damage):
            for event in batch:
                if event.ph == "X" and event.ts is not None and -MOST_US < event.ts < MOST_US:
                    reader.take(event, index)
                index += 1
    except (InputError, OSError):
        return None
    return reader.products()


class _Device(msgspec.Struct, gc=False):
    name: Any = ""
    memory: Any = msgspec.field(default=0, name="totalGlobalMem")


class _Devices(msgspec.Struct, gc=False):
    devices: list[_Device] = msgspec.field(default_factory=list, name="deviceProperties")


@lru_cache(maxsize=4)
def read_device(path: str) -> tuple[str, float] | None:
    """Returns the name and bytes of the first device that a file describes; None where it describes none."""
    try:
        data = read_file(path, most_bytes(path), is_part_enough=True)
        devices = msgspec.json.decode(data, type=_Devices).devices
    except (InputError, OSError, ValueError, RecursionError):
        return None
    if not devices or type(devices[0].name) is not str:
        return None
    memory = devices[0].memory
    return devices[0].name, float(memory) if type(memory) in (int, float) else 0.0


class _Thread:
    """What a thread did: (start, minus end, index) of its calls; (start, end) of operations of the backward
    pass, (start, correlation) of launches.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[float, float, int]] = []
        self.backward: list[tuple[float, float]] = []
        self.launches: list[tuple[float, int]] = []


class _Reader:
    def __init__(self, lines: Collection[int]) -> None:
        self.result = FileProducts()
        self.lines = lines
        self.threads: dict[object, _Thread] = {}
        self.of_call: list[tuple[str, Product | None, str]] = []
        self.index_of: dict[NamedProduct, int] = {}
        self.kernels: set[int] = set()
        self.is_product: dict[Any, bool] = {}
        self.is_backward: dict[Any, bool] = {}
        self.is_launch: dict[str | None, bool] = {}

    def take(self, event: Event, index: int) -> None:
        """Takes an event of the host or a kernel."""
        cat, name = event.cat, event.name
        if cat in HOST_OPS:
            if index in self.lines:
                self.result.times_of_lines.append((event.ts or 0.0, (event.ts or 0.0) + (event.dur or 0.0)))
            is_call = self.is_product.get(name)
            if is_call is None:
                text = name if type(name) is str else ""
                is_call = self.is_product[name] = is_product(text) or text == _EMBEDDING
                self.is_backward[name] = phase_of(text) == "backward"
                self.result.backward |= self.is_backward[name]
            if is_call:
                self._take_call(event, str(name))
            if self.is_backward[name]:
                start = event.ts or 0.0
                self._thread(event).backward.append((start, start + max(event.dur or 0.0, 0.0)))
        elif cat in KERNELS:
            correlation = whole(kernel_args_of(event).correlation)
            if correlation is not None:
                self.kernels.add(correlation)
        elif self._launches(cat):
            correlation = correlation_of(event)
            if correlation is not None:
                self._thread(event).launches.append((event.ts or 0.0, correlation))

    def _launches(self, cat: str | None) -> bool:
        launches = self.is_launch.get(cat)
        if launches is None:
            launches = self.is_launch[cat] = is_launch(cat)
        return launches

    def _thread(self, event: Event) -> _Thread:
        key = event.pid, event.tid
        thread = self.threads.get(key)
        if thread is None:
            thread = self.threads[key] = _Thread()
        return thread

    def _take_call(self, event: Event, name: str) -> None:
        try:
            args = _decode(event.args) if event.args else _Args()
        except (ValueError, RecursionError):
            args = _Args()
        dims = args.dims if args.dims is not None else args.old_dims
        start = event.ts or 0.0
        if name == _EMBEDDING:
            lookup = _lookup_of(dims)
            if lookup is not None:
                self.result.lookups.append((lookup, start))
            return
        call = (start, -start - max(event.dur or 0.0, 0.0), len(self.of_call))
        self.of_call.append((name, product_of(name, dims, args.values), precision_of(args.types, name)))
        self._thread(event).calls.append(call)

    def products(self) -> FileProducts:
        """Returns what was taken: the outermost calls, and what each launched."""
        result = self.result
        for thread in self.threads.values():
            if thread.calls:
                self._take_thread(thread)
        result.has_kernel = bytearray(len(result.product))
        for correlation, call in result.call_of.items():
            if correlation in self.kernels:
                result.has_kernel[call] = 1
        result.products = list(self.index_of)
        return result

    def _take_thread(self, thread: _Thread) -> None:
        result = self.result
        starts: list[float] = []
        ends: list[float] = []
        indices: list[int] = []
        inner: list[str] = []
        for start, minus_end, call in sorted(thread.calls):
            _, product, precision = self.of_call[call]
            if ends and start < ends[-1] and -minus_end <= ends[-1]:
                # Under autocast the outer call has the types of before the casts.
                inner[-1] = precision or inner[-1]
            elif product is not None:
                starts.append(start)
                ends.append(-minus_end)
                indices.append(call)
                inner.append(precision)
        first = len(result.product)
        begins, overs = _unions(thread.backward)
        for start, call, precision in zip(starts, indices, inner, strict=True):
            name, product, _ = self.of_call[call]
            assert product is not None
            one = NamedProduct(name, product, precision)
            result.product.append(self.index_of.setdefault(one, len(self.index_of)))
            result.start.append(start)
            at = bisect_right(begins, start) - 1
            result.is_again.append(is_forward(name) and at >= 0 and start < overs[at])
        for time, correlation in thread.launches:
            at = bisect_right(starts, time) - 1
            if at >= 0 and time < ends[at]:
                result.call_of[correlation] = first + at


def _unions(ranges: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Returns the starts and the ends of what ranges cover together."""
    starts: list[float] = []
    ends: list[float] = []
    for start, end in sorted(ranges):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends


def _lookup_of(dims: object) -> Lookup | None:
    """Returns the look-up of an embedding with such inputs: its table, and the indices."""
    if not isinstance(dims, list) or len(dims) < 2:
        return None
    table, shape = dims[0], dims[1]
    if not all(
        isinstance(sizes, list) and all(type(size) is int for size in sizes) for sizes in (table, shape)
    ):
        return None
    return Lookup(table[0], table[1], tuple(shape)) if len(table) == 2 and shape else None
