"""The model room: sizes of a transformer, where they come from, and what a layout makes of them.

From a model and a layout to rows with times and bytes, and to what a rank holds in memory. Knows no
network and no schedule. A kind of configuration is one file and one line in `huggingface.py`.
"""
