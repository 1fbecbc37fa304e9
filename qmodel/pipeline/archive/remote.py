"""Open an object store by its URL, through fsspec: s3://, gs://, az://, memory://, and all others that it knows.

Object stores have no locks of files. What they have is the conditional create: of all that create one object, the first
succeeds. Commits are numbered for that (`qmodel.pipeline.archive.commit`). `pyarrow.fs` has no such call, so it opens
only what fsspec cannot.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pyarrow import fs

from qmodel.errors import QmodelError


class Remote:
    """An object store of fsspec."""

    def __init__(self, found: Any) -> None:
        self._fs = found

    def create(self, path: str, data: bytes) -> None:
        """Create an object. Raises FileExistsError if there is one, also if another process creates it now."""
        self._fs.pipe_file(path, data, mode="create")

    def move(self, path: str, other: str) -> None:
        """Move an object. Raises FileNotFoundError if it is not there: another process has moved it, perhaps."""
        self._fs.cp_file(path, other)
        self._fs.rm_file(path)

    def modified_ns(self, path: str) -> int:
        """Give the time of the last change of an object, in nanoseconds since 1970."""
        return int(self._fs.modified(path).timestamp() * 1e9)


def opened(url: str) -> tuple[Any, str, Remote | None]:
    """Open a URL: give the file system of pyarrow, the path there, and the object store if it has conditional creates.

    Raises ValueError, OSError or QmodelError if nothing can open it.
    """
    if find_spec("fsspec") is not None:
        from fsspec.core import url_to_fs

        try:
            found, path = url_to_fs(url, use_listings_cache=False)
        except ImportError as error:  # a package for this scheme is missing
            missing = str(error)
        else:
            return fs.PyFileSystem(fs.FSSpecHandler(found)), path.rstrip("/"), Remote(found)
    else:
        missing = "Install fsspec, and its package for this scheme, such as s3fs, gcsfs or adlfs"
    try:
        found, path = fs.FileSystem.from_uri(url)
    except (OSError, ValueError) as error:
        raise QmodelError(f"{error}. {missing}") from None
    return found, path, None
