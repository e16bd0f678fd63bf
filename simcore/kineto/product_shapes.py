"""The FLOPs of matrix products, attention and convolutions, by the shapes that a profiler recorded.

FLOPs of attention are counted over the whole square of scores, as papers and PyTorch's own counter do;
`causal_flops` has the half that a causal mask leaves, where the call states one. Backward of fused attention
is five products where forward is two, as it makes the scores again.

Where sequences of a tensor begin (cu_seqlens) is a tensor itself, of which profilers record the size alone:
sequences behind one another count as equally long, and `packed_range` says within what bounds that is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from simcore.records import NamedTuple
from simcore.units import is_whole

Shape = tuple[int, ...]
# More is no tensor.
_MOST_SIZE, _MOST_DIMS, _MOST_INPUTS = 1 << 48, 8, 64
_BACKWARD_PRODUCTS = 2.5


class Product(NamedTuple):
    """A product of a shape."""

    kind: str
    """`product`, `attention` or `convolution`."""
    shape: str
    """Its sizes, as text."""
    flops: float
    """Its FLOPs; attention over the whole square of scores."""
    causal_flops: float
    """Its FLOPs without what a causal mask leaves out, where the call states one."""
    sizes: Shape
    """(products, m, n, k); of attention (sequences, queries, keys, heads, key heads, size of a head, that of
    its values).
    """
    is_causal: bool = False
    """Whether attention is under a causal mask."""
    is_backward: bool = False
    """Whether it is the backward of attention, or of a convolution."""
    is_packed: bool = False
    """Whether it is attention over sequences that stand behind one another in a tensor."""
    longest: int = 0
    """The tokens of the longest of them, as the call states it; 0 where it states none."""

    @property
    def model_flops(self) -> float:
        """Its FLOPs without the scores that the backward of fused attention makes again."""
        return self.flops * 0.8 if self.kind == "attention" and self.is_backward else self.flops


class Call(NamedTuple):
    """The inputs of a call of the host, as recorded."""

    dims: Sequence[Any]
    """The sizes of each input; of what is no tensor empty."""
    values: Sequence[Any]
    """What inputs that are no tensors are, as text; empty in old files."""

    def tensor(self, index: int) -> Shape:
        """Returns the sizes of an input. Raises IndexError, ValueError for what is no tensor."""
        sizes = self.dims[index]
        if not isinstance(sizes, list) or not 0 < len(sizes) <= _MOST_DIMS:
            raise ValueError("no tensor")
        if any(type(size) is not int or not 0 <= size <= _MOST_SIZE for size in sizes):
            raise ValueError("no sizes")
        return tuple(sizes)

    def is_true(self, index: int) -> bool:
        return 0 <= index < len(self.values) and str(self.values[index]) in ("True", "true", "1")

    def count(self, index: int) -> int:
        """Returns a whole number above 0, written as text; 0 where it is none."""
        text = str(self.values[index]) if index < len(self.values) else ""
        return int(text) if is_whole(text, 15) else 0

    def integers(self, index: int) -> tuple[int, ...]:
        """Returns a list of whole numbers, written as text. Raises ValueError where it is none."""
        text = str(self.values[index]).strip("[]() ")
        return tuple(int(word) for word in text.split(",")) if text else ()


def matrix_product(batch: int, m: int, n: int, k: int) -> Product:
    """Returns `batch` products of (m, k) and (k, n)."""
    flops = 2.0 * batch * m * n * k
    shape = f"{m} x {n} x {k}" if batch == 1 else f"{batch} x ({m} x {n} x {k})"
    return Product("product", shape, flops, flops, (batch, m, n, k))


def packed_range(product: Product) -> tuple[float, float]:
    """Returns (least, most) FLOPs of packed attention over those of equally long sequences: one is as long as
    the call states, the others share the rest alike, or as unlike as they can be.
    """
    sequences, tokens, keys = product.sizes[:3]
    if not product.is_packed or sequences < 2 or tokens != keys or not tokens:
        return 1.0, 1.0
    whole = sequences * tokens
    longest = min(product.longest or whole, whole)
    if longest <= tokens:
        return 1.0, 1.0
    full, rest = divmod(whole, longest)
    most = full * longest**2 + rest**2
    least = longest**2 + (whole - longest) ** 2 / (sequences - 1) if product.longest else whole * tokens
    return least / (whole * tokens), most / (whole * tokens)


def attention(
    query: Shape,
    key: Shape,
    value: Shape,
    is_causal: bool,
    is_backward: bool,
    sequences: int = 0,
    longest: int = 0,
) -> Product:
    """Returns attention of tensors (sequences, heads, tokens, size). sequences: into how many the tokens are
    divided, of tensors whose sequences stand behind one another; longest: tokens of the longest of them.
    """
    batch, heads, queries, size = query
    keys, value_size = key[2], value[3]
    if key[3] != size or value[2] != keys or key[0] != batch:
        raise ValueError("sizes do not fit")
    if sequences > 1:
        batch, queries, keys = batch * sequences, queries / sequences, keys / sequences  # type: ignore[assignment]
    flops = 2.0 * batch * heads * queries * keys * (size + value_size)
    visible_flops = flops * _visible_share(queries, keys) if is_causal else flops
    of_backward = _BACKWARD_PRODUCTS if is_backward else 1.0
    batch, queries, keys = int(batch), round(queries), round(keys)
    tokens = f"{queries}" if queries == keys else f"{queries} of {keys}"
    is_packed = sequences > 1
    tokens = f"~{tokens}" if is_packed else tokens
    of_heads = f"{heads}" if heads == key[1] else f"{heads}/{key[1]}"
    sizes = f"{size}" if size == value_size else f"{size}+{value_size}"
    shape = f"{batch} x {tokens}, {of_heads} heads of {sizes}{', causal' if is_causal else ''}"
    parts = (batch, queries, keys, heads, key[1], size, value_size)
    return Product(
        "attention", shape, of_backward * flops, of_backward * visible_flops, parts, is_causal, is_backward,
        is_packed, longest if is_packed else 0,
    )  # fmt: skip


def _visible_share(queries: float, keys: float) -> float:
    """Returns the share of keys that the queries of a sequence see under a causal mask that ends at the last
    key; half of them where both are equally many.
    """
    return 1 - min(queries, keys) / (2 * keys) if keys else 1.0


# -- by operation ------------------------------------------------------------------------


def _products(left: int, right: int) -> Callable[[Call], Product]:
    """Of two tensors: matrices, or equally many of them."""

    def make(call: Call) -> Product:
        a, b = call.tensor(left), call.tensor(right)
        if len(a) != len(b) or len(a) not in (2, 3) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            raise ValueError("sizes do not fit")
        return matrix_product(prod(a[:-2]), a[-2], b[-1], a[-1])

    return make


def _linear(data: int, weight: int) -> Callable[[Call], Product]:
    """Of any tensor and a weight (outputs, inputs)."""

    def make(call: Call) -> Product:
        x, w = call.tensor(data), call.tensor(weight)
        if len(w) > 2 or x[-1] != w[-1]:
            raise ValueError("sizes do not fit")
        return matrix_product(1, prod(x[:-1]), w[0] if len(w) == 2 else 1, x[-1])

    return make


def _by_vector(matrix: int, vector: int) -> Callable[[Call], Product]:
    def make(call: Call) -> Product:
        a, x = call.tensor(matrix), call.tensor(vector)
        if len(a) != 2 or x != a[1:]:
            raise ValueError("sizes do not fit")
        return matrix_product(1, a[0], 1, a[1])

    return make


def _grouped(call: Call) -> Product:
    """Of groups, as experts are: rows of one tensor, or of both, are divided among them."""
    a, b = call.tensor(0), call.tensor(1)
    if len(a) == 3 and len(b) == 2:
        return matrix_product(1, a[1], b[1], a[2])
    if a[-1] != b[-2] or len(a) not in (2, 3) or len(b) not in (2, 3):
        raise ValueError("sizes do not fit")
    return matrix_product(a[0] if len(a) == 3 else 1, a[-2], b[-1], a[-1])


def _engine_gemm(call: Call) -> Product:
    """Of Transformer Engine 1: A, whether it is transposed, B, whether it is; columns come first."""
    a, b = call.tensor(0), call.tensor(5)
    outputs, inputs = a if call.is_true(4) else a[::-1]
    of_b, rows = b if call.is_true(9) else b[::-1]
    if of_b != inputs:
        raise ValueError("sizes do not fit")
    return matrix_product(1, rows, outputs, inputs)


def _template(call: Call) -> Product:
    """Of a template of torch.compile: the operands and the result are among its inputs."""
    tensors = [call.tensor(index) for index, sizes in enumerate(call.dims) if sizes]
    candidates = {
        (prod(a[:-2]), a[-2], b[-1], a[-1])
        for a in tensors for b in tensors for result in tensors
        if len(a) == len(b) == len(result) and len(a) in (2, 3) and a[:-2] == b[:-2] == result[:-2]
        and a[-1] == b[-2] and result[-2:] == (a[-2], b[-1])
    }  # fmt: skip
    # A square may be an operand or the result.
    if len({prod(sizes) for sizes in candidates}) != 1:
        raise ValueError("sizes do not tell")
    return matrix_product(*max(candidates))


def _attention(
    first: int,
    causal: int,
    heads_at: int = 1,
    is_backward: bool = False,
    lengths: int = -1,
    mask: bool = False,
) -> Callable[[Call], Product]:
    """Of query, key and value from input `first` on. causal: the input that says whether there is a causal
    mask; mask: whether it is a type of mask, of which 1 and 2 are causal. heads_at: where a tensor has its
    heads. lengths: the input with where sequences begin, of tensors whose tokens are divided into them; two
    inputs behind it is how long the longest is.
    """

    def make(call: Call) -> Product:
        tensors = [call.tensor(first + index) for index in range(3)]
        sequences = longest = 0
        if len(tensors[0]) == 3:
            # Tokens of all sequences, heads, size.
            sequences = max(call.tensor(lengths)[0] - 1, 1) if lengths >= 0 and call.dims[lengths] else 1
            longest = call.count(lengths + 2) if sequences > 1 else 0
            tensors = [(1, sizes[1], sizes[0], sizes[2]) for sizes in tensors]
        elif heads_at == 2:
            tensors = [(sizes[0], sizes[2], sizes[1], *sizes[3:]) for sizes in tensors]
        if any(len(sizes) != 4 for sizes in tensors):
            raise ValueError("sizes do not fit")
        query, key, value = tensors
        if mask:
            is_causal = causal < len(call.values) and str(call.values[causal]) in ("1", "2")
        else:
            is_causal = call.is_true(causal)
        return attention(query, key, value, is_causal, is_backward, sequences, longest)

    return make


def _convolution(data: int, weight: int, stride: int, transposed: int = -1) -> Callable[[Call], Product]:
    """Of a tensor (images, channels, sizes) and a weight; padding and dilation stand behind the stride."""

    def make(call: Call) -> Product:
        x, w = call.tensor(data), call.tensor(weight)
        if len(x) != len(w) or len(x) < 3:
            raise ValueError("sizes do not fit")
        if transposed >= 0 and call.is_true(transposed):
            # Each input goes to the whole window.
            return _of_windows(x[0], w[1], w[0], x[2:], w[2:])
        strides, pads, spread = (_spatial(call.integers(stride + index), len(x) - 2) for index in range(3))
        outputs = tuple(
            (size + 2 * pad - gap * (width - 1) - 1) // step + 1
            for size, width, step, pad, gap in zip(x[2:], w[2:], strides, pads, spread, strict=True)
        )
        return _of_windows(x[0], w[0], w[1], outputs, w[2:])

    return make


def _spatial(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise ValueError("sizes do not fit")
    return values


def _of_windows(images: int, outputs: int, inputs: int, positions: Shape, window: Shape) -> Product:
    if any(position < 0 for position in positions):
        raise ValueError("sizes do not fit")
    rows, depth = images * prod(positions), inputs * prod(window)
    flops = 2.0 * rows * outputs * depth
    shape = f"{rows} x {outputs} x {depth}"
    return Product("convolution", shape, flops, flops, (1, rows, outputs, depth))


def _convolution_backward(call: Call) -> Product:
    """Gradients of the input, of the weight, or of both, each as much as the forward."""
    gradient, x, w = (call.tensor(index) for index in range(3))
    if call.is_true(7):
        one = _of_windows(x[0], w[1], w[0], x[2:], w[2:])
    else:
        one = _of_windows(gradient[0], w[0], w[1], gradient[2:], w[2:])
    mask = [word.strip() for word in str(call.values[10]).strip("[]").split(",")] if call.values else []
    count = sum(word in ("True", "true", "1") for word in mask[:2]) if mask else 2
    return one._replace(
        flops=one.flops * count, causal_flops=one.flops * count, is_backward=True,
        shape=f"{count} x ({one.shape})",
    )  # fmt: skip


_OF_NAME: dict[str, Callable[[Call], Product]] = {
    "aten::mm": _products(0, 1),
    "aten::bmm": _products(0, 1),
    "aten::_int_mm": _products(0, 1),
    "aten::_scaled_mm": _products(0, 1),
    "aten::_scaled_mm_v2": _products(0, 1),
    "aten::addmm": _products(1, 2),
    "aten::addmm_": _products(1, 2),
    "aten::_addmm_activation": _products(1, 2),
    "aten::baddbmm": _products(1, 2),
    "aten::baddbmm_": _products(1, 2),
    "aten::addbmm": _products(1, 2),
    "aten::addmv": _by_vector(1, 2),
    "aten::mv": _by_vector(0, 1),
    "aten::linear": _linear(0, 1),
    "aten::_grouped_mm": _grouped,
    "aten::_scaled_grouped_mm": _grouped,
    "_C::cutlass_scaled_mm": _products(1, 2),
    "trtllm::cublas_scaled_mm": _products(0, 1),
    "tex_ts::te_gemm_ts": _engine_gemm,
    "_Linear": _linear(1, 0),
    "_LayerNormLinear": _linear(0, 3),
    "aten::scaled_dot_product_attention": _attention(0, 5),
    "aten::_scaled_dot_product_attention_math": _attention(0, 5),
    "aten::_scaled_dot_product_flash_attention": _attention(0, 4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(0, 4),
    "aten::_scaled_dot_product_efficient_attention": _attention(0, 6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(0, 6),
    "aten::_flash_attention_forward": _attention(0, 8, 2, lengths=3),
    "aten::_efficient_attention_forward": _attention(0, 9, 2, lengths=4, mask=True),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(1, 11, is_backward=True),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 7, is_backward=True),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention(1, 11, is_backward=True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention(1, 14, is_backward=True),
    "aten::_flash_attention_backward": _attention(1, 11, 2, is_backward=True, lengths=6),
    "aten::_efficient_attention_backward": _attention(1, 14, 2, is_backward=True, lengths=6, mask=True),
    "flash_attn::_flash_attn_forward": _attention(0, 5, 2),
    "flash_attn::_flash_attn_backward": _attention(1, 11, 2, is_backward=True),
    "flash_attn::_flash_attn_varlen_forward": _attention(0, 9, 2, lengths=3),
    "flash_attn::_flash_attn_varlen_backward": _attention(1, 15, 2, is_backward=True, lengths=9),
    "FlashAttnFunc": _attention(0, 5, 2),
    "FlashAttnVarlenFunc": _attention(0, 9, 2, lengths=3),
    "aten::conv1d": _convolution(0, 1, 3),
    "aten::conv2d": _convolution(0, 1, 3),
    "aten::conv3d": _convolution(0, 1, 3),
    "aten::convolution": _convolution(0, 1, 3, 6),
    "aten::_convolution": _convolution(0, 1, 3, 6),
    "aten::convolution_backward": _convolution_backward,
}
# What torch.compile names after what it makes of a template.
_TEMPLATE, _OF_TEMPLATE = "triton_tem_fused", ("mm", "convolution", "attention")


def is_product(name: str) -> bool:
    """Returns whether an operation of the host is a product by its name."""
    return name in _OF_NAME or (name.startswith(_TEMPLATE) and any(word in name for word in _OF_TEMPLATE))


def is_forward(name: str) -> bool:
    """Returns whether the forward pass alone makes such a product: in the backward pass it is recomputed."""
    if name in ("aten::linear", "FlashAttnFunc", "FlashAttnVarlenFunc", "_Linear", "_LayerNormLinear"):
        return True
    of_forward = "addmm" in name or "attention" in name or "_attn_" in name or name.startswith("aten::conv")
    return of_forward and "backward" not in name


def product_of(name: str, dims: object, values: object) -> Product | None:
    """Returns the product that an operation of such a name makes; None where its inputs do not tell.

    dims, values: `Input Dims` and `Concrete Inputs`, as a profiler wrote them.
    """
    make = _OF_NAME.get(name, _template if "mm" in name else None)
    if make is None or not isinstance(dims, list) or len(dims) > _MOST_INPUTS:
        return None
    try:
        product = make(Call(dims, values if isinstance(values, list) else ()))
    except (IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return product if product.flops < 1e30 else None


def precision_of(types: object, name: str) -> str:
    """Returns the type of a product's operands: `bf16` (any of 16 bits), `fp8`, `fp32`, `fp64`, `int8`; ""
    where it is not stated. types: `Input type`; name: of the operation.
    """
    if not isinstance(types, list):
        return ""
    return next((word for type_ in types[_first_operand(name) :] if (word := _word(type_))), "")


def _first_operand(name: str) -> int:
    bias_first = ("aten::addmm", "aten::_addmm_activation", "aten::baddbmm", "aten::addbmm", "aten::addmv")
    return 1 if name.startswith(bias_first) or name == "_C::cutlass_scaled_mm" else 0


def _word(type_: object) -> str:
    text = str(type_).removeprefix("c10::").lower()
    if text in ("bfloat16", "half"):
        return "bf16"
    if text.startswith("float8"):
        return "fp8"
    return {"float": "fp32", "double": "fp64", "signed char": "int8"}.get(text, "")
