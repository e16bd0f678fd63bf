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
    unopened,
)
from simcore.workload.formats.format import Format, Head, head_of

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
    *recordings.FORMATS,
    *unopened.FORMATS,
)


def format_of(raw: bytes) -> Format | None:
    """The format of a file that begins with `raw`; None for none that is known."""
    head = head_of(raw)
    return next((known for known in FORMATS if known.sniff(head)), None)


def words_of(key: str) -> str:
    """Who wrote a recording whose format JSON calls `key`."""
    return next(known.words for known in FORMATS if known.key == key)


__all__ = ["FORMATS", "Format", "Head", "format_of", "head_of", "words_of"]
