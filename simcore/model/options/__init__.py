"""The options of a training: explicit or assumed, checked against each other, a file each subject.

`simcore/model/resolving.py` asks them in their order; what does not fit is a `UsageError` with what would.
"""
