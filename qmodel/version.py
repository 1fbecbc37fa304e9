"""The version of qmodel. It stands in a module without imports, so that every room can use it."""

__version__ = "0.1.0"
