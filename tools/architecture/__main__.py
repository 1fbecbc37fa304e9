"""`python -m tools.architecture`: the arrows between rooms, and any circle of imports."""

from __future__ import annotations

import sys

from tools.architecture import imports


def main() -> int:
    """Print what each room imports from which, and the circles; give 1 if there are any."""
    graph = imports.graph()
    for (user, used), count in sorted(imports.arrows(graph).items()):
        print(f"{user} -> {used}: {count}")
    found = imports.circles(graph)
    for circle in found:
        print(f"circle of {len(circle)}: {', '.join(circle)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
