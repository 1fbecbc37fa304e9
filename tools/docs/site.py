"""Add to the site what is not written in `docs/`. MkDocs calls the functions as a hook.

Pages are read in the repository as well, so they link to examples and tests by their path there. On the site a linked
file stands under `source/`; a link to a folder becomes plain text. The page on the command line gets the help texts of
the commands. Examples in docstrings, which begin with `>>>`, are shown as code. Guides rank before the reference in the
search.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TEXT = r"\[((?:[^\]\n]|\n(?!\s*\n))*)\]"
"""The text of a link, which may go on on the next line."""

LINK = re.compile(TEXT + r"\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
"""A link that goes upward: it may lead out of `docs/`."""

ANY_LINK = re.compile(TEXT + r"\(((?!\w+:)[^)\s#]+)(#[^)\s]*)?\)")
"""A link to a file."""

COPIED = "source/"
"""The folder on the site for linked files from outside `docs/`."""

COMMANDS = "reference/cli.md"
"""The page on the command line."""

BOOSTS = {
    "index.md": 4.0,
    "start/": 4.0,
    "guides/": 3.0,
    **dict.fromkeys(("app.md", "worker.md", "testing.md", "dev.md", "http.md", "web.md"), 3.0),
    "from/": 2.0,
    "operations/": 2.0,
    "reference/": 0.5,
    **dict.fromkeys(("catalogue.md", "wire.md", "states.md", "driver.md", "requirements.md"), 0.2),
    "source/": 0.1,
}
"""The weight in the search of a page, or of the pages in a folder. All others have 1."""

DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.M)
"""An example of a docstring, up to the next empty line."""


def outside(uri: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the links of a page that lead out of `docs/`, each with its path in the repository."""
    for link in LINK.finditer(text):
        place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link[2]))
        if not place.startswith("docs/"):
            yield link, place


def inside(place: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the relative links of a file outside `docs/`, each with its path in the repository."""
    for link in ANY_LINK.finditer(text):
        yield link, posixpath.normpath(posixpath.join(posixpath.dirname(place), link[2]))


def fenced(text: str) -> str:
    """Mark the examples of a docstring as code: Markdown takes `>>>` for a quotation.

    >>> fenced("Add.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all.").splitlines()[2:6]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return DOCTEST.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


def commands() -> str:
    """Collect the help texts of the commands that are not operations."""
    import click

    from qmodel.cli import cli
    from qmodel.cli.commands import load, own

    parts = []
    root = click.Context(cli, info_name="qmodel", terminal_width=84)
    for name in own():
        command = load(name)
        assert command is not None
        said = click.Context(command, info_name=name, parent=root, terminal_width=84)
        parts += [f"## qmodel {name}", f"```text\n{said.get_help()}\n```"]
    return "\n\n".join(parts) + "\n"


def boost(uri: str) -> float:
    """Look up the weight of a page in the search.

    >>> boost("guides/flows.md"), boost("pipeline.md"), boost("wire.md")
    (3.0, 1.0, 0.2)
    """
    return BOOSTS.get(uri, BOOSTS.get(uri.partition("/")[0] + "/", 1.0))


# ---- the functions that MkDocs calls


def on_config(config: Any) -> Any:
    """Show the examples in docstrings as code."""
    from markdown.extensions import Extension
    from markdown.preprocessors import Preprocessor

    class Examples(Preprocessor):  # type: ignore[misc]
        def run(self, lines: list[str]) -> list[str]:
            return fenced("\n".join(lines)).split("\n")

    class ExamplesExtension(Extension):  # type: ignore[misc]
        def extendMarkdown(self, md: Any) -> None:
            md.preprocessors.register(Examples(md), "qmodel-examples", 40)

    config.markdown_extensions.append(ExamplesExtension())
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the files outside `docs/` that pages link to, under `source/`."""
    from mkdocs.structure.files import File

    root = Path(config.config_file_path).parent
    linked = {place for page in files.documentation_pages() for _, place in outside(page.src_uri, page.content_string)}
    for place in sorted(linked):
        if (root / place).is_file():
            files.append(File.generated(config, COPIED + place, abs_src_path=str(root / place)))
    return files


def on_page_markdown(text: str, *, page: Any, config: Any, files: Any) -> str:
    """Set the weight of a page in the search, fill the page on the command line, and redirect links out of `docs/`."""
    page.meta.setdefault("search", {"boost": boost(page.file.src_uri)})
    if page.file.src_uri == COMMANDS:
        return f"{text}\n{commands()}"
    return _redirected(page.file.src_uri, text, lambda uri: files.get_file_from_path(uri) is not None)


def _redirected(uri: str, text: str, known: Callable[[str], bool]) -> str:
    copied = uri.startswith(COPIED)
    links = inside(uri.removeprefix(COPIED), text) if copied else outside(uri, text)
    for link, place in links:
        target = place.removeprefix("docs/") if place.startswith("docs/") else COPIED + place
        path = posixpath.relpath(target, posixpath.dirname(uri) or ".") + (link[3] or "")
        text = text.replace(link[0], f"[{link[1]}]({path})" if known(target) else link[1])
    return text
