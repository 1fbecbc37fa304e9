"""Opens the subject of a backend's URL."""

from __future__ import annotations

from qmodel.conformance.subjects.base import ModelSubject, Subject


def open_subject(url: str) -> Subject:
    """Open the subject of `memory://`, `embedded://`, or the URL of a server."""
    if url.startswith("memory://"):
        return ModelSubject()
    from qmodel.conformance.subjects.lua import LuaSubject, server_subject

    return LuaSubject() if url.startswith("embedded://") else server_subject(url)
