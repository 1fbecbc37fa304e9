"""Directed histories: written by hand as text, one file for each theme."""
