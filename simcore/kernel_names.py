"""Names of kernels as they are displayed: demangled, without what all kernels of a kind have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest

from simcore.diagnostics import printable_within

# A longer name is displayed unchanged: nobody reads it, and a hostile one would cost time.
_MAX_LENGTH = 4096
# Patterns are compiled for the first kernel, so that a run without kernels starts without them.
_WRAPPERS = (
    r"^(?:vectorized|unrolled|legacy|index|reduce|multi_tensor_apply|_scatter_gather)?_?(?:elementwise_)?"
    r"kernel(?:_impl|_nocast|_with_index)?<"
)
_FUNCTOR = r"\b(\w*(?:[Ff]unctor|_cuda_kernel|_kernel_cuda|_kernel_impl|_cuda_out|Ops?(?![a-z]))\w*)\b"
# `silu_kernel(at::TensorIteratorBase&)::{lambda...`: what a kernel's code is written in.
_FUNCTION_OF_TENSORS = r"\b(\w+)\(at::Tensor"
# Functors that apply the functor among their template arguments.
_APPLIES = frozenset((
    "ReduceOp", "gpu_kernel_impl", "gpu_kernel_impl_nocast", "BinaryFunctor", "AUnaryFunctor",
    "BUnaryFunctor",
))  # fmt: skip
# `void cutlass::Kernel2<what it is>(its parameters)`; so does a node of C++ in autograd's graph.
_WRAPPED = r"(?:(?:void )?cutlass\w*::Kernel2?|torch::autograd::CppNode)<([\w:]+)"
_AUTOGRAD = "torch::autograd::"
# The result type of a kernel whose template is for some types alone.
_NCCL_PREFIX = r"^[nr]ccl(?:Dev)?Kernel_(?=\w)"
_ENABLE_IF, _TYPE = "std::enable_if<", "::type "
_ENGINE = "autograd::engine::evaluate_function: "
# Calls of the host, which are no kernels: functions of Python as a profiler writes them, with their file and
# line or the address of their object, and the annotation around the loading of a batch.
_PYTHON = r"[^()<>]+\.py\(\d+\): "
# A word of a whole name, with its namespaces; only so many of a name are compared.
_WORD, _MOST_WORDS = r"[\w.~]+(?:::[\w.~]+)*", 400
_BUILT_IN = r"(?s)(<built-in .*?)(?: at 0x[0-9a-fA-F]+)?>"
_LOADER, _ITERATES = "enumerate(DataLoader)", "enumerate("


@lru_cache(maxsize=8192)
def display_name(name: str) -> str:
    """Returns the short form of a name: `sqrt_kernel_cuda (vectorized)` of a kernel's demangled name,
    `AddmmBackward0 (evaluate)` of what autograd's engine runs; other names unchanged.

    The part comes first that distinguishes it from others of its kind. Its result type, namespaces and
    parameters are left out, and template arguments except the one that says what a kernel of PyTorch
    computes.
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
        # `__init__.py` is identified by its directory.
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
            # `internal::gemvx::kernel`: its namespace says which kernel it is.
            return "::".join(qualified_name.strip().split("::")[-2:])
        return f"{functor} ({wrapper})" if functor else head
    return head


def short_name(name: str, most: int) -> str:
    """Returns `display_name`, printable, in at most `most` characters.

    A name that is too long loses NCCL's prefix, then is truncated in its middle, as names of kernels differ
    at their ends.
    """
    safe = printable_within(display_name(name), max(4 * most, 400))
    if len(safe) > most:
        # In 26 characters the prefix would hide which collective it is.
        safe = re.sub(_NCCL_PREFIX, "", safe)
    if len(safe) <= most:
        return safe
    end = max(most - 3, 0) // 2
    return f"{safe[: most - 3 - end]}...{safe[len(safe) - end :]}"


def distinct_names(names: Iterable[str]) -> dict[str, str]:
    """Returns `display_name` of each name; names that are displayed alike are followed by the words in which
    they differ: `bn_fw_kernel 128` and `bn_fw_kernel 32` of two instances of a template.
    """
    text_by_name = {name: display_name(name) for name in dict.fromkeys(names)}
    names_by_text: dict[str, list[str]] = {}
    for name, text in text_by_name.items():
        names_by_text.setdefault(text, []).append(name)
    for text, equal_names in names_by_text.items():
        if len(equal_names) > 1:
            words = _differing_words(equal_names)
            text_by_name |= {
                name: f"{text} {own}".rstrip() for name, own in zip(equal_names, words, strict=True)
            }
    return text_by_name


def _differing_words(names: Sequence[str]) -> list[str]:
    """Returns of each name the word that tells it from the others; where no single one does, the first ones
    that do together.
    """
    words = [[word.rpartition("::")[2] for word in re.findall(_WORD, name)[:_MOST_WORDS]] for name in names]
    differing = [column for column in zip_longest(*words, fillvalue="") if len(set(column)) > 1]
    telling = next((column for column in differing if len(set(column)) == len(names)), None)
    if telling is not None:
        return list(telling)
    together = [""] * len(names)
    for column in differing:
        further = [f"{before} {word}".strip() for before, word in zip(together, column, strict=True)]
        if len(set(further)) > len(set(together)):
            together = further
    return together


def without_library(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns displayed names without NCCL's prefix, which all of its kernels have: `SendRecv_RING` of
    `ncclDevKernel_SendRecv_RING`. Names that would become equal keep it.
    """
    short_texts = {name: re.sub(_NCCL_PREFIX, "", text) for name, text in texts.items()}
    return short_texts if len(set(short_texts.values())) == len(set(texts.values())) else dict(texts)


def _without_result(name: str) -> str:
    """Returns a name without its result type: `void`, or a whole `std::enable_if<!(false), void>::type`."""
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
    """Returns (the name before its template arguments or parameters, those)."""
    text = text.replace("(anonymous namespace)::", "")
    ends = [at for at in (text.find("<"), text.find("(")) if at > 0]
    at = min(ends, default=len(text))
    return text[:at], text[at:]
