"""The journal's entries: read, archived, and as tables."""
