"""Run vectors without the kit: a runner to copy, in 50 lines, for a binding in any language.

    qmodel conformance vectors --out vectors
    python examples/run_vectors.py redis://localhost:6379/0 vectors/smoke.jsonl vectors/core.jsonl

The database should be empty. Here the binding is our own client; for another one write `execute` again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from qmodel.backends.redis.connect import connect
from qmodel.conformance.histories import json_lines
from qmodel.conformance.kit.vectors import plain
from qmodel.contract.refusals import Refusal


def execute(binding: Any, step: dict[str, Any]) -> dict[str, Any]:
    """Execute one step with the binding; say how it ended."""
    now, op = json_lines.load(step)
    found = binding.execute(op, now)
    return {"refusal": [found.code, *found.facts]} if isinstance(found, Refusal) else {"reply": plain(found)}


def run(url: str, number: int, vector: dict[str, Any]) -> bool:
    """Run one vector in a namespace of its own; report the first step with another outcome."""
    binding = connect(f"{url}{'&' if '?' in url else '?'}prefix=vectors:{number}:&requests=given")
    try:
        for at, step in enumerate(vector["steps"]):
            expected, found = step.pop("expect"), execute(binding, step)
            if found != expected:
                print(f"{vector['id']} ({vector['why']}) step {at}: {json.dumps(step)}")
                print(f"  expected {json.dumps(expected)}\n  found    {json.dumps(found)}")
                return False
        return True
    finally:
        binding.close()


if __name__ == "__main__":
    url, *files = sys.argv[1:]
    texts = [Path(name).read_text(encoding="utf-8") for name in files]
    lines = [json.loads(line) for text in texts for line in text.splitlines()[1:]]
    passed = sum(run(url, number, vector) for number, vector in enumerate(lines))
    print(f"{passed} of {len(lines)} vectors passed")
    sys.exit(passed < len(lines))
