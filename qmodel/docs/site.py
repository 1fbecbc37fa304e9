"""What the site takes along from outside `docs/`.

Pages are read in the repository as well, so they link to examples and tests by their place there. On the site a file
that is linked so stands under `source/`; of a folder only the name is left. MkDocs calls the functions, as a hook.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LINK = re.compile(r"\[([^\]\n]*)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
"""A link that goes upward: it may leave the documents."""


def outside(uri: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The links of a page that leave the documents, each with its place in the repository."""
    for link in LINK.finditer(text):
        place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link[2]))
        if not place.startswith("docs/"):
            yield link, place


def on_files(files: Any, *, config: Any) -> Any:
    """Add the files outside `docs/` that pages link to."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    linked = {place for page in files.documentation_pages() for _, place in outside(page.src_uri, page.content_string)}
    for place in sorted(linked):
        if (root / place).is_file():
            files.append(File.generated(config, f"source/{place}", abs_src_path=str(root / place)))
    return files


def on_page_markdown(text: str, *, page: Any, config: Any, files: Any) -> str:
    """Let the links that leave the documents lead to what was taken along."""
    here = posixpath.dirname(page.file.src_uri)
    for link, place in outside(page.file.src_uri, text):
        taken = f"source/{place}"
        known = files.get_file_from_path(taken) is not None
        text = text.replace(link[0], f"[{link[1]}]({posixpath.relpath(taken, here or '.')})" if known else link[1])
    return text
