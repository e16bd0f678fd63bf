"""The export room: a workload as parameters make it, or its timeline, as files for other programs.

A new format is one new file here and one line in `FORMATS`.
Import from here all that `__all__` names.
"""

from simcore.export import chrome, csv, simai
from simcore.export.format import Export, ExportFormat, Progress, RankFile, Request
from simcore.export.saving import check_file, check_folder, compressed, save, save_folder

FORMATS: tuple[ExportFormat, ...] = (simai.FORMAT, chrome.FORMAT, csv.FORMAT)

__all__ = [
    "FORMATS", "Export", "ExportFormat", "Progress", "RankFile", "Request",
    "check_file", "check_folder", "compressed", "save", "save_folder",
]  # fmt: skip
