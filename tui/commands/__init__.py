"""The commands of wltui, one file each; `tui.cli.COMMANDS` names them."""
