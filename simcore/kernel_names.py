"""Names of kernels as they are shown: a demangled name without what all of its kind have in common."""

from __future__ import annotations

import re
from functools import lru_cache

from simcore.diagnostics import printable_within

# A longer name is shown as it is: nobody reads it, and a hostile one costs no time.
_MAX_LENGTH = 4096
# Patterns are compiled where the first kernel is named: a run without any starts without them.
_WRAPPERS = (
    r"^(?:vectorized|unrolled|legacy|index|reduce|multi_tensor_apply|_scatter_gather)?_?(?:elementwise_)?"
    r"kernel(?:_impl|_nocast|_with_index)?<"
)
_FUNCTOR = r"\b(\w*(?:[Ff]unctor|_cuda_kernel|_kernel_cuda|_kernel_impl|_cuda_out|Ops?(?![a-z]))\w*)\b"
# `silu_kernel(at::TensorIteratorBase&)::{lambda...`: what a kernel's code is written in.
_FUNCTION_OF_TENSORS = r"\b(\w+)\(at::Tensor"
# They apply what stands inside of them.
_APPLIES = frozenset((
    "ReduceOp", "gpu_kernel_impl", "gpu_kernel_impl_nocast", "BinaryFunctor", "AUnaryFunctor",
    "BUnaryFunctor",
))  # fmt: skip
# `void cutlass::Kernel2<what it is>(its parameters)`; so does a node of C++ in autograd's graph.
_WRAPPED = r"(?:(?:void )?cutlass\w*::Kernel2?|torch::autograd::CppNode)<([\w:]+)"
_AUTOGRAD = "torch::autograd::"
# What a kernel gives where its template is one for some types alone.
_NCCL_PREFIX = r"^[nr]ccl(?:Dev)?Kernel_(?=\w)"
_ENABLE_IF, _TYPE = "std::enable_if<", "::type "
_ENGINE = "autograd::engine::evaluate_function: "
# What a host calls is no kernel: functions of Python as a profiler writes them, with their file and line or
# with the address of their object, and the annotation around a batch that is loaded.
_PYTHON = r"[^()<>]+\.py\(\d+\): "
_BUILT_IN = r"(?s)(<built-in .*?)(?: at 0x[0-9a-fA-F]+)?>"
_LOADER, _ITERATES = "enumerate(DataLoader)", "enumerate("


@lru_cache(maxsize=8192)
def display_name(name: str) -> str:
    """`sqrt_kernel_cuda (vectorized)` of a kernel's demangled name, `AddmmBackward0 (evaluate)`
    of what autograd's engine runs; all else stays as it is.

    First stands what tells it from others of its kind. Left out are its result, its namespaces, its
    parameters, and template arguments but the one that says what a kernel of PyTorch's computes.
    """
    if name.startswith(_ENGINE) and len(name) > len(_ENGINE):
        node = name[len(_ENGINE) :]
        return f"{display_name(node.removeprefix(_AUTOGRAD) if '<' not in node else node)} (evaluate)"
    if len(name) > _MAX_LENGTH or not ("<" in name or "(" in name) or not name.isprintable():
        return name
    if name.startswith(_ITERATES):
        return _LOADER if name.startswith(f"{_LOADER}#") else name
    if re.match(_PYTHON, name):
        path, _, rest = name.partition(".py(")
        # A package's own file is told by its directory.
        parts = path.rsplit("/", 2 if path.endswith("/__init__") else 1)
        return f"{'/'.join(parts[1:] if len(parts) > 1 else parts)}.py({rest}"
    built_in = re.fullmatch(_BUILT_IN, name)
    if built_in is not None:
        return f"{built_in[1]}>"
    wrapped = re.match(_WRAPPED, name)
    if wrapped is not None:
        return wrapped[1].rpartition("::")[2] or name
    text = _without_result(name)
    qualified_name, inside = _split(text)
    head = qualified_name.rpartition("::")[2].strip() or qualified_name.strip()
    if not re.fullmatch(r"[\w.~$-]+", head):
        return name
    if re.match(_WRAPPERS, f"{head}<"):
        functors = [functor for functor in re.findall(_FUNCTOR, inside) if functor != head]
        own_functors = [functor for functor in functors if functor not in _APPLIES] or re.findall(
            _FUNCTION_OF_TENSORS, inside
        )
        functor = next(iter(own_functors or functors), "")
        wrapper = head.removesuffix("_kernel").removesuffix("_elementwise")
        if not functor and head == "kernel":
            # `internal::gemvx::kernel`: its namespace says which.
            return "::".join(qualified_name.strip().split("::")[-2:])
        return f"{functor} ({wrapper})" if functor else head
    return head


def short_name(name: str, most: int) -> str:
    """`shown_name`, printable, in at most `most` characters: where it is too long without NCCL's prefix, then
    cut in its middle, as names of kernels differ at their ends.
    """
    safe = printable_within(display_name(name), max(4 * most, 400))
    if len(safe) > most:
        # What of 26 characters is left to it would hide which collective it is.
        safe = re.sub(_NCCL_PREFIX, "", safe)
    if len(safe) <= most:
        return safe
    end = max(most - 3, 0) // 2
    return f"{safe[: most - 3 - end]}...{safe[len(safe) - end :]}"


def _without_result(name: str) -> str:
    """A name without the type that it gives: `void`, or a whole `std::enable_if<!(false), void>::type`."""
    if not name.startswith(_ENABLE_IF):
        return name.removeprefix("void ")
    depth = 0
    for at, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == ">" and not depth:
            rest = name[at + 1 :]
            return rest.removeprefix(_TYPE) if rest.startswith(_TYPE) and len(rest) > len(_TYPE) else name
    return name


def _split(text: str) -> tuple[str, str]:
    """(the name before its template arguments or parameters, those)."""
    text = text.replace("(anonymous namespace)::", "")
    ends = [at for at in (text.find("<"), text.find("(")) if at > 0]
    at = min(ends, default=len(text))
    return text[:at], text[at:]
