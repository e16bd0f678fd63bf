"""The history of the runs that were kept, to show, name, remove and compare."""
