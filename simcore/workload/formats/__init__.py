"""The registry of formats: a new one is one new file here and one line in `FORMATS`.

A file belongs to the first entry that recognises its head.
"""

from simcore.workload.formats import (
    astra_policies,
    model_files,
    op_table,
    op_table_json,
    profiler_trace,
    rank_trace,
    simai_text,
    unopened,
)
from simcore.workload.formats.format import Format, Head, head_of

FORMATS: tuple[Format, ...] = (
    simai_text.FORMAT,
    *astra_policies.FORMATS,
    *rank_trace.FORMATS,
    *model_files.FORMATS,
    op_table.FORMAT,
    op_table_json.FORMAT,
    *profiler_trace.FORMATS,
    *unopened.FORMATS,
)

__all__ = ["FORMATS", "Format", "Head", "head_of"]
