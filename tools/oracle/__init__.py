"""Compares our dialect with the original script of qless or reqless on generated histories.

The original is not part of this repository: its path is an argument. `python -m tools.oracle --help` tells more.
"""
