"""The table of published models in docs/models.md: `make pictures`, or `python -m docs.model_table`.

Each line is the configuration in tests/model/published_models.py as `wltui models --json` counts it.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from simcore.model.families import FAMILIES, NESTED
from simcore.model.huggingface import read_config
from tests.model.published_models import MODELS, Published

PAGE = Path(__file__).resolve().parent / "models.md"
# Rows of the table of families for files that have none.
_NO_MODEL_TYPE = ("meta", "simai", "simumax", "megatron")
BEGIN, END = "<!-- made by python -m docs.model_table -->\n", "<!-- end -->"


def line(published: Published) -> str:
    """The line of a model: its family, its parameters, and how far they are from its publisher's."""
    text = json.dumps(published.config).encode()
    model, _ = read_config(f"{published.name}/config.json", text)
    off = 100 * (model.parameters / 1e9 / published.total - 1)
    counts = [model.parameters, model.vision_parameters, model.mtp_parameters]
    active = ["", "", ""]
    if model.moe:
        used = model.active_parameters, model.active_parameters_without_embedding
        active = [*(f"{count / 1e9:.2f}" for count in used), f"{published.active:g}"]
    cells = [
        published.name, f"`{published.config['model_type']}`",
        *(f"{count / 1e9:.2f}" if count else "" for count in counts), f"{published.total:g}", f"{off:+.1f} %",
        *active,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table."""
    columns = "parameters | vision | MTP | published | off | active | less embedding | published"
    head = (
        f"| model | family | {columns} |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    words = ", ".join(f"`{name}`" for name in (*FAMILIES, *NESTED) if name not in _NO_MODEL_TYPE)
    families = textwrap.fill(
        f"Every `model_type` that opens: {words}, and any with one of them as its text model.", 128
    )
    return "\n".join([*head, *map(line, MODELS), "", families]) + "\n"


def page() -> str:
    """The page with the table anew."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
