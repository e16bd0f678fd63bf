"""The operations room: what single operations take on a GPU, by formulas whose constants are fitted on
measured ones.

One file is one kind of operation, with its constants in a TOML file beside it.
"""
