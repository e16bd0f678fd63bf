"""Families of kernels: what a kernel computes, by its name."""

from __future__ import annotations

import re
from functools import lru_cache

from simcore.kernel_names import display_name

COMMUNICATION, COPY, OTHER = "communication", "copy", "other"
# The first expression that a name matches counts: an elementwise kernel has what it computes in its name, and
# is known by its wrapper, `(vectorized)`, only where that is none of the others.
_FAMILIES = (
    ("reduction", r"\(reduce\)|(?<![a-z])reduce_kernel"),
    ("attention", r"flash|fmha|attention|attn|sdpa|(?<![a-z])mha"),
    ("convolution", r"conv(?!ert)|wgrad|dgrad|fprop|winograd|nchwto|nhwcto|im2col|scudnn"),
    ("GEMM", r"gemm|gemv|nvjet|cutlass|cublas|splitk|matmul|(?<![a-z])b?mm(?![a-z])"),
    ("softmax, loss", r"softmax|cross_?entropy|nll_?loss"),
    ("norm", r"norm|(?<![a-z])bn_(?:fw|bw)|welford|gammabeta|rowwisemoments"),
    ("embedding", r"embedding|embs|index(?:select|_select|_put|_kernel|ing)|linearize_index|gather|scatter"),
    ("optimizer", r"multi_tensor|adam|(?<![a-z])sgd|(?<![a-z])lamb(?!da)|optimizer"),
    ("sort, scan", r"sort|scan|topk|histogram|unique|compact"),
    ("pooling", r"pool"),
    ("reduction", r"reduce|(?<![a-z])sum(?![a-z])|mean"),
    (
        "elementwise",
        r"elementwise|vectorized|unrolled|functor|catarray|triton_poi|fill|dropout|activation|gelu|silu|relu|"
        r"transpose|permute|copy|quantize",
    ),
)


@lru_cache(maxsize=8192)
def family_of(name: str) -> str:
    """Returns what a kernel that computes is for, by its name; OTHER where the name does not say it."""
    text = display_name(name)[:1000].lower()
    return next((family for family, words in _FAMILIES if re.search(words, text)), OTHER)
