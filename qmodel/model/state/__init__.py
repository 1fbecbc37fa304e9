"""Nouns: data structures with small functions and no opinions. The only code that touches storage."""
