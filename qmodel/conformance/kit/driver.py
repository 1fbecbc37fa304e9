"""A driver as a subprocess: starts it, sends requests, limits the time of each answer, and ends it.

    with Driver(["node", "driver.mjs"]) as driver:
        driver.reset("redis://localhost:6379/0", "try:")
        driver.step(Step(0, ops.Length("q")))       # {"reply": 0}

If a driver violates the protocol, its process is killed, and `Broken` is raised with the violated requirement. `start`
starts another process. A driver is for one thread; several drivers may run at the same time, each in its own thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Any, NamedTuple

from qmodel.conformance.histories import json_lines
from qmodel.conformance.kit import protocol
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import Operation
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted
from qmodel.processes import signal_name
from qmodel.version import __version__

LONGEST_LINE = 1 << 28
"""The maximum bytes of a line: a thousand jobs with data of 100 KB fit. It stops a driver that writes forever."""

PIPE = 4096
"""The number of bytes that fit into an empty pipe on any system, before its reader has read anything."""

SHOWN = 200
STDERR_LINES = 40

Outcome = dict[str, Any]
"""The outcome of an operation: `reply`, `refusal`, `skip` or `crash`, and its value."""


class Broken(QmodelError):
    """A driver violated the protocol: the requirement, the violation, and the last lines of its standard error."""

    def __init__(self, requirement: str, detail: str, stderr: str = "") -> None:
        super().__init__(requirement, detail)
        self.requirement = requirement
        self.detail = detail
        self.stderr = stderr

    def __str__(self) -> str:
        return f"{self.requirement}: {self.detail}"


class Hello(NamedTuple):
    """A driver's description of itself."""

    binding: str
    version: str
    features: tuple[str, ...]
    batch: bool


class Driver:
    """A driver: the author's program. Requests go to its standard input, answers come from its standard output."""

    def __init__(self, command: Sequence[str], *, name: str = "", answer_s: float = 30, start_s: float = 60) -> None:
        """`command` is a program and its arguments. It has `answer_s` seconds for an answer, and `start_s` for its
        first one.
        """
        self.command = tuple(command)
        self.name = name or os.path.basename(self.command[-1])
        self.hello = Hello(self.name, "", (), False)
        self._answer_s, self._start_s = answer_s, start_s
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._threads: list[threading.Thread] = []
        self._seq = 0

    def __enter__(self) -> Driver:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---- the requests

    def start(self) -> Hello:
        """Start the process, or another one after the last, and exchange hellos."""
        self.kill()
        self._spawn()
        said = self.ask("hello", protocol=protocol.PROTOCOL, qmodel=__version__)
        features = tuple(said["features"])
        self.hello = Hello(said["binding"], said["version"], features, said.get("batch", False))
        return self.hello

    @property
    def runs(self) -> bool:
        """Tell whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def reset(self, url: str, prefix: str) -> None:
        """Tell the driver to start again, on a server and in a namespace."""
        self.ask("reset", url=url, prefix=prefix)

    def step(self, step: Step) -> Outcome:
        """Execute one operation."""
        answer = self.ask("op", **json_lines.dump(step))
        del answer["seq"]
        return answer

    def execute(self, op: Operation) -> Outcome:
        """Execute one operation at the time of the server's clock."""
        answer = self.ask("op", **json_lines.dump(Step(0, op)) | {"now": None})
        del answer["seq"]
        return answer

    def batch(self, steps: Sequence[Step]) -> list[Outcome]:
        """Execute several operations in one message."""
        results: list[Outcome] = self.ask("batch", ops=[json_lines.dump(step) for step in steps])["results"]
        if len(results) != len(steps):
            raise self._broken(
                "DRIVER-7", f"it answered {counted(len(results), 'result')} to {counted(len(steps), 'operation')}"
            )
        return results

    def ask(self, cmd: str, **fields: Any) -> dict[str, Any]:
        """Send one request; give its answer, checked against the schema."""
        self._seq += 1
        self._write(json.dumps({"seq": self._seq, "cmd": cmd, **fields}).encode() + b"\n")
        line = self._read(self._start_s if cmd == "hello" else self._answer_s, cmd)
        answer = self._parsed(line)
        seq = answer.get("seq") if isinstance(answer, dict) else None
        if type(seq) is int and seq != self._seq:
            raise self._broken("DRIVER-2", f"it answered request {seq} when {self._seq} was asked")
        wrong = protocol.fault_of_answer(cmd, answer)
        if wrong is not None:
            requirement = "DRIVER-5" if cmd == "hello" else "DRIVER-6"
            raise self._broken(requirement, f"in its answer to {cmd}, {wrong}: {_shown(line)}")
        found: dict[str, Any] = answer
        return found

    def _parsed(self, line: bytes) -> Any:
        try:
            return json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self._broken("DRIVER-1", f"it wrote a line that is not JSON ({error}): {_shown(line)}") from None

    def _broken(self, requirement: str, detail: str) -> Broken:
        self.kill()
        return Broken(requirement, detail, self.stderr)

    # ---- the process

    def _spawn(self) -> None:
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # a process group: its children can be killed with it
            )
        except OSError as error:
            raise Broken("DRIVER-4", f"{self.command[0]} cannot be started: {error.strerror}") from None
        self._lines = queue.SimpleQueue()
        self._stderr.clear()
        assert self._process.stdout is not None and self._process.stderr is not None
        self._threads = [
            threading.Thread(target=_lines_of, args=(self._process.stdout, self._lines.put), daemon=True),
            threading.Thread(target=_lines_of, args=(self._process.stderr, self._note), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, line: bytes) -> None:
        if self._process is None:
            raise Broken("DRIVER-4", "it does not run")
        assert self._process.stdin is not None
        if len(line) <= PIPE:
            return _send(self._process.stdin, line)
        sending = threading.Thread(target=_send, args=(self._process.stdin, line), daemon=True)
        sending.start()
        sending.join(self._answer_s)
        if sending.is_alive():
            raise self._broken("DRIVER-3", f"it did not read its input for {self._answer_s:g} s")

    def _read(self, seconds: float, cmd: str) -> bytes:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise self._broken("DRIVER-3", f"it did not answer {cmd} within {seconds:g} s") from None
        if line is None:
            raise self._broken("DRIVER-4", f"{self._ended()} instead of answering {cmd}")
        if len(line) > LONGEST_LINE:
            raise self._broken("DRIVER-1", f"it wrote a line of more than {LONGEST_LINE} bytes")
        return line

    def _ended(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "it closed its output"
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by {signal_name(-code)}"

    def _note(self, line: bytes | None) -> None:
        self._stderr.append(line or b"")

    @property
    def stderr(self) -> str:
        """Give the last lines of its standard error."""
        return b"".join(self._stderr).decode(errors="replace")

    def close(self) -> None:
        """Send `bye`, and end the process if it does not end by itself."""
        if self.runs:
            with contextlib.suppress(Broken):
                self.ask("bye")
                assert self._process is not None and self._process.stdin is not None
                self._process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(2)
        self.kill()

    def kill(self) -> None:
        """End the process and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        for thread in self._threads:
            thread.join(2)
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _send(stream: IO[bytes], line: bytes) -> None:
    """Write a line. If the driver is gone, reading its answer reports that."""
    with contextlib.suppress(OSError, ValueError):
        stream.write(line)
        stream.flush()


def _lines_of(stream: IO[bytes], give: Callable[[bytes | None], object]) -> None:
    """Yield the lines of a stream as they arrive, and None at its end."""
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(LONGEST_LINE + 1):
            give(line)
    give(None)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _shown(line: bytes) -> str:
    text = line.decode(errors="backslashreplace").rstrip("\n")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
