"""Files in which one value is one that cannot be: of another type, out of every range, or no text."""

from __future__ import annotations

import re
from collections.abc import Iterator

# As JSON and TOML write them; in a text of cells they are words like others.
VALUES = (
    b"-1", b"0", b"-0.0", b"0.5", b"1e400", b"-1e400", b"NaN", b"inf", b"4611686018427387904",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1" + b"0" * 40,
    b"1" + b"0" * 5000, b'""', '"²"'.encode(), '"٣"'.encode(), b'"-1"', b'"\\u001b[2J"', b'"\\ud800"',
    b'"' + b"x" * 3000 + b'"', b"[]", b"[1]", b'["a"]', b"[[]]", b"[[1]]", b"{}", b'{"a" : 1}', b"true",
    b"null",
)  # fmt: skip
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d[\w.+-]*|[A-Za-z_][\w.-]*')
_KEY = re.compile(rb"\s*[:=]")


def impossible(data: bytes) -> Iterator[bytes]:
    """The file with each value in place of each token that is no key, one at a time."""
    for token in _TOKEN.finditer(data):
        if _KEY.match(data, token.end()):
            continue
        for value in VALUES:
            yield data[: token.start()] + value + data[token.end() :]
