"""The export room: a workload, as parameters make it, as a file for other programs.

A new format is one new file here and one line in `FORMATS`.
Import from here: `FORMATS`, `Export`, `ExportFormat`, `save`.
"""

from simcore.export import simai
from simcore.export.format import Export, ExportFormat
from simcore.export.saving import save

FORMATS: tuple[ExportFormat, ...] = (simai.FORMAT,)

__all__ = ["FORMATS", "Export", "ExportFormat", "save"]
