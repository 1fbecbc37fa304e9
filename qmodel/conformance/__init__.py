"""Conformance: generated histories, subjects, comparison, shrinking, and the matrix of outcomes."""
