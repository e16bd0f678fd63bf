"""Opens a model: by name, or from a file in one of its formats."""

from __future__ import annotations

import os

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.known_models import MODELS, named_model
from simcore.model.sizes import Model


def read_model(path: str, data: bytes, model_map: str | None = None) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model in `data`, the bytes of a file of a known format; `path` is for messages.

    model_map: the file of `--model-map`, for a configuration.

    Raises InputError with the position of what does not fit.
    """
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        from simcore.model.huggingface import read_config

        return read_config(path, data, model_map)
    if model_map is not None:
        raise UsageError(f"--model-map: {printable(path, 60)} is no JSON; a config.json would fit")
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
    message = "of launch arguments only the model is taken; --from-args takes their layout, too"
    note = Diagnostic("note", "launch-layout", message, launch.path or path)
    return launch.model, (*launch.diagnostics, note)


def find_model(name: str, model_map: str | None = None) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns what `--model` names: a known model, else that of a file. model_map: as of `read_model`.

    Raises `UsageError` where it is neither, with a similar name, and InputError as `read_model` does.
    """
    model = named_model(name)
    if model is not None:
        if model_map is not None:
            raise UsageError(f"--model-map: {printable(name, 60)} is known by name; a config.json would fit")
        return model, ()
    if not os.path.lexists(name) and " --" in name:
        return _launch_model(name)
    if not os.path.lexists(name):
        from difflib import get_close_matches

        close = get_close_matches(name.lower(), MODELS, 3, 0.4)
        near = f"near is {', '.join(close)}" if close else f"known are {', '.join(MODELS)}"
        raise UsageError(f"--model {printable(name, 60)}: neither a file nor a known model; {near}")
    from simcore.workload.opening import read_file

    return read_model(name, read_file(name), model_map)
