"""The synchronous client, made from the asynchronous one: the same code without `async` and `await`.

    python -m tools.sync_client    writes it, also where the old one can no longer be imported

`./dev docs` writes it with the other generated files. Names lose their `Async`; the modules `qmodel/client/aio*.py`
become `qmodel/client/sync*.py`. Modules that both clients share are not copied.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = "qmodel/client"

TITLES = {
    "aio.py": "The synchronous client: the catalogue as Python objects.",
    "aio_executor.py": "The part of the synchronous client that executes operations and reads events.",
    "aio_requests.py": "Requests: sets of jobs with a limit on how many run at a time.",
    "aio_results.py": "Waiting for results in a thread. `qmodel/client/outcomes.py` explains how it works.",
}
"""The first line of what is made from each file."""

HEAD = '''"""{title}

Generated from `qmodel/client/{source}` by `./dev docs` (tools/sync_client.py). Edit that file, not this one.
"""
'''

REPLACEMENTS = (
    (r"\b(\w+: .+ = )?await ", r"\1"),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bopen_async_backend\b", "open_backend"),
    (r"\bqmodel\.client\.aio", "qmodel.client.sync"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
)


def target(source: str) -> str:
    """Name the file that is made from a file of the asynchronous client."""
    return source.replace("aio", "sync", 1)


def unformatted(source: str) -> str:
    """Make the synchronous text of a file, before imports are sorted and lines are wrapped."""
    _, _, body = (ROOT / FOLDER / source).read_text(encoding="utf-8").partition('"""\n\nfrom __future__')
    text = HEAD.format(title=TITLES[source], source=source) + "\nfrom __future__" + body
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    return text


def text(source: str) -> str:
    """Make the synchronous text of a file."""
    made = unformatted(source)
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        name = f"{FOLDER}/{target(source)}"
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", name, "-"]
        made = subprocess.run(ruff, input=made, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return made


def main() -> None:
    """Write the synchronous client."""
    for source in TITLES:
        (ROOT / FOLDER / target(source)).write_text(text(source), encoding="utf-8")


if __name__ == "__main__":
    main()
