"""`python -m tools.docs [--check]`."""

from __future__ import annotations

import sys
from pathlib import Path

import qmodel
from tools import docs


def main(arguments: list[str]) -> int:
    """Write the generated files, or with `--check` name those that are not current."""
    root = Path(qmodel.__file__).resolve().parents[1]
    if not (root / "pyproject.toml").exists():
        sys.exit("Generated files are written in a checkout of the repository, but this qmodel is an installed one.")
    if arguments not in ([], ["--check"]):
        sys.exit("Usage: python -m tools.docs [--check]")
    if not arguments:
        for name in docs.write(root):
            print(f"wrote {name}")
        return 0
    found = docs.stale(root)
    for name in found:
        print(f"{name} is not current", file=sys.stderr)
    if found:
        print("Run: ./dev docs", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
