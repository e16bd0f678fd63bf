"""Pickles of other programs, read in a process of their own that makes nothing but plain containers."""
