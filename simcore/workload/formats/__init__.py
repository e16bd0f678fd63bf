"""The registry of formats: a new one is one new file here and one line in `FORMATS`.

A file belongs to the first entry that recognises its head.
"""

from simcore.workload.formats import (
    astra_policies,
    model_files,
    op_table,
    op_table_json,
    packed,
    profiler_trace,
    rank_trace,
    recordings,
    simai_text,
    span_csv,
    training_log,
    unopened,
)
from simcore.workload.formats.format import FileHead, Format, head_of

FORMATS: tuple[Format, ...] = (
    simai_text.FORMAT,
    *profiler_trace.FORMATS,
    *astra_policies.FORMATS,
    *rank_trace.FORMATS,
    *model_files.FORMATS,
    op_table.FORMAT,
    op_table_json.FORMAT,
    *packed.FORMATS,
    span_csv.FORMAT,
    training_log.FORMAT,
    *recordings.FORMATS,
    *unopened.FORMATS,
)


def format_of(raw: bytes) -> Format | None:
    """The format of a file that begins with `raw`; None for none that is known."""
    head = head_of(raw)
    return next((file_format for file_format in FORMATS if file_format.sniff(head)), None)


def format_label(key: str) -> str:
    """Who wrote a recording whose format JSON calls `key`."""
    return next(file_format.words for file_format in FORMATS if file_format.key == key)


__all__ = ["FORMATS", "FileHead", "Format", "format_label", "format_of", "head_of"]
