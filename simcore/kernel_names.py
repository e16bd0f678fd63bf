"""Names of kernels as they are shown: a demangled name without what all of its kind have in common."""

from __future__ import annotations

import re
from functools import lru_cache

# A longer name is shown as it is: nobody reads it, and a hostile one costs no time.
_MOST = 4096
_WRAPPERS = re.compile(
    r"^(?:vectorized|unrolled|legacy|index|reduce|multi_tensor_apply)?_?(?:elementwise_)?kernel(?:_impl|_nocast)?<"
)
_FUNCTOR = re.compile(r"\b(\w*(?:[Ff]unctor|_kernel_cuda|_kernel_impl|Op|Ops)\w*)\b")


@lru_cache(maxsize=8192)
def shown_name(name: str) -> str:
    """`vectorized_elementwise_kernel: sqrt_kernel_cuda` of a kernel's demangled name; all else stays as it
    is.

    Left out are its result, its namespaces, its parameters, and template arguments but the one that says what
    a kernel of PyTorch's computes.
    """
    if len(name) > _MOST or not ("<" in name or "(" in name) or not name.isprintable():
        return name
    text = name.removeprefix("void ")
    head, inside = _split(text)
    head = head.rpartition("::")[2].strip() or head.strip()
    if not re.fullmatch(r"[\w.~$-]+", head):
        return name
    if _WRAPPERS.match(f"{head}<"):
        functor = next((one for one in _FUNCTOR.findall(inside) if one not in (head, "ReduceOp")), "")
        return f"{head}: {functor}" if functor else head
    return head


def _split(text: str) -> tuple[str, str]:
    """(the name before its template arguments or parameters, those)."""
    text = text.replace("(anonymous namespace)::", "")
    ends = [at for at in (text.find("<"), text.find("(")) if at > 0]
    at = min(ends, default=len(text))
    return text[:at], text[at:]
