"""The registry of formats: a new one is one new file here and one line in `_MODULES`.

A file belongs to the first format that recognises its head. The modules are imported one after another until
one does: all of them take 8 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from simcore.workload.formats.format import FileHead, Format, head_of

# In the order in which they are asked.
_MODULES = (
    "simai_text",
    "profiler_trace",
    "astra_policies",
    "rank_trace",
    "model_files",
    "op_table",
    "op_table_json",
    "packed",
    "span_csv",
    "training_log",
    "recordings",
    "unopened",
)


def formats() -> Iterator[Format]:
    """Yields all formats, in the order in which they are asked."""
    for name in _MODULES:
        yield from import_module(f"{__name__}.{name}").FORMATS


def format_of(raw: bytes) -> Format | None:
    """The format of a file that begins with `raw`; None for none that is known."""
    head = head_of(raw)
    return next((file_format for file_format in formats() if file_format.sniff(head)), None)


def format_label(key: str) -> str:
    """Who wrote a recording whose format JSON calls `key`."""
    return next(file_format.words for file_format in formats() if file_format.key == key)


__all__ = ["FileHead", "Format", "format_label", "format_of", "formats", "head_of"]
