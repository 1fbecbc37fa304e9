"""Make qmodel/client.py from qmodel/aio.py: the same client without the `await`s.

    python tests/client/derive_sync.py

`test_derived.py` compares the two. Names lose their `Async`; what both share stands in
qmodel/objects.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "qmodel"

HEAD = '''"""The client: the catalogue as Python objects.

Made from `qmodel/aio.py` by `tests/client/derive_sync.py`, which takes the
`await`s out. Edit that file, not this one.
"""
'''

WORDS = (
    (r"\b(\w+: .+ = )?await ", r"\1"),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bopen_async_backend\b", "open_backend"),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
)


def derived(source: str) -> str:
    """The synchronous client, as yet unformatted."""
    _, _, body = source.partition('"""\n\nfrom __future__')
    text = HEAD + "\nfrom __future__" + body
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    return text


def main() -> None:
    target = PACKAGE / "client.py"
    target.write_text(derived((PACKAGE / "aio.py").read_text()))
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, str(target)], check=True)


if __name__ == "__main__":
    main()
