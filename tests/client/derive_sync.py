"""Make qmodel/client/sync.py from qmodel/client/aio.py, and results.py from aio_results.py: the same without the
`await`s.

    python tests/client/derive_sync.py

`test_derived.py` compares them. Names lose their `Async`; what both share stands in
qmodel/client/fields.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "qmodel/client"

PAIRS = {"aio.py": "sync.py", "aio_results.py": "sync_results.py", "aio_requests.py": "sync_requests.py"}
"""What is made from what."""

TITLES = {
    "aio.py": "The client: the catalogue as Python objects.",
    "aio_requests.py": "Requests: sets of jobs of which only so many run at a time.",
    "aio_results.py": "Waiting for results in a thread. `qmodel/client/outcomes.py` says how it works.",
}

HEAD = '''"""{title}

Made from `qmodel/client/{name}` by `tests/client/derive_sync.py`, which takes the
`await`s out. Edit that file, not this one.
"""
'''

WORDS = (
    (r"\b(\w+: .+ = )?await ", r"\1"),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bopen_async_backend\b", "open_backend"),
    (r"\bqmodel\.client\.aio\b", "qmodel.client.sync"),
    (r"\bqmodel\.client\.aio_(results|requests)\b", r"qmodel.client.sync_\1"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
)


def derived(name: str) -> str:
    """What is made from a file of the package, as yet unformatted."""
    _, _, body = (PACKAGE / name).read_text().partition('"""\n\nfrom __future__')
    text = HEAD.format(title=TITLES[name], name=name) + "\nfrom __future__" + body
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    return text


def main() -> None:
    for source, made in PAIRS.items():
        target = PACKAGE / made
        target.write_text(derived(source))
        for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
            subprocess.run([sys.executable, "-m", "ruff", *command, str(target)], check=True)


if __name__ == "__main__":
    main()
