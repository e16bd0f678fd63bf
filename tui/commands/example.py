"""The bundled example: what `wltui` opens when no file is named."""

from __future__ import annotations

from pathlib import Path

_NAME = "002_gpt_1024npu.txt"


def example_path() -> str:
    """The example's path: inside the installed package, or `fixtures/` of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "example" / _NAME
    return str(installed if installed.exists() else package.parent / "fixtures" / _NAME)
