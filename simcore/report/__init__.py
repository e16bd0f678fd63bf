"""The report room: a run as a page of text, and as JSON. Computes nothing.

Import from here: `text_report`, `json_report`.
"""

from simcore.report.as_json import json_report
from simcore.report.as_text import text_report

__all__ = ["json_report", "text_report"]
