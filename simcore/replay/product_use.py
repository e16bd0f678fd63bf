"""How well a measured step uses its GPUs: FLOPs of its products, their share of the peak, MFU and HFU.

The products are those whose shapes the profiler recorded, with the kernels that they launched; what a model
would compute is known with `--model`. Peaks are dense ones by the type of the operands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.cached_methods import cached_on
from simcore.diagnostics import UsageError, printable
from simcore.kernel_families import family_of
from simcore.model.gpu import Gpu, find_gpu
from simcore.names import GPU_NAMES
from simcore.parameters import USE_FIELDS
from simcore.records import NamedTuple, Struct
from simcore.trace.contexts import ProductLine, ProductUse, RankProducts, Throughput
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.kineto.product_shapes import Product
    from simcore.kineto.products import FileProducts
    from simcore.measured.columns import RankTrace
    from simcore.measured.run import MeasuredRun
    from simcore.model.sizes import Model

# Kernels of products by their names: tensor cores that take fp32 as TF32.
_TF32 = re.compile(r"tf32|s1688|xf32", re.IGNORECASE)
_FAMILIES = ("GEMM", "attention", "convolution")
# Names of devices, as drivers give them -> those of gpus.toml; the first that is in the name counts.
_DEVICES = (("GB200", "gb200"), ("B200", "b200"), ("H200", "h200"), ("H20", "h20"), ("H100", "h100"))
_LARGE_A100_BYTES = 60e9
# A kernel is far below its shape's measured time from so many times that time on (in training it takes up to
# 1.4 times as long as alone, as power lowers the clock), and where that takes so much of the step together.
# Shorter ones differ by their launch.
_FAR, _LEAST_SHARE, _LEAST_S = 2.0, 0.005, 10e-6


class MeasuredStep(Struct, frozen=True):
    """What a user states of a measured step: see the fields of `Parameters`."""

    model: str | None = None
    gpu: str | None = None
    global_batch: int | None = None
    microbatch_size: int | None = None
    seq: int | None = None

    @property
    def has_use(self) -> bool:
        """Whether it is to be said how well the step uses its GPUs."""
        return self.model is not None or self.gpu is not None


def check_use(run: MeasuredRun, step: MeasuredStep) -> None:
    """Raises `UsageError` where it names no GPU or model, or nothing that the run could tell."""
    options = [f"--{name.replace('_', '-')}" for name in USE_FIELDS if getattr(step, name) is not None]
    if not options:
        return
    if not run.timed:
        raise UsageError(f"{', '.join(options)}: found an order of operations without times")
    if not step.has_use:
        raise UsageError(f"{', '.join(options)}: --model NAME|FILE, whose step this is, is missing")
    _find_gpu(run, step)
    if step.model is not None:
        from simcore.model.opening import find_model

        find_model(step.model)


def _find_gpu(run: MeasuredRun, step: MeasuredStep) -> Gpu:
    """Returns the GPU that is stated, else that which the traces name. Raises `UsageError` for neither."""
    if step.gpu is not None:
        return find_gpu(step.gpu)
    from simcore.kineto.products import read_device

    device = read_device(run.ranks[0].path) if _is_kineto(run) else None
    name = _name_of(*device) if device is not None else None
    if name is None:
        device_text = f"found {printable(device[0], 60)}" if device is not None else "the traces name no GPU"
        raise UsageError(
            f"--model {printable(step.model or '', 60)}: {device_text}; --gpu NAME|FILE would fit"
        )
    return find_gpu(name)


def _name_of(device: str, memory: float) -> str | None:
    if "A100" in device:
        return "a100-80" if memory > _LARGE_A100_BYTES else "a100-40"
    name = next((name for word, name in _DEVICES if word in device), None)
    return name if name in GPU_NAMES else None


def _is_kineto(run: MeasuredRun) -> bool:
    return run.format == "kineto"


def find_product_use(run: MeasuredRun, step: MeasuredStep, step_ns: int) -> ProductUse:
    """Returns how well a step uses its GPUs. run: as recorded. step_ns: of the step as it is shown."""
    gpu = _find_gpu(run, step)
    reader = _RunProducts(run, gpu, step_ns)
    model = None
    if step.model is not None:
        from simcore.model.opening import find_model

        model = find_model(step.model)[0]
    throughput, assumed = _model_throughput(run, step, reader, model)
    assumed = (*assumed, *reader.packed_words())
    name = model.name if model is not None else None
    ranks, lines = tuple(reader.ranks), tuple(reader.lines())
    return ProductUse(gpu.name, name, step_ns, ranks, lines, throughput, assumed, reader.reason)


def peak_flops(gpu: Gpu, precision: str) -> float | None:
    """Returns the dense FLOP/s of a GPU in a type, None where it is not known. TF32 has half of BF16's."""
    tflops = {
        "bf16": gpu.peak, "fp8": gpu.peak_fp8, "tf32": gpu.peak / 2, "fp32": gpu.peak_fp32
    }.get(precision, 0.0)  # fmt: skip
    return tflops * 1e12 or None


class _Sum:
    """What equal products take together, of a rank or of all."""

    def __init__(self) -> None:
        self.calls = self.timed_calls = self.ns = 0

    def add(self, other: _Sum) -> None:
        self.calls += other.calls
        self.timed_calls += other.timed_calls
        self.ns += other.ns


# (operation, product, type of the operands), and whether it is recomputation.
_Key = tuple[str, "Product", str]
_RankKey = tuple[str, "Product", str, bool]


class _RankCalls(NamedTuple):
    """The products of a rank in its step, whatever the GPU."""

    rank: int
    sums: dict[_RankKey, _Sum]
    shapeless_count: int
    shapeless_ns: int
    lookups: list[tuple[int, int, tuple[int, ...]]]
    """(rows, width, shape) of look-ups in tables."""
    backward: bool
    """Whether anything of a backward pass was recorded."""


def _find_calls(run: MeasuredRun) -> tuple[list[_RankCalls], int]:
    """Returns the products of the ranks, and how many files cannot be read again."""
    from simcore.kineto.products import read_products

    results: list[_RankCalls] = []
    unread = 0
    last: tuple[str, FileProducts | None] = "", None
    for trace in run.ranks:
        if trace.path != last[0]:
            # The next rank is mostly of another file.
            is_of_host = trace.device is not None and not trace.device.on_device
            last = trace.path, read_products(trace.path, set(trace.ops.line) if is_of_host else ())
        if last[1] is None:
            unread += 1
        else:
            results.append(_calls_of_rank(trace, last[1]))
    return results, unread


def _calls_of_rank(trace: RankTrace, of_file: FileProducts) -> _RankCalls:
    device, ops = trace.device, trace.ops
    assert device is not None
    ns_of: dict[int, int] = {}
    is_tf32: set[int] = set()
    shapeless_count = shapeless_ns = 0
    for op, correlation in enumerate(device.correlation if device.on_device else ()):
        call = of_file.call_of.get(correlation, -1)
        ns = ops.end[op] - ops.start[op]
        if call >= 0:
            ns_of[call] = ns_of.get(call, 0) + ns
            if _TF32.search(ops.name[op]):
                is_tf32.add(call)
        elif op not in device.collectives and family_of(ops.name[op]) in _FAMILIES:
            shapeless_count += 1
            shapeless_ns += ns
    sums: dict[_RankKey, _Sum] = {}
    calls = _calls_of_step(trace, of_file, ns_of)
    for call in calls:
        one = of_file.products[of_file.product[call]]
        precision = "tf32" if one.precision == "fp32" and call in is_tf32 else one.precision
        key = one.name, one.product, precision, bool(of_file.is_again[call])
        of_key = sums.get(key)
        if of_key is None:
            of_key = sums[key] = _Sum()
        of_key.calls += 1
        if call in ns_of:
            of_key.timed_calls += 1
            of_key.ns += ns_of[call]
    lookups = _lookups_of_step(of_file, calls)
    return _RankCalls(trace.rank, sums, shapeless_count, shapeless_ns, lookups, of_file.backward)


def _calls_of_step(trace: RankTrace, of_file: FileProducts, ns_of: dict[int, int]) -> list[int]:
    """Returns the calls of the step of a rank: those whose kernels are in it; those without any kernel by
    when the host made them.
    """
    assert trace.device is not None
    start = of_file.start
    if not trace.device.on_device:
        first = min((begin for begin, _ in of_file.times_of_lines), default=0.0)
        last = max((end for _, end in of_file.times_of_lines), default=-1.0)
        return [call for call, begin in enumerate(start) if first <= begin <= last]
    if not ns_of:
        return []
    if not any(ran and call not in ns_of for call, ran in enumerate(of_file.has_kernel)):
        # All that was recorded.
        return [*range(len(start))]
    first, last = min(start[call] for call in ns_of), max(start[call] for call in ns_of)
    return [
        call for call, ran in enumerate(of_file.has_kernel)
        if call in ns_of or (not ran and first <= start[call] <= last)
    ]  # fmt: skip


class _Packed:
    """The sequences of packed attention, and how much longer they take at their peak than equally long ones,
    at least and at most, s.
    """

    def __init__(self) -> None:
        self.sequences = self.tokens = 0
        self.least = self.most = 0.0

    def add(self, product: Product, count: int, seconds: float) -> None:
        from simcore.kineto.product_shapes import packed_range

        sequences, tokens = product.sizes[:2]
        self.sequences += count * sequences
        self.tokens += count * sequences * tokens
        least, most = packed_range(product)
        self.least += seconds * (least - 1)
        self.most += seconds * (most - 1)

    @property
    def mean(self) -> int:
        """The tokens of a sequence."""
        return round(self.tokens / self.sequences)


class _RunProducts:
    """The products of each rank. reason: why there are none, "" where there are."""

    def __init__(self, run: MeasuredRun, gpu: Gpu, step_ns: int) -> None:
        self.gpu, self.step_ns = gpu, step_ns
        self.sums: dict[_Key, _Sum] = {}
        self.ranks: list[RankProducts] = []
        self.calls: list[_RankCalls] = []
        self.packed = _Packed()
        self.reason = ""
        if not _is_kineto(run):
            self.reason = "its format records no shapes"
            return
        # Other parameters change nothing of the files: a form asks again with each key.
        self.calls, unread = cached_on(run, "product calls", lambda: _find_calls(run))
        for of_rank in self.calls:
            self._take_rank(of_rank)
        if unread:
            self.reason = f"the files of {plural(unread, 'rank')} cannot be read again"
        elif not self.sums:
            self.reason = "no call states its shapes: record_shapes=True of torch.profiler records them"

    @property
    def backward(self) -> bool:
        """Whether anything of a backward pass was recorded."""
        return any(of_rank.backward for of_rank in self.calls)

    def _take_rank(self, of_rank: _RankCalls) -> None:
        flops: dict[str, float] = {}
        whole = causal = at_peak = causal_at_peak = once_at_peak = unknown_peak = 0.0
        for (name, product, precision, is_again), one in of_rank.sums.items():
            self.sums.setdefault((name, product, precision), _Sum()).add(one)
            count = one.calls
            flops[precision] = flops.get(precision, 0.0) + product.flops * count
            whole += product.flops * count
            causal += product.causal_flops * count
            peak = peak_flops(self.gpu, precision)
            if peak is None:
                unknown_peak += product.flops * count
                continue
            at_peak += product.flops * count / peak
            causal_at_peak += product.causal_flops * count / peak
            if not is_again:
                once_at_peak += product.model_flops * count / peak
            if product.is_packed:
                self.packed.add(product, count, product.flops * count / peak)
        seconds = self.step_ns / 1e9 or float("inf")
        ns = sum(one.ns for one in of_rank.sums.values())
        calls = sum(one.calls for one in of_rank.sums.values())
        self.ranks.append(
            RankProducts(
                of_rank.rank, whole, causal, flops, ns, at_peak / seconds, causal_at_peak / seconds,
                once_at_peak / seconds, calls, unknown_peak, of_rank.shapeless_count, of_rank.shapeless_ns,
            )
        )  # fmt: skip

    def packed_words(self) -> list[str]:
        """Returns what is assumed of sequences behind one another, with what HFU would be at least and at
        most.
        """
        packed, ranks = self.packed, len(self.ranks)
        if not packed.sequences:
            return []
        hfu = sum(rank.hfu for rank in self.ranks) / ranks
        seconds = ranks * self.step_ns / 1e9 or float("inf")
        least, most = (f"{100 * (hfu + more / seconds):.3g}" for more in (packed.least, packed.most))
        return [
            f"packed sequences as long as their mean, {packed.mean} tokens, as traces have none of their "
            f"lengths; with others HFU is {least} to {most} %"
        ]

    def lines(self) -> list[ProductLine]:
        """Returns the products, equal ones as a line, what takes longest first."""
        lines = []
        for (name, product, precision), one in self.sums.items():
            peak, seconds = peak_flops(self.gpu, precision), one.ns / 1e9
            reached = product.causal_flops * one.timed_calls / seconds if one.ns else None
            share = reached / peak if reached is not None and peak is not None else None
            expected = _expected_seconds(self.gpu, product, precision)
            expected_ns = None if expected is None else round(expected * one.timed_calls * 1e9)
            lines.append(
                ProductLine(
                    name, product.kind, product.shape, precision, one.calls, product.flops * one.calls,
                    product.causal_flops * one.calls, one.ns,
                    None if reached is None else reached / 1e12, share, expected_ns,
                    self._is_far(one, expected),
                )
            )  # fmt: skip
        return sorted(lines, key=lambda line: (-line.ns, -line.flops, line.operation, line.shape))

    def _is_far(self, one: _Sum, expected: float | None) -> bool:
        """Returns whether equal products take far longer than their shape's measured time, and matter."""
        if expected is None or not one.timed_calls or expected < _LEAST_S:
            return False
        lost = one.ns / 1e9 - expected * one.timed_calls
        step = self.step_ns / 1e9 * max(len(self.ranks), 1)
        return one.ns / 1e9 > _FAR * expected * one.timed_calls and lost > _LEAST_SHARE * step


def _expected_seconds(gpu: Gpu, product: Product, precision: str) -> float | None:
    """Returns what a product takes alone on the GPU by the measured operations of its kind; None for kinds
    and types that nobody measured.
    """
    from simcore.model.operations.attention import attention_backward_ratio, attention_time
    from simcore.model.operations.products import product_time

    if precision not in ("bf16", "fp8") or not product.flops:
        return None
    try:
        if product.kind == "attention" and precision == "bf16":
            batch, queries, keys, heads, key_heads, size, value_size = product.sizes
            if product.is_causal and queries > keys:
                return None
            alone = attention_time(
                gpu, precision, batch, queries, heads, key_heads, size, value_size, product.is_causal, keys
            )
            ratio = attention_backward_ratio(gpu, size) if product.is_backward else 1.0
            return alone.seconds * ratio
        if product.kind == "product" and product.sizes[0] == 1:
            one = product_time(gpu, precision, *product.sizes[1:])
            return one.seconds - one.cast
    except (UsageError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return None


# -- the model's own FLOPs ---------------------------------------------------------------


def _lookups_of_step(of_file: FileProducts, calls: Sequence[int]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Returns (rows, width, shape) of the look-ups in tables of a step: from the call before its first
    product to its last.
    """
    if not calls:
        return []
    of_step = set(calls)
    first, last = (pick(of_file.start[call] for call in calls) for pick in (min, max))
    before = max(
        (begin for call, begin in enumerate(of_file.start) if begin < first and call not in of_step),
        default=float("-inf"),
    )
    return [tuple(lookup) for lookup, begin in of_file.lookups if before < begin <= last]  # type: ignore[misc]


def _model_throughput(
    run: MeasuredRun, step: MeasuredStep, reader: _RunProducts, model: Model | None
) -> tuple[Throughput | None, tuple[str, ...]]:
    """Returns tokens/s, FLOP/s and MFU of the model, and what was assumed; None where its tokens are not
    known.
    """
    if model is None:
        return None, ()
    assumed: list[str] = []
    world = run.degrees.world or len(run.ranks)
    seq = step.seq
    lookups = [
        lookup for of_rank in reader.calls for lookup in of_rank.lookups if lookup[1] == model.hidden
    ]  # fmt: skip
    table = max((rows for rows, _, _ in lookups), default=0)
    shapes = [shape for rows, _, shape in lookups if rows == table]
    ranks = sum(any(lookup[1] == model.hidden for lookup in one.lookups) for one in reader.calls)
    if seq is None:
        seq = max((shape[-1] for shape in shapes if len(shape) > 1), default=model.seq)
    replicas = world // (_gpus_of_replica(run) or 1) or 1
    if step.global_batch is not None:
        tokens = float(step.global_batch * seq)
    elif step.microbatch_size is not None:
        batches = run.microbatches or len(shapes) // max(ranks, 1) or 1
        tokens = float(step.microbatch_size * seq * batches * replicas)
        assumed.append(f"{batches} micro-batches a replica")
    elif shapes:
        tokens = sum(map(_size, shapes)) / ranks * replicas
    else:
        return None, ("the tokens of a step are not known: --global-batch and --seq state them",)
    if world > 1 and step.global_batch is None and _gpus_of_replica(run) is None:
        assumed.append("every rank has sequences of its own")
    passes = 3.0 if reader.backward or not reader.ranks else 1.0
    if passes == 1.0:
        assumed.append("forward alone: no operation of a backward pass is in the trace")
    without_head = bool(table) and world == 1 and not _has_width(reader, table)
    if without_head:
        assumed.append("no output layer: no product is as wide as the vocabulary")
    # Of packed sequences the shape of the look-up is all of them.
    attended = reader.packed.mean if reader.packed.sequences and step.seq is None else seq
    flops = tuple(_forward_flops(model, attended, is_causal, without_head) for is_causal in (False, True))
    seconds = reader.step_ns / 1e9 or float("inf")
    each = tokens / seconds / world
    precision = _main_precision(reader)
    peak = peak_flops(reader.gpu, precision) or reader.gpu.peak * 1e12
    whole, causal = (passes * one * each for one in flops)
    hfu = sum(rank.hfu for rank in reader.ranks) / len(reader.ranks) if reader.ranks else 0.0
    return (
        Throughput(
            tokens / seconds, each, whole / 1e12, whole / peak, hfu, whole / peak, causal / peak
        ),
        tuple(assumed),
    )  # fmt: skip


def _size(shape: Sequence[int]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size


def _gpus_of_replica(run: MeasuredRun) -> int | None:
    """Returns how many GPUs share one batch; None where the traces do not tell."""
    degrees = run.degrees
    if degrees.world == 1 or (len(run.ranks) == 1 and degrees.world is None):
        return 1
    if degrees.world is not None and degrees.dp:
        return max(degrees.world // degrees.dp, 1)
    if degrees.tp is None and degrees.pp is None:
        return None
    return (degrees.tp or 1) * (degrees.pp or 1)


def _has_width(reader: _RunProducts, rows: int) -> bool:
    """Returns whether any product has so many rows or columns."""
    return any(rows in product.sizes[1:] for _, product, _ in reader.sums if product.kind == "product")


def _main_precision(reader: _RunProducts) -> str:
    """Returns the type of most FLOPs, bf16 where nothing tells it."""
    sums: dict[str, float] = {}
    for rank in reader.ranks:
        for precision, flops in rank.flops_by_precision.items():
            sums[precision] = sums.get(precision, 0.0) + flops
    return max(sums, key=lambda precision: sums[precision], default="bf16")


def _forward_flops(model: Model, seq: int, is_causal: bool, without_head: bool) -> float:
    """Returns the FLOPs of a token's forward: layers, and the output layer."""
    from simcore.model.costs import layer_flops

    kinds = [model.kind_of(layer) for layer in range(model.layers)]
    each = {kind: sum(layer_flops(model, kind, seq, is_causal)) for kind in set(kinds)}
    return sum(each[kind] for kind in kinds) + (0.0 if without_head else 2.0 * model.embedding)
