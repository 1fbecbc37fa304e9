"""`python -m tools.together COMMAND -- COMMAND ...`: run commands at once; give the first status that is not 0.

The first command prints as it runs, the others when it has ended, so that no lines are mixed. The first one goes first:
it often waits for a server, a clock or a process, and the others get the processor only then.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby


def run(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command in the time that others leave, and keep what it prints."""
    nice = ["nice", "-n", "15", *command]
    return subprocess.run(nice, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def main(arguments: list[str]) -> int:
    """Run the commands that stand between `--`."""
    first, *others = (list(words) for is_end, words in groupby(arguments, lambda word: word == "--") if not is_end)
    with ThreadPoolExecutor(len(others) + 1) as pool:
        begun = [pool.submit(run, command) for command in others]
        statuses = [subprocess.run(first, check=False).returncode]
        for command, one in zip(others, begun, strict=True):
            done = one.result()
            print(" ".join(command), done.stdout.decode(errors="replace"), sep="\n", flush=True)
            statuses.append(done.returncode)
    return next((status for status in statuses if status), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
