"""What the calls of the host around a launch state of the size of the collective that was launched.

An old profiler states nothing of a collective on its kernel. Around the launch are the operation of torch
(`c10d::alltoall_base_`), `record_param_comms` and the backend's annotation (`nccl:all_to_all`), and with
`record_shapes` each has the shapes of its arguments: an outer one states more, an inner one has better types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from simcore.kineto.events import CallArgs
from simcore.kineto.libraries import collective_in_name
from simcore.kineto.values import elements_in_all, text_of
from simcore.kineto.vocabulary import COLLECTIVE_ANNOTATION, dtype_of, operation_word
from simcore.records import NamedTuple

# The call of a collective, which states what its kernel does.
CALL = "record_param_comms"
# (names, index of the argument that goes in, of the one that comes out, None where none does), of torch's
# `Ops.cpp`, `Functional.cpp` and `SymmetricMemory.cpp`.
_OPERATIONS = tuple((re.compile(names), (input_index, output_index)) for names, input_index, output_index in (
    (rf"^{CALL}$", 0, None),
    (r"^c10d::_?(?:allgather|reduce_scatter|alltoall|gather|scatter)", 1, 0),
    (r"^c10d::(?:allreduce_|broadcast_|reduce_|send$|recv_)", 0, 0),
    (r"^_?c10d_functional::(?:all_reduce|broadcast)", 0, 0),
    (r"^_?c10d_functional::(?:all_gather|reduce_scatter|all_to_all)", 0, None),
    (r"^symm_mem::one_shot_all_reduce_copy", 1, 1),
    (r"^symm_mem::(?:multimem_|one_shot_|two_shot_)+all_reduce", 0, 0),
    (r"^symm_mem::multimem_all_gather_out", 0, 2),
    (r"^symm_mem::reduce_scatter_out", 0, 3),
))  # fmt: skip
# Its annotation has the first tensor of a list alone, so that it does not state how many there are.
_LISTED = "c10d::alltoall_"


class CallSize(NamedTuple):
    """What a call states of its size."""

    name: str
    elements_in: int = -1
    """Elements that go in, -1 if not stated."""
    elements_out: int = -1
    """Elements that come out, -1 if not stated."""
    dtype: str | None = None
    """As written."""


# (start, -end, position in the file, size) of the calls of a thread, times as written.
CallRange = tuple[float, float, int, CallSize]


def is_sized(name: str) -> bool:
    """Returns whether an operation or annotation of this name may state the size of a collective."""
    return COLLECTIVE_ANNOTATION.match(name) is not None or _tensors_of(name) is not None


@lru_cache(1 << 10)
def _tensors_of(name: str) -> tuple[int, int | None] | None:
    """Returns the indices of the arguments of an operation that go in and come out; None for one of no
    collective.
    """
    return next((indices for names, indices in _OPERATIONS if names.search(name) is not None), None)


def call_size(name: str, args: CallArgs) -> CallSize:
    """Returns what a call that `is_sized` states by the shapes and types of its arguments."""
    dims = args.dims if isinstance(args.dims, list) else []
    types = args.types if isinstance(args.types, list) else []
    if COLLECTIVE_ANNOTATION.match(name) is not None:
        # All of its arguments are tensors that go in.
        sizes = [_elements(dims, types, argument) for argument in range(len(dims))]
        is_known = bool(sizes) and min(sizes) >= 0
        return CallSize(name, sum(sizes) if is_known else -1, -1, _type(types, 0))
    tensors = _tensors_of(name)
    if tensors is None:
        return CallSize(name)
    input_index, output_index = tensors
    out = -1 if output_index is None else _elements(dims, types, output_index)
    return CallSize(name, _elements(dims, types, input_index), out, _type(types, input_index))


def _elements(dims: list[object], types: list[object], argument: int) -> int:
    """Returns the elements of an argument, of a list those of all its tensors; -1 for one that is no tensor
    or has no shape.
    """
    kind = types[argument] if argument < len(types) else None
    shape = dims[argument] if argument < len(dims) else None
    # A tensor without dimensions has none; neither has what is no tensor.
    if not isinstance(shape, list) or kind in ("", "Scalar") or (kind is None and not shape):
        return -1
    return elements_in_all(shape, kind == "TensorList" or any(isinstance(inner, list) for inner in shape))


def _type(types: list[object], argument: int) -> str | None:
    """Returns the type of an argument if it is one of tensors."""
    dtype = text_of(types[argument]) if argument < len(types) else None
    return dtype if dtype_of(dtype) is not None else None


def sizes_around(
    calls: Mapping[object, list[CallRange]], launches: Mapping[int, tuple[float, object]], sure: set[int]
) -> dict[int, CallSize]:
    """Returns what is stated of each launch in a call, by correlation; the name is one word for the
    collective, "" where none is stated.

    sure: launches that surely communicate: the size of their call is of nothing else. Of several such
    launches in a call none has a size. Sorts the calls.
    """
    by_thread: dict[object, list[tuple[float, int]]] = {}
    for correlation, (time, thread) in launches.items():
        if thread in calls:
            by_thread.setdefault(thread, []).append((time, correlation))
    sizes: dict[int, CallSize] = {}
    for thread, times in by_thread.items():
        ranges = calls[thread]
        ranges.sort(key=lambda call: call[:3])
        times.sort()
        # Outermost call -> its launches.
        of_call: dict[int, list[int]] = {}
        # The open calls, the innermost last.
        open_: list[CallRange] = []
        at, count = 0, len(ranges)
        for time, correlation in times:
            while at < count and ranges[at][0] <= time:
                while open_ and -open_[-1][1] <= ranges[at][0]:
                    open_.pop()
                open_.append(ranges[at])
                at += 1
            while open_ and -open_[-1][1] < time:
                open_.pop()
            if open_:
                of_call.setdefault(open_[0][2], []).append(correlation)
                sizes[correlation] = _merge_sizes(tuple([call[3] for call in open_]))
        for some in of_call.values():
            moving = [correlation for correlation in some if correlation in sure] or some
            for correlation in some:
                if len(moving) > 1 or correlation not in moving:
                    sizes[correlation] = CallSize(sizes[correlation].name)
    return sizes


@lru_cache(1 << 10)
def _merge_sizes(around: tuple[CallSize, ...]) -> CallSize:
    """Returns what the calls around one launch state, given the outermost first."""
    if any(size.name == _LISTED and size.elements_in < 0 for size in around):
        around = tuple([size for size in around if COLLECTIVE_ANNOTATION.match(size.name) is None])
    first_sized = next((size for size in around if size.elements_in >= 0), CallSize(""))
    dtype = next((size.dtype for size in around if size.dtype is not None), None)
    out = next((size.elements_out for size in around if size.elements_out >= 0), -1)
    return CallSize(_operation(around), first_sized.elements_in, out, dtype)


def _operation(around: Iterable[CallSize]) -> str:
    """Returns one word for the collective of these calls; "" where none names it."""
    for size in around:
        annotation = COLLECTIVE_ANNOTATION.match(size.name)
        name = size.name.rpartition("::")[2] if annotation is None else annotation[1]
        word = collective_in_name(name) or operation_word(name)
        if word and size.name != CALL:
            return word
    return ""
