"""What a profiler recorded: Kineto's JSON and Nsight Systems' SQLite export, which `simcore.kineto` opens."""

from __future__ import annotations

import re

from simcore.workload.formats.format import FileHead, Format

SQLITE = b"SQLite format 3\0"
# Of a file that was cut before its events the keys with which Kineto's writer begins tell it too. Events may
# stand in a list, or one after the other.
_EVENTS = re.compile(
    rb'"traceEvents"\s*:|^\s*\[\s*\{[^\[\]]{0,4096}?"ph"\s*:|^\s*\{[^\[\]]{0,4096}?"ph"\s*:\s*"'
    rb'|^\s*\{\s*"schemaVersion"\s*:\s*1\s*,\s*"(?:deviceProperties|distributedInfo|record_shapes)"'
    rb'|^\s*\{\s*"(?:deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
)

# What wltui has exported: its categories may be those of Kineto.
_EXPORT = re.compile(rb'^\s*\{\s*"displayTimeUnit"\s*:\s*"ns"\s*,\s*"otherData"\s*:\s*\{\s*"wltui"\s*:')


def _is_kineto(head: FileHead) -> bool:
    return head.raw.lstrip()[:1] in (b"{", b"[") and _EVENTS.search(head.raw) is not None


def _is_export(head: FileHead) -> bool:
    return head.raw.lstrip()[:1] == b"{" and _EXPORT.search(head.raw) is not None


def _is_nsys(head: FileHead) -> bool:
    return head.raw.startswith(SQLITE)


FORMATS: tuple[Format, ...] = (
    # Those of other programs are distinguished by all of their events.
    Format("Chrome trace", _is_export, kind="profile", key="chrome", words="Chrome trace"),
    Format("Kineto trace", _is_kineto, kind="profile", key="kineto", words="PyTorch profiler (Kineto)"),
    Format("Nsight Systems export", _is_nsys, kind="profile", key="nsys", words="Nsight Systems"),
)
