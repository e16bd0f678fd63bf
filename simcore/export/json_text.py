"""Pieces of JSON text: exact times, safe strings."""

from __future__ import annotations

import json


def microseconds(ns: int) -> str:
    """Nanoseconds as the microseconds of a trace, exact: 12345 -> `12.345`. ns: 0 or more."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def quoted_json(text: str) -> str:
    """Text as a JSON string of ASCII characters, without any control character in it."""
    return json.dumps(text)
