"""The damage of a trace that was read nevertheless: how often each kind occurs, and at which byte first."""

from __future__ import annotations

from simcore.diagnostics import Diagnostic, InputError
from simcore.records import NamedTuple

# A file that loses more events is refused.
MOST_LOST = 1000
_LISTED = 4
# Bytes by which a list is found again in its file.
_LOOKUP_BYTES = 1 << 12


class _Kind(NamedTuple):
    """A kind of damage."""

    code: str
    """The code of its warning."""
    one: str
    """What was found, if once."""
    several: str
    """What was found, {} for how many."""
    remedy: str
    """What is done about it."""


_KINDS = {
    "mark": _Kind("damaged-file", "a byte order mark", "", "passed over"),
    "lines": _Kind("damaged-file", "events one after the other, not in a list", "", "read as a list"),
    "not-utf-8": _Kind(
        "not-utf-8",
        "1 byte that is not UTF-8 text",
        "{} bytes that are not UTF-8 text",
        "a mark stands for what cannot be shown",
    ),
    "control": _Kind(
        "damaged-file",
        "1 control character inside a text",
        "{} control characters inside texts",
        "kept, and shown escaped",
    ),
    "escape": _Kind(
        "damaged-file",
        "1 backslash that begins no escape",
        "{} backslashes that begin no escape",
        "kept as they stand",
    ),
    "no-number": _Kind(
        "damaged-file",
        "1 value that is no number (NaN, Infinity)",
        "{} values that are no numbers (NaN, Infinity)",
        "taken as absent",
    ),
    "bare": _Kind("damaged-file", "1 word without quotes", "{} words without quotes", "taken as texts"),
    "quote": _Kind(
        "damaged-file",
        "1 quote inside a name that is not escaped",
        "{} quotes inside names that are not escaped",
        "taken as a part of the name",
    ),
    "comma": _Kind(
        "damaged-file",
        "1 comma or bracket too many or too few",
        "{} commas or brackets too many or too few",
        "read as if they were right",
    ),
    "bracket": _Kind(
        "damaged-file", "no end of the list of events", "", "what follows it is read as what stands behind it"
    ),
    "beside": _Kind(
        "damaged-file",
        "what cannot be read beside the events",
        "",
        "rank, groups and times are taken as far as they can be",
    ),
    "behind": _Kind("damaged-file", "more behind the end of the trace", "", "left out, it may be another"),
    "lost": _Kind("lost-events", "1 event that cannot be read", "{} events that cannot be read", "left out"),
}


class Damage:
    """Collects what is damaged in a file. is_cut: whether it ends in the middle."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.is_cut = False
        self._data = data
        self._diagnostics: list[Diagnostic] | None = None
        self._counts: dict[str, int] = {}
        self._first_offsets: dict[str, list[int]] = {}
        self._texts_from: int | None = None

    def release(self) -> None:
        """Makes the diagnostics, which need the file's bytes, and lets go of these."""
        self._diagnostics = self.diagnostics()
        self._data = b""

    def add(self, kind: str, byte: int, count: int = 1) -> None:
        """Adds an occurrence of a kind of `_KINDS`. Raises InputError where too many events are lost."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        offsets = self._first_offsets.setdefault(kind, [])
        # What is around the events comes last, and may be before them in the file.
        if len(offsets) < _LISTED or byte < offsets[0]:
            offsets.append(byte)
            offsets.sort()
            del offsets[_LISTED:]
        if kind == "lost" and self._counts[kind] > MOST_LOST:
            message = f"found more than {MOST_LOST} events that cannot be read, up to byte {byte}"
            raise InputError(Diagnostic("error", "bad-trace", message, self.path))

    def add_bytes(self, text: bytes, at: int) -> None:
        """Adds the bytes of a text that are not UTF-8. at: the byte at which it begins."""
        try:
            text.decode()
        except UnicodeDecodeError as error:
            decoded = text.decode("utf-8", "surrogateescape")
            count = sum("\udc80" <= char <= "\udcff" for char in decoded)
            self.add("not-utf-8", at + error.start, count)

    def find_offset(self, view: memoryview) -> int:
        """Returns the byte of the file at which a list begins."""
        return max(0, self._data.find(bytes(view[:_LOOKUP_BYTES])))

    def locate(self, key: str) -> tuple[int, int] | tuple[None, None]:
        """Returns line and column, from 1, of a key of the file; (None, None) where it is not there."""
        offset = self._data.find(f'"{key}"'.encode())
        if offset < 0:
            return None, None
        return self._data.count(b"\n", 0, offset) + 1, offset - self._data.rfind(b"\n", 0, offset)

    def add_texts(self, event_index: int) -> None:
        """Notes that event `event_index` or one of those behind it has numbers written as text."""
        if self._texts_from is None:
            self._texts_from = event_index

    def diagnostics(self) -> list[Diagnostic]:
        """Returns a warning of each kind that was found."""
        if self._diagnostics is not None:
            return self._diagnostics
        warnings = [self._warning(kind) for kind in _KINDS if kind in self._counts]
        if self._texts_from is not None:
            message = f"found numbers written as text, from event {self._texts_from} on: taken as numbers"
            warnings.append(Diagnostic("warning", "damaged-file", message, self.path))
        if self.is_cut:
            message = f"the file ends in the middle, at byte {len(self._data)}: what stands before is shown"
            warnings.append(Diagnostic("warning", "cut-file", message, self.path))
        return warnings

    def _warning(self, kind: str) -> Diagnostic:
        words = _KINDS[kind]
        count, offsets = self._counts[kind], self._first_offsets[kind]
        what = words.several.format(count) if words.several and count > 1 else words.one
        where = ", ".join(map(str, offsets))
        if kind != "lost":
            where = f"{offsets[0]}" if count == 1 else f"{offsets[0]} first"
        elif count > len(offsets):
            where += " and later ones"
        noun = "bytes" if kind == "lost" and len(offsets) > 1 else "byte"
        return Diagnostic(
            "warning", words.code, f"found {what}, at {noun} {where}: {words.remedy}", self.path
        )
