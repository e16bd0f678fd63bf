"""Opens a model: by name, or from a file in one of its formats."""

from __future__ import annotations

import os

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.known_models import MODELS, named_model
from simcore.model.sizes import Model


def read_model(path: str, data: bytes) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model in `data`, the bytes of a file of a known format; `path` is for messages.

    Raises InputError with the position of what does not fit.
    """
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        from simcore.model.huggingface import read_config

        return read_config(path, data)
    from simcore.workload.formats.model_files import is_launch

    if is_launch(data):
        return _launch_model(path, data)
    from simcore.model.toml_file import read_toml_model

    return read_toml_model(path, data)


def _launch_model(path: str, data: bytes | None = None) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model of launch arguments, in a file or (without data) in a text."""
    from simcore.model.launch import read_launch, read_launch_file

    launch = read_launch(path) if data is None else read_launch_file(path, data)
    if launch.model is None:
        message = "found launch arguments without a model's sizes; --model NAME beside --from-args would fit"
        raise InputError(Diagnostic("error", "model-file", message, path))
    return launch.model, launch.diagnostics


def find_model(name: str) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns what `--model` names: a known model, else that of a file.

    Raises `UsageError` where it is neither, with a similar name, and InputError as `read_model` does.
    """
    model = named_model(name)
    if model is not None:
        return model, ()
    if not os.path.lexists(name) and " --" in name:
        return _launch_model(name)
    if not os.path.lexists(name):
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), MODELS, 3, 0.4)
        near = f"near is {', '.join(close)}" if close else f"known are {', '.join(MODELS)}"
        raise UsageError(f"--model {printable(name, 60)}: neither a file nor a known model; {near}")
    from simcore.workload.opening import read_file

    return read_model(name, read_file(name))
