"""The export room: a workload as parameters make it, or its timeline, as files for other programs.

A new format is one new file here and one line in `FORMATS`.
Import from here all that `__all__` names.
"""

from simcore.render.export.format import Export, ExportFormat, Progress, RankFile, Request
from simcore.render.export.saving import check_file, check_folder, compressed, save, save_folder

FORMATS: tuple[ExportFormat, ...] = (
    ExportFormat("simai", "SimAI / AICB workload text"),
    ExportFormat("chrome", "Trace Event JSON for Perfetto, chrome://tracing and HTA", "chrome_measured"),
    ExportFormat("schedule", "the order of micro-batches, as PyTorch's pipelining has it"),
    ExportFormat("chakra", "a folder of execution traces for ASTRA-sim 2", "chakra_measured", is_folder=True),
    ExportFormat("html", "a page with report and timeline, for any browser", of_runs=True),
    ExportFormat("csv", "one line a span, for spreadsheets and data frames", "csv"),
)

__all__ = [
    "FORMATS", "Export", "ExportFormat", "Progress", "RankFile", "Request",
    "check_file", "check_folder", "compressed", "save", "save_folder",
]  # fmt: skip
