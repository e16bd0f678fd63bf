"""`wltui models`: the models that are known by name, and any model with its parameters counted."""

from __future__ import annotations

import sys

from simcore.diagnostics import UsageError, printable
from tui.commands.parser import Parser

_DESCRIPTION = (
    "List the models that --model takes by name, with their parameters counted; of one that is named, or of "
    "a file (a Hugging Face config.json, or wltui's TOML), print the TOML that --model takes, too."
)


def build_parser() -> Parser:
    """The words that `wltui models` takes."""
    parser = Parser(prog="wltui models", description=_DESCRIPTION)
    parser.add_argument("model", metavar="NAME|FILE", nargs="?", help="this model alone: its sizes as TOML")
    parser.add_argument("--json", action="store_true", help="names, sizes and parameters as JSON")
    parser.add_argument("--save", metavar="FILE", help="write the sizes of NAME|FILE to a TOML file")
    parser.add_argument("--force", action="store_true", help="overwrite FILE of --save if it is there")
    return parser


def main(words: list[str]) -> int:
    """List models, or print or save one. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    from simcore.model.names import MODELS
    from simcore.model.opening import find_model
    from simcore.model.toml_file import model_toml

    if arguments.save is not None and arguments.model is None:
        raise UsageError("--save: name the model to be written, wltui models NAME|FILE --save FILE")
    models = list(MODELS.values())
    if arguments.model is not None:
        model, found = find_model(arguments.model)
        models = [model]
        for said in found:
            print(said.text(), file=sys.stderr)
    if arguments.save is not None:
        from simcore.export import save

        size = save(arguments.save, [model_toml(models[0]).encode()], arguments.force)
        print(f"{printable(arguments.save)}: {printable(models[0].name)}, {size} B")
        return 0
    if arguments.json:
        from simcore.json_text import json_text
        from simcore.records import asdict

        listed = [
            {**asdict(one), "moe": one.moe and asdict(one.moe), "mla": one.mla and asdict(one.mla),
             "parameters": one.parameters, "active_parameters": one.active_parameters}
            for one in models
        ]  # fmt: skip
        print(json_text({"schema": "wltui.models/1", "models": listed}))
        return 0
    print(f"{'model':<18} {'parameters':>12} {'active':>9} {'layers':>7} {'hidden':>7} {'heads':>6}  experts")
    for one in models:
        experts = f"{one.moe.experts}, {one.moe.experts_per_token} a token" if one.moe else "-"
        print(
            f"{printable(one.name, 18):<18} {billions(one.parameters):>12} "
            f"{billions(one.active_parameters):>9} {one.layers:>7} {one.hidden:>7} {one.heads:>6}  {experts}"
        )
    if arguments.model is not None:
        print("\n" + model_toml(models[0]), end="")
    return 0


def billions(parameters: int) -> str:
    """A number of parameters as people say it: `70.55 B`."""
    return f"{parameters / 1e9:.2f} B"
