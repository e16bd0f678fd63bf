"""Event files of other tools in the format of Kineto's, which is Chrome's: those that are refused are named
with what can be done instead, all others are Chrome traces in general.

A file is recognized by its content, and only where it has nothing of a device that Kineto knows: a trace of
PyTorch that contains such a word is read.
"""

from __future__ import annotations

import re

from simcore.diagnostics import Diagnostic, InputError
from simcore.kineto.vocabulary import ANNOTATIONS, COPIES, HOST_OPS, KERNELS, LAUNCHES, PYTHON
from simcore.records import Struct
from simcore.workload.formats.format import Format

# Tools name their processes at the beginning or the end.
_LOOKED_AT = 1 << 20
# A trace of Kineto has a category in the first events.
_FIRST_LOOK = 1 << 16
_CATEGORY = re.compile(rb'"cat"\s*:\s*"([^"\\]{1,60})"')
_TIMED = re.compile(rb'"ph"\s*:\s*"[XBb]"')
# Categories of Kineto that are not displayed.
_NOT_SHOWN = frozenset(("overhead", "cuda_sync", "Trace", "ac2g", "async_cpu_to_gpu", "fwdbwd",
                        "gpu_user_annotation", "cuda_profiler_range"))  # fmt: skip
_OF_KINETO = KERNELS | COPIES | LAUNCHES | HOST_OPS | ANNOTATIONS | PYTHON | _NOT_SHOWN
_RECORD = "record the run with torch.profiler"


class OtherTool(Struct, frozen=True):
    """A tool whose files are refused."""

    name: str
    """Of its file, with an article."""
    pattern: re.Pattern[bytes]
    """What its files contain."""
    instead: str
    """As in `Format`."""
    has_host: bool = False
    """Whether Kineto's own events of the host are in the same file."""


OTHER_TOOLS = (
    OtherTool(
        "a trace of the Ascend profiler",
        re.compile(rb'"Ascend Hardware"|"Overlap Analysis"|"Task Type"\s*:\s*"AI_'),
        "of its devices nothing is known here; profiler traces of PyTorch (Kineto) and Nsight Systems open",
        has_host=True,
    ),
    OtherTool(
        "a trace of JAX or TensorFlow (XLA)",
        re.compile(rb'"/(?:device|host|job):|"hlo_(?:op|module)"\s*:'),
        "nsys profile records such programs too: nsys export --type sqlite makes a file that opens",
    ),
    OtherTool("a timeline of Horovod", re.compile(rb'"NEGOTIATE_[A-Z]'), _RECORD),
    OtherTool(
        "a timeline of Ray",
        re.compile(rb'"(?:worker|driver|raylet|core_worker):|"cat"\s*:\s*"task:'),
        _RECORD,
    ),
    OtherTool(
        "a trace of PyTorch's old profiler (torch.autograd.profiler)",
        re.compile(rb'"pid"\s*:\s*"(?:CPU|CUDA) functions"|"cat"\s*:\s*"cpu_to_cuda"'),
        _RECORD,
    ),
)  # fmt: skip


def is_chrome(events: memoryview) -> bool:
    """Returns whether events are those of a Chrome trace in general: none of them is of a category of
    Kineto's.
    """
    for size in (_FIRST_LOOK, _LOOKED_AT):
        ends = bytes(events[:size]), bytes(events[-size:])
        categories = {category for end in ends for category in _CATEGORY.findall(end)}
        if any(category.decode("utf-8", "replace") in _OF_KINETO for category in categories):
            return False
    return any(map(_TIMED.search, ends))


def refuse_other(path: str, events: memoryview, has_host: bool) -> None:
    """Raises InputError for events of another tool. has_host: whether operations of Kineto's host are among
    them.
    """
    ends = bytes(events[:_LOOKED_AT]), bytes(events[-_LOOKED_AT:])
    for tool in OTHER_TOOLS:
        if (tool.has_host or not has_host) and any(map(tool.pattern.search, ends)):
            raise _refusal(path, tool.name, tool.instead)


def _refusal(path: str, name: str, instead: str) -> InputError:
    message = Format(name, lambda head: False, instead=instead).refusal
    return InputError(Diagnostic("error", "unsupported-format", message, path))
