"""The model room: sizes of a transformer, their sources, and the rows and memory of a model on a layout.

Makes rows with times and bytes from a model and a layout, and the memory of a rank. Knows no network and no
schedule. A kind of configuration is one file and one line in `huggingface.py`.
"""
