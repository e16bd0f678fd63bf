"""What can be read of a trace that is no JSON: its events one by one, and what is around them.

It runs only after the file as a whole was refused. Ranges of bytes that are JSON are taken as they are; in
any other the events are looked at one by one. Damage of a known kind is repaired; an event that stays
unreadable is left out, and the next one is looked for. An event is searched at most `_LOOKAHEAD` bytes beyond
the start of the next, and `MOST_LOST` may be lost: so the time is a multiple of the bytes, whatever they are.
"""

from __future__ import annotations

import re

import msgspec

from simcore.kineto.brackets import end_of, text_end
from simcore.kineto.damage import Damage
from simcore.records import NamedTuple

# Bytes that are decoded at once to see whether they are JSON.
_STRETCH = 1 << 18
# What looks like the start of an event may be inside one, up to so far from its begin.
_LOOKAHEAD = 1 << 14
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_BLANKS = re.compile(rb"\s*")
_GAP = re.compile(rb"[\s,]*")
# Where an event seems to begin: an object that is no value of a key, and has a key of an event first. Blanks
# are counted, so that a run of them is searched once.
_KEYS = rb"ph|cat|name|pid|tid|ts|dur|id|args|tts|tdur|bp|s|cname|scope|bind_id|flow_in|flow_out|sf|stack"
_START = re.compile(rb'(?<!:)(?<!: )\{\s{0,64}"(?:' + _KEYS + rb')"\s{0,64}:')
_LIST = re.compile(rb'"traceEvents"\s*:\s*\[?')
_UNNAMED_LIST = re.compile(rb'\[\s*(?=\{\s*"(?:ph|cat|name|ts|pid|tid)"\s*:)')
_LIST_ENDS = re.compile(rb'\](?=\s*(?:\}?\s*\Z|,\s*"\w+"\s*:))')
_KEY = re.compile(rb'"(?:' + _KEYS + rb')"\s*:')
_PHASE = re.compile(rb'"ph"\s*:')

# Tokens without errors have no name; of a text with errors the beginning matches.
_TOKEN = re.compile(
    rb'"[^"\\\x00-\x1f]*"|(?P<text>")|(?P<word>[-+]?\b(?:nan|inf(?:inity)?)\b)'
    # NCCL's profiler plugin writes `"datatype": ncclFloat32, "Stream": 0x262ca50`.
    rb"|(?P<bare>\b(?:0x[0-9a-f]{1,32}|nccl[a-z]\w{0,40})\b)"
    rb"|(?P<comma>,(?=\s*[,\]}])[\s,]*)",
    re.I,
)
# Half of a surrogate pair is no escape.
_IN_TEXT = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb'|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'
    rb'|(?P<escape>\\)|(?P<quote>")|(?P<control>[\x00-\x1f])'
)
_NAME = re.compile(rb'"name"\s*:\s*"(.*?)"\s*,\s*"(?:' + _KEYS + rb')"\s*:', re.S)
_WHO = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(-?[1-9]\d{0,29})')
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
# Replaces the list in what is around it.
_NO_EVENTS = b'"traceEvents":0'
_BOM = b"\xef\xbb\xbf"

_RAW = msgspec.json.Decoder(msgspec.Raw)


class _DamageSites(dict[str, tuple[int, int]]):
    """Kind -> (first byte, count): a text may be damaged in each of its bytes."""

    def add(self, kind: str, byte: int) -> None:
        first, count = self.get(kind, (byte, 0))
        self[kind] = (first, count + 1)


class RepairedEvents(NamedTuple):
    """What was read of a damaged file.

    events: JSON of a list, `{}` for what is lost; metadata: JSON of an object, what is around the list.
    """

    events: bytearray
    metadata: bytes


def repair_events(data: bytes, damage: Damage) -> RepairedEvents | None:
    """Returns what can be read of a file's bytes; None where no list of events begins.

    Damage is added to `damage`. Raises RecursionError for what nests too deep, InputError where too many
    events are lost.
    """
    begin = len(_BOM) if data.startswith(_BOM) else 0
    if begin:
        damage.add("mark", 0)
    begin = _behind_blanks(data, begin)
    if data[begin : begin + 1] == b"[":
        return _Mender(data, damage).of_list(begin + 1)
    match = _LIST.search(data, begin)
    if match is None and not _START.match(data, begin):
        match = _UNNAMED_LIST.search(data, begin)
    if match is not None:
        return _Mender(data, damage, has_metadata=True).of_object(begin, match.start(), match.end())
    if _START.search(data, begin):
        damage.add("lines", begin)
        # The number of bytes is the same, so that offsets stay what they are.
        lines = re.sub(rb"(\}[ \t\r]*)\n(?=\s*\{)", rb"\1,", data)
        return _Mender(lines, damage, by_line=True).of_list(begin)
    return None


def _behind_blanks(data: bytes, at: int) -> int:
    match = _BLANKS.match(data, at)
    return at if match is None else match.end()


class _Mender:
    """Goes through the events and repairs them. at: the current byte."""

    def __init__(
        self, data: bytes, damage: Damage, has_metadata: bool = False, by_line: bool = False
    ) -> None:
        self.data = data
        self.size = len(data)
        self.damage = damage
        self.has_metadata = has_metadata
        self.by_line = by_line
        self.events = bytearray(b"[")
        self.at = 0
        # How many commas come before the next event.
        self.commas = 0
        self.next_start = -1
        self.is_over = False

    def of_list(self, at: int) -> RepairedEvents:
        """Returns the events of a file that is the list, open at `at`."""
        self._read(at)
        if not self.damage.is_cut and self.data[self.at :].strip():
            self.damage.add("behind", self.at)
        return RepairedEvents(self.events, b"{" + _NO_EVENTS + b"}")

    def of_object(self, begin: int, key: int, at: int) -> RepairedEvents:
        """Returns the events of an object from `begin` on, with what is around the list that `key` names."""
        self._read(at)
        end = -1 if self.damage.is_cut else end_of(self.data, self.at, self.size, 1)
        behind = _behind_blanks(self.data, end) if end >= 0 else self.size
        if behind < self.size:
            self.damage.add("behind", behind)
        return RepairedEvents(self.events, self._read_metadata(begin, key, end))

    # -- events ----------------------------------------------------------------------

    def _read(self, at: int) -> None:
        """Takes all events from `at` on; ends behind the list."""
        self.at = singly = at
        while not self.is_over and self._is_at_event():
            if self.at >= singly:
                between = _BETWEEN.search(self.data, self.at + _STRETCH)
                singly = between.start() + 1 if between else self.size
                if between and self._is_taken(singly):
                    continue
            self._take_event()
        self.events += b"]"

    def _is_at_event(self) -> bool:
        """Goes to the next event; returns False behind the list, or at the end of the file."""
        while True:
            before, commas = self.at, self.commas
            self.at = self._behind_gap(before)
            comma_count = self.data.count(b",", before, self.at)
            byte = self.data[self.at : self.at + 1]
            if byte == b"{":
                if comma_count != commas:
                    self.damage.add("comma", before)
                return True
            if not byte:
                if not self.by_line:
                    self.damage.is_cut = True
                return False
            if byte == b"]" and not self.by_line and self._is_end():
                if comma_count:
                    self.damage.add("comma", before)
                self.at += 1
                return False
            if not self._is_found():
                return False

    def _behind_gap(self, at: int) -> int:
        match = _GAP.match(self.data, at)
        return at if match is None else match.end()

    def _is_end(self) -> bool:
        """Returns whether the bracket that closes a list closes that of the events: what follows ends the
        file, or is another one.
        """
        behind = self.at + 1
        if self.has_metadata:
            stop = max(self._start(behind), behind + _LOOKAHEAD)
            behind = end_of(self.data, behind, min(stop, self.size), 1)
            if behind < 0:
                return self._start(self.at) == self.size
        behind = _behind_blanks(self.data, behind)
        return self.data[behind : behind + 1] not in (b",", b"]", b"}")

    def _is_found(self) -> bool:
        """Goes from what is no event to the next one; returns False where there is none."""
        start = self._start(self.at)
        if start < self.size:
            self._lose(start)
            return True
        byte = self.data[self.at : self.at + 1]
        if self.has_metadata and byte in (b'"', b"}") and not _KEY.match(self.data, self.at):
            self.damage.add("bracket", self.at)
        else:
            self._lose_last()
        return False

    def _lose_last(self) -> None:
        """Goes from the last event, which cannot be read, behind the list, or to the end of a file that ends
        before.
        """
        last = -1
        for match in _LIST_ENDS.finditer(self.data, self.at):
            last = match.start()
        if last >= 0 and self.has_metadata:
            closed = end_of(self.data, last + 1, self.size, 1)
            last = last if closed >= 0 and _behind_blanks(self.data, closed) == self.size else -1
        if last >= 0:
            self._lose(last)
            self.at = last + 1
        else:
            self.damage.is_cut = True
            self.at = self.size

    def _start(self, at: int) -> int:
        """Returns where the next event seems to begin, from `at` on; the end of the file where none does."""
        while self.next_start < at:
            match = _START.search(self.data, at)
            behind = None if match is None else _START.search(self.data, match.end())
            at = self.size if behind is None else behind.start()
            # An object in the arguments of an event has no phase.
            if match is None or _PHASE.search(self.data, match.start(), at):
                self.next_start = self.size if match is None else match.start()
                break
        return self.next_start

    def _take_event(self) -> None:
        """Takes the event that begins here, or loses it."""
        start = self._start(self.at + 1)
        near, far = sorted((start, min(self.at + _LOOKAHEAD, self.size)))
        end = end_of(self.data, self.at, near)
        if end >= 0 and self._is_taken(end):
            return
        if self._is_taken_with_name(near):
            return
        if end < 0:
            end = end_of(self.data, self.at, far)
            if end >= 0 and self._is_taken(end):
                return
        if start < self.size:
            self._lose(start)
        else:
            self._lose_last()
            self.is_over = True

    def _is_taken(self, end: int) -> bool:
        """Takes what ends at `end`, as it is or repaired; returns whether it is one event or several."""
        text, sites = self.data[self.at : end], _DamageSites()
        if not _is_json(b"[" + text + b"]"):
            text = _repair_json(text, self.at, sites)
            if not _is_json(b"[" + text + b"]"):
                return False
        self._note(sites)
        self._take(text, end)
        return True

    def _is_taken_with_name(self, stop: int) -> bool:
        """Takes the event that begins here with the quotes of its name escaped; returns whether it is one."""
        match = _NAME.search(self.data, self.at, stop)
        if match is None:
            return False
        begin, end = match.span(1)
        sites = _DamageSites()
        before = _repair_json(self.data[self.at : begin - 1], self.at, sites)
        name = b'"' + _repair_text(self.data[begin:end], begin, sites, has_quotes=False) + b'"'
        behind = self.data[end + 1 : stop]
        closed = end_of(before + name + behind, 0, len(before) + len(name) + len(behind))
        closed -= len(before) + len(name)
        if closed <= 0:
            return False
        text = before + name + _repair_json(behind[:closed], end + 1, sites)
        if not _is_json(text):
            return False
        self._note(sites)
        self._take(text, end + 1 + closed)
        return True

    def _take(self, text: bytes, end: int) -> None:
        """Adds one event or several, which end at `end`."""
        if len(self.events) > 1:
            self.events += b","
        if not _is_utf8(text):
            self.damage.add_bytes(self.data[self.at : end], self.at)
            text = text.decode("utf-8", "replace").encode()
        self.events += text
        self.at, self.commas = end, 1

    def _lose(self, stop: int) -> None:
        """Leaves out what is before `stop`."""
        lost = self.data[self.at : stop]
        if lost.strip(b" \t\r\n,{}[]"):
            self.damage.add("lost", self.at, max(1, len(_PHASE.findall(lost))))
            self._take(b"{}", stop)
        else:
            self.damage.add("comma", self.at)
        self.at, self.commas = stop, 0

    def _note(self, sites: _DamageSites) -> None:
        for kind, (byte, count) in sites.items():
            self.damage.add(kind, byte, count)

    # -- around them -----------------------------------------------------------------

    def _read_metadata(self, begin: int, key: int, end: int) -> bytes:
        """Returns what is around the list as JSON. end: behind the object, -1 where it does not end."""
        head, tail = self.data[begin:key], self.data[self.at : end if end >= 0 else self.size]
        between = _NO_EVENTS + (b"," if tail.startswith(b'"') else b"")
        sites = _DamageSites()
        text = head + between + tail
        error = _error(text)
        if error:
            text = _repair_json(head, begin, sites) + between + _repair_json(tail, self.at, sites)
        if not error or not _error(text):
            self._note(sites)
            if _is_utf8(text):
                return text
            self.damage.add_bytes(head, begin)
            self.damage.add_bytes(tail, self.at)
            return text.decode("utf-8", "replace").encode()
        if end < 0 and not tail.rstrip().endswith(b"}"):
            self.damage.is_cut = True
        else:
            match = _AT_BYTE.search(error)
            byte = int(match[1]) if match else len(head)
            self.damage.add("beside", begin + byte if byte < len(head) else self.at)
        return self._who_and_when(head + tail)

    def _who_and_when(self, text: bytes) -> bytes:
        """Returns the rank and its groups, and the base of all times, wherever they are."""
        fields = [_NO_EVENTS]
        base, who = _BASE.search(text), _WHO.search(text)
        if base is not None:
            fields.append(b'"baseTimeNanoseconds":' + base[1])
        if who is not None:
            end = end_of(text, who.end(), len(text))
            value = _repair_json(text[who.end() : end], 0, _DamageSites()) if end >= 0 else b""
            if _is_json(value):
                fields.append(b'"distributedInfo":' + value)
        return (b"{" + b",".join(fields) + b"}").decode("utf-8", "replace").encode()


def _error(text: bytes) -> str:
    try:
        _RAW.decode(text)
    except ValueError as error:
        return str(error)
    return ""


def _is_json(text: bytes) -> bool:
    return not _error(text)


def _is_utf8(text: bytes) -> bool:
    try:
        text.isascii() or text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _repair_json(text: bytes, at: int, sites: _DamageSites) -> bytes:
    """Returns JSON with known kinds of damage repaired. at: the byte at which it begins; sites: each kind and
    byte is added to it.
    """

    output = bytearray()
    copied_to = at_text = 0
    while at_text >= 0:
        start, at_text = at_text, -1
        for match in _TOKEN.finditer(text, start):
            kind = match.lastgroup
            if kind is None:
                continue
            begin, end = match.span()
            output += text[copied_to:begin]
            if kind == "text":
                copied_to = at_text = text_end(text, end, len(text))
                output += _repair_text(text[begin:copied_to], at + begin, sites)
                break
            if kind == "word":
                output += b"null"
                sites.add("no-number", at + begin)
            elif kind == "bare":
                output += b'"' + match[0] + b'"'
                sites.add("bare", at + begin)
            else:
                output += b"" if text[end : end + 1] in (b"]", b"}") else b","
                sites.add("comma", at + begin)
            copied_to = end
    return bytes(output + text[copied_to:])


def _repair_text(text: bytes, at: int, sites: _DamageSites, has_quotes: bool = True) -> bytes:
    """Returns a text with what must not be in one escaped. has_quotes: whether its quotes are in it."""
    output = bytearray()
    copied_to = 0
    for match in _IN_TEXT.finditer(text):
        kind = match.lastgroup
        if kind is None or (kind == "quote" and has_quotes):
            continue
        begin, end = match.span()
        output += text[copied_to:begin]
        output += b"\\u%04x" % match[0][0] if kind == "control" else b"\\" + match[0]
        copied_to = end
        sites.add(kind, at + begin)
    return bytes(output + text[copied_to:])
