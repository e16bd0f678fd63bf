"""`wltui models`: the models that are known by name, and any model with its parameters counted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import UsageError, printable
from tui.commands.arguments import add_model_map
from tui.commands.parser import Parser

if TYPE_CHECKING:
    from argparse import Namespace

    from simcore.model.sizes import Model
    from simcore.records import Struct

_DESCRIPTION = (
    "List the models that --model knows by name, with their sizes and parameter counts. With NAME or FILE "
    "(a config.json or its like, or wltui's TOML) print that model as TOML for --model; with --from FILE "
    "the model behind a workload file that AICB wrote."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui models`."""
    parser = Parser(prog="wltui models", description=_DESCRIPTION)
    parser.add_argument("model", metavar="NAME|FILE", nargs="?", help="this model alone: its sizes as TOML")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="the model behind a workload file that AICB wrote"
    )
    add_model_map(parser)
    parser.add_argument("--json", action="store_true", help="names, sizes and parameters as JSON")
    parser.add_argument("--save", metavar="FILE", help="write these sizes to a TOML file")
    parser.add_argument("--force", action="store_true", help="overwrite FILE of --save if it is there")
    return parser


def main(words: list[str]) -> int:
    """Lists models, or prints or saves one. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    if arguments.source is not None:
        return _print_recovered(arguments.source, arguments)
    from simcore.model.known_models import MODELS
    from simcore.model.opening import find_model
    from simcore.model.toml_file import model_toml

    if arguments.model_map is not None and arguments.model is None:
        raise UsageError(
            "--model-map: name the configuration that it is of, wltui models FILE --model-map MAP"
        )
    if arguments.save is not None and arguments.model is None:
        raise UsageError("--save: name the model to be written, wltui models NAME|FILE --save FILE")
    models = list(MODELS.values())
    if arguments.model is not None:
        model, diagnostics = find_model(arguments.model, arguments.model_map)
        models = [model]
        for diagnostic in diagnostics:
            print(diagnostic.text(), file=sys.stderr)
    if arguments.save is not None:
        from simcore.render.export import save

        size = save(arguments.save, [model_toml(models[0]).encode()], arguments.force)
        print(f"{printable(arguments.save)}: {printable(models[0].name)}, {size} B")
        return 0
    if arguments.json:
        from simcore.render.report.json_text import json_text
        from simcore.render.report.memory import parameter_values

        model_values = [
            _plain_values(model) | parameter_values(model) | {"kinds": _kind_values(model)}
            for model in models
        ]
        print(json_text({"schema": "wltui.models/1", "models": model_values}))
        return 0
    print(f"{'model':<18} {'parameters':>12} {'active':>9} {'layers':>7} {'hidden':>7} {'heads':>6}  experts")
    for model in models:
        experts = f"{model.moe.experts}, {model.moe.experts_per_token} a token" if model.moe else "-"
        print(
            f"{printable(model.name, 18):<18} {billions(model.parameters):>12} "
            f"{billions(model.active_parameters):>9} {model.layers:>7} {model.hidden:>7} {model.heads:>6}  "
            f"{experts}"
        )
    if arguments.model is not None:
        print("\n" + model_toml(models[0]), end="")
    return 0


def _plain_values(part: Struct) -> dict[str, Any]:
    """Returns the fields of a record of sizes, and of those in it; kinds of layers are listed apart."""
    from simcore.records import Struct, asdict

    return {
        key: _plain_values(value) if isinstance(value, Struct) else value
        for key, value in asdict(part).items()
        if key not in ("kinds", "pattern")
    }


def _kind_values(model: Model) -> list[dict[str, Any]]:
    """Returns the kinds of layers, each with how many there are and the parameters of one."""
    return [
        _plain_values(model.of_kind(kind))
        | {
            "name": model.kinds[kind].name if model.kinds else ("experts" if kind else "dense"),
            "layers": count,
            "parameters": model.layer_parameters(kind),
        }
        for kind, count in model.count_kinds()
    ]


def _print_recovered(path: str, arguments: Namespace) -> int:
    """Prints, or saves, the model behind a workload file."""
    from simcore.model.toml_file import model_toml
    from simcore.recovery import recover
    from simcore.recovery.odd import oddities
    from simcore.recovery.recovered_model import layout_words
    from simcore.units import group_digits
    from simcore.workload.opening import open_workload, read_file

    if arguments.model is not None:
        raise UsageError(
            f"--from {printable(path, 60)}: found {printable(arguments.model, 60)} beside it, give one of two"
        )
    workload = open_workload(path)
    recovered = recover(workload, read_file(path))
    toml = ""
    if recovered.model is not None and recovered.config is not None:
        toml = f"# {layout_words(recovered.config)}\n{model_toml(recovered.model)}"
    if arguments.save is not None:
        from simcore.render.export import save

        if not toml:
            raise UsageError(f"--save: {printable(path, 60)} is {recovered.line()}")
        size = save(arguments.save, [toml.encode()], arguments.force)
        if not arguments.json:
            print(f"{printable(arguments.save)}: {recovered.line()}, {size} B")
            return 0
    if arguments.json:
        from simcore.render.report.json_text import json_text

        values = {**recovered.values(), "odd": [oddity.values() for oddity in oddities(workload, recovered)]}
        print(json_text({"schema": "wltui.model-of-file/1", "file": path, **values}))
        return 0
    print(recovered.line())
    if recovered.config is None:
        return 0
    rows = group_digits(len(workload))
    if recovered.exact:
        print(f"{rows} of {rows} rows, their cells and the header are as AICB writes them")
    else:
        print(
            f"{group_digits(len(workload) - recovered.differing)} of {rows} rows have AICB's names, "
            "types and bytes"
        )
    for line in recovered.ambiguities():
        print(f"  {line}")
    for line in recovered.other_words():
        print(f"  or {line}")
    for odd in oddities(workload, recovered):
        print(f"  odd: line {odd.line}: {odd.message}")
    print(f"\n{recovered.command()}\n\n{toml}", end="")
    return 0


def billions(parameters: int) -> str:
    """Returns a number of parameters in the usual form: `70.55 B`."""
    return f"{parameters / 1e9:.2f} B"
