"""Conformance of the dialects: generated calls; every reply, every message and the whole state are compared."""
