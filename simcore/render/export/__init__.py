"""The export room: a workload with its parameters, or its timeline, as files for other programs.

A new format is one new file here and one line in `FORMATS`. Import from here all that `__all__` names.
"""

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.render.export.format import Export, ExportFormat, Progress, RankFile, Request
from simcore.render.export.saving import check_output, gzip_chunks, save, save_folder, write

# The kinds of input by their `noun`.
_WORKLOAD, _MEASURED, _EXECUTED = "a workload", "a measured run", "a set of execution traces"
_HUNG, _SNAPSHOTS = "a set of flight recorder dumps", "a set of memory snapshots"
_TIMED = (_WORKLOAD, _MEASURED)
FORMATS: tuple[ExportFormat, ...] = (
    ExportFormat("simai", "SimAI / AICB workload text", (_WORKLOAD,)),
    ExportFormat(
        "chrome", "Trace Event JSON for Perfetto, chrome://tracing and HTA", (*_TIMED, _HUNG, _SNAPSHOTS)
    ),
    ExportFormat("schedule", "the order of micro-batches, as PyTorch's pipelining has it", (_WORKLOAD,)),
    ExportFormat("chakra", "a folder of execution traces for ASTRA-sim 2", _TIMED, is_folder=True),
    ExportFormat(
        "html",
        "a page with report and timeline, for any browser",
        (*_TIMED, _EXECUTED, _HUNG, _SNAPSHOTS),
        has_two=True,
    ),
    ExportFormat(
        "csv",
        "one line a span (of snapshots an allocation), for spreadsheets and data frames",
        (*_TIMED, _HUNG, _SNAPSHOTS),
    ),
)


def find_format(name: str, option: str) -> ExportFormat:
    """Returns the format of a name. option: `--format`, or the keyword. Raises `UsageError`."""
    for export_format in FORMATS:
        if export_format.name == name:
            return export_format
    names = [export_format.name for export_format in FORMATS]
    raise UsageError(
        f"{option} {printable(name, 60)}: one of {', '.join(names)} is expected{did_you_mean(name, names)}"
    )


__all__ = [
    "FORMATS", "Export", "ExportFormat", "Progress", "RankFile", "Request",
    "check_output", "find_format", "gzip_chunks", "save", "save_folder", "write",
]  # fmt: skip
