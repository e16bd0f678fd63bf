"""What is kept of a session when it ends: a JSON file a workload under the user's state directory.

A file that cannot be understood is set aside under another name and said, never written over.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from simcore.diagnostics import InputError, UsageError, printable
from simcore.export.saving import save

SCHEMA = "wltui.session/1"
# A session is a few kB; anything much larger is not one.
_MOST_BYTES = 1 << 20


class Kept(NamedTuple):
    """data: what was kept, {} if nothing was. note: what has to be said of it, "" for nothing."""

    data: dict[str, Any]
    note: str = ""


def state_path(file: str, environ: Mapping[str, str] = os.environ) -> str:
    """Where the session of a file is kept: a name made from its whole path, so that no two meet."""
    base = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    whole = os.path.realpath(file)
    name = "".join(char if char.isalnum() or char in "-_." else "_" for char in os.path.basename(whole))
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return os.path.join(base, "wltui", f"{name[:60]}-{digest}.json")


def identity(file: str) -> list[int]:
    """What tells that a file is the one it was: its size and when it was changed, ns; [] without one."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return []
    return [found.st_size, found.st_mtime_ns]


def load(path: str) -> Kept:
    """What is kept at `path`. Damage is set aside as `path`.damaged, over an older one."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return Kept({})
    except OSError as error:
        return Kept({}, f"the saved session cannot be read: {error.strerror}")
    try:
        if len(raw) > _MOST_BYTES:
            raise ValueError
        data = json.loads(raw)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError
    except (ValueError, RecursionError):
        return Kept({}, _set_aside(path))
    return Kept(data)


def _set_aside(path: str) -> str:
    aside = f"{path}.damaged"
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"the saved session is damaged and cannot be set aside: {error.strerror}"
    return f"the saved session was damaged: set aside as {printable(os.path.basename(aside), 120)}"


def keep(path: str, data: dict[str, Any]) -> str:
    """Write what is to be kept; "" when it is there, else why it is not."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        save(path, [json.dumps({"schema": SCHEMA, **data}, allow_nan=False).encode()], force=True)
    except OSError as error:
        return f"the session cannot be saved: {error.strerror}"
    except (InputError, UsageError) as error:
        return f"the session cannot be saved: {error}"
    return ""
