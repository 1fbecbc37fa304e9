"""Verbs: what may refuse; a blank line; what changes."""
