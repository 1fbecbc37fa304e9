"""`python -m tools.oracle.suite --original PATH --ours script`: run the original's own tests against our dialect."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from qmodel.backends import bundle
from qmodel.testing.servers import serving
from tools.oracle.original import script_of
from tools.oracle.sides import redis_server

MODERN = (
    (r"self\._pubsub\.listen\(\)\.next\(\)", "next(self._pubsub.listen())"),
    (r"redis\.Redis\.from_url\(url\)", "redis.Redis.from_url(url, decode_responses=True)"),
    (r"\bassertEquals\(", "assertEqual("),
    (r"\bx?range\(", "_range("),
    (r"(?<![\w.])map\(", "_map("),
    (r"^( *)print (.+)$", r"\1print(\2)"),
    (r"^from common import", "from test.common import"),
)
"""What turns the original's tests, which are in Python 2, into tests that run today."""

HEAD = "def _map(*words):\n    return list(map(*words))\n\n\ndef _range(*words):\n    return list(range(*words))\n\n\n"


def prepared(original: Path, script: str, folder: Path) -> None:
    """Copy the original's tests into a folder, and a script in the place of the original's."""
    reqless = (original / "throttle.lua").exists()
    shutil.copytree(original / "test", folder / "test")
    (folder / ("reqless.lua" if reqless else "qless.lua")).write_text(script, encoding="utf-8")
    (folder / "test" / "__init__.py").touch()
    if reqless:  # its tests are in Python 3
        return
    shutil.copy(original / "qless.py", folder)
    for file in (folder / "qless.py", *(folder / "test").glob("*.py")):
        text = file.read_text(encoding="utf-8")
        for old, new in MODERN:
            text = re.sub(old, new, text, flags=re.M)
        file.write_text(HEAD + text, encoding="utf-8")


def main() -> int:
    """Run the command line; give the status of pytest."""
    parser = argparse.ArgumentParser(prog="python -m tools.oracle.suite", description=__doc__)
    parser.add_argument("--original", required=True, type=Path, help="the original's sources, with its tests")
    parser.add_argument("--ours", default="script", choices=("original", "script", "serve"))
    given, more = parser.parse_known_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(serving() if given.ours == "serve" else redis_server())
        ours = (
            bundle.qless_script(simulated=True, reqless=(given.original / "throttle.lua").exists())
            if given.ours == "script"
            else script_of(given.original)
        )
        prepared(given.original, ours, folder)
        environment = os.environ | {"REDIS_URL": server.url, "PYTHONPATH": str(folder)}
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", str(folder / "test")]
        return subprocess.run([*words, *more], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
