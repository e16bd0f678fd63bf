"""The notes screen: every diagnostic of the file and of the run."""
