"""Opens a model: by name, or from a file in one of its formats."""

from __future__ import annotations

import os

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.names import MODELS
from simcore.model.sizes import Model


def read_model(path: str, data: bytes) -> tuple[Model, tuple[Diagnostic, ...]]:
    """The model in `data`, the bytes of a file that a format has recognised; `path` is for messages.

    Raises InputError with the place of what cannot be.
    """
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        from simcore.model.huggingface import read_config

        return read_config(path, data)
    from simcore.model.toml_file import read_toml_model

    return read_toml_model(path, data)


def named_model(name: str) -> Model | None:
    """The model of that name, whatever its case and marks: `GPT-3 175B`, `gpt3-175b`; None if none."""
    wanted = _plain(name)
    return next((model for known, model in MODELS.items() if _plain(known) == wanted), None)


def find_model(name: str) -> tuple[Model, tuple[Diagnostic, ...]]:
    """What `--model` names: a known model, else a file.

    Raises `UsageError` where it is neither, with what is near, and InputError as `read_model` does.
    """
    model = named_model(name)
    if model is not None:
        return model, ()
    if not os.path.lexists(name):
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), MODELS, 3, 0.4)
        near = f"near is {', '.join(close)}" if close else f"known are {', '.join(MODELS)}"
        raise UsageError(f"--model {printable(name, 60)}: neither a file nor a known model; {near}")
    from simcore.workload.opening import read_file

    return read_model(name, read_file(name))


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
