"""Files that hold others, told by their first bytes: each is named with what unpacks it."""

from __future__ import annotations

import re
from collections.abc import Callable

from simcore.workload.formats.format import FileHead, Format

_TAR_BYTES, _TAR_SUM = 512, slice(148, 156)
_POINTER = rb"version https?://(?:git-lfs\.github|hawser\.github|git-media)\."


def _begins(*marks: bytes) -> Callable[[FileHead], bool]:
    return lambda head: head.raw.startswith(marks)


def _is_tar(head: FileHead) -> bool:
    """Whether the first block has the sum of its bytes where a tar archive has it, as octal digits."""
    block = head.raw[:_TAR_BYTES]
    checksum = block[_TAR_SUM].strip(b" \0")
    if len(block) < _TAR_BYTES or not re.fullmatch(rb"[0-7]+", checksum):
        return False
    # The sum itself counts as blanks.
    return sum(block) - sum(block[_TAR_SUM]) + 8 * ord(" ") == int(checksum, 8)


def _is_pointer(head: FileHead) -> bool:
    return re.match(_POINTER, head.raw) is not None


FORMATS: tuple[Format, ...] = (
    Format("a zip archive", _begins(b"PK\3\4", b"PK\5\6"), instead="unpack it first: unzip FILE"),
    Format("a tar archive", _is_tar, instead="unpack it first: tar -xf FILE"),
    Format("a Zstandard file", _begins(b"\x28\xb5\x2f\xfd"), instead="unpack it first: zstd -d FILE"),
    Format("an xz file", _begins(b"\xfd7zXZ\0"), instead="unpack it first: xz -d FILE"),
    Format("a bzip2 file", _begins(b"BZh"), instead="unpack it first: bzip2 -d FILE"),
    Format("a 7z archive", _begins(b"7z\xbc\xaf\x27\x1c"), instead="unpack it first: 7z x FILE"),
    Format(
        "a Git LFS pointer",
        _is_pointer,
        instead="it stands for a file that is not here: git lfs pull fetches it",
    ),
)
