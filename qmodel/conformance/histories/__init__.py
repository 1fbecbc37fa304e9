"""Histories: generated, directed, enumerated by the matrix, and written by hand."""
