"""The wire format: how operations, replies and journal entries are written as text."""
