"""A driver as a subprocess: its answers, and the end of a driver that violates the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel.conformance.kit.driver import Broken, Driver
from qmodel.conformance.kit.namespace import Namespaces, namespaces
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from tests.servers import Server

PYTHON = (sys.executable, str(Path(__file__).parents[2] / "examples" / "drivers" / "python_driver.py"))

HELLO = 'print(\'{"seq": 1, "protocol": 1, "binding": "b", "version": "1", "features": ["pop.*"]}\', flush=True)\n'


@pytest.fixture
def there(server: Server) -> Iterator[Namespaces]:
    with namespaces(server.url) as found:
        yield found


def script(text: str, **seconds: float) -> Driver:
    """Make a driver from a few lines of Python."""
    return Driver([sys.executable, "-c", f"import os, sys, time\ninput()\n{text}"], name="script", **seconds)


def test_a_driver_executes_operations(there: Namespaces) -> None:
    with Driver(PYTHON) as driver:
        assert driver.hello.binding == "qmodel-python"
        driver.reset(there.url, there.fresh())
        assert driver.step(Step(0, ops.Put("q", "a", "k", "é\x00"))) == {"reply": "a"}
        assert driver.step(Step(0, ops.Complete("a", 7))) == {"refusal": ["LOCK_LOST", "a", "7", "waiting", ""]}
        assert driver.execute(ops.Length("q")) == {"reply": 1}
        assert driver.batch([Step(0, ops.Length("q")), Step(0, ops.Get("b"))]) == [{"reply": 1}, {"reply": None}]
        driver.reset(there.url, there.fresh())
        assert driver.step(Step(0, ops.Length("q"))) == {"reply": 0}
    assert not driver.runs


def test_long_lines_pass(there: Namespaces) -> None:
    with Driver(PYTHON) as driver:
        driver.reset(there.url, there.fresh())
        data = "x" * 1_000_000
        driver.step(Step(0, ops.Put("q", "a", "k", data)))
        assert driver.step(Step(0, ops.Get("a")))["reply"]["data"] == data


def test_a_driver_leaves_no_keys_behind(server: Server) -> None:
    with namespaces(f"{server.url}?prefix=here:") as there, Driver(PYTHON) as driver:
        driver.reset(there.url, there.fresh())
        driver.step(Step(0, ops.Put("q", "a", "k", "")))
        with server.client() as client:
            assert list(client.scan_iter("here:kit-*"))
    with server.client() as client:
        assert not list(client.scan_iter("here:kit-*"))


@pytest.mark.parametrize(
    ("text", "requirement", "detail"),
    [
        ("print('Listening...', flush=True)", "DRIVER-1", "not JSON"),
        ("print('{\"seq\": NaN}', flush=True)", "DRIVER-1", "NaN"),
        ("print('[]', flush=True)", "DRIVER-5", "list, not an object"),
        ("print('{\"seq\": 1}', flush=True)", "DRIVER-5", "no 'protocol'"),
        (HELLO.replace('col": 1', 'col": 9'), "DRIVER-5", "protocol is 9, not 1"),
        (HELLO.replace('["pop.*"]', '["dancing"]'), "DRIVER-5", "'dancing'"),
        (HELLO.replace('["pop.*"]}', "["), "DRIVER-1", "not JSON"),
        ("sys.stderr.write('no such file'); sys.exit(3)", "DRIVER-4", "exit code 3"),
        ("print('[' * 200_000, flush=True)", "DRIVER-1", "not JSON"),
        ("os.kill(os.getpid(), 15)", "DRIVER-4", "SIGTERM"),
        ("os.kill(os.getpid(), 40)", "DRIVER-4", "signal 40"),
        (HELLO + 'input(); print(\'{"seq": 7, "ok": true}\', flush=True); input()', "DRIVER-2", "request 7 when 2"),
        (HELLO + "input(); print('{\"seq\": 2}', flush=True); input()", "DRIVER-6", "no 'ok'"),
    ],
)
def test_a_violation_of_the_protocol_is_reported(text: str, requirement: str, detail: str) -> None:
    with pytest.raises(Broken) as broken, script(text) as driver:
        driver.reset("", "")
    assert broken.value.requirement == requirement
    assert detail in broken.value.detail


def test_a_driver_that_hangs_is_ended() -> None:
    with pytest.raises(Broken, match=r"within 0\.2 s") as broken, script("time.sleep(99)", start_s=0.2):
        pass
    assert broken.value.requirement == "DRIVER-3"


def test_a_driver_that_does_not_read_is_ended() -> None:
    driver = script(HELLO + "time.sleep(99)", answer_s=0.2)
    driver.start()
    with pytest.raises(Broken, match="did not read") as broken:
        driver.step(Step(0, ops.Put("q", "a", "k", "x" * 1_000_000)))
    assert broken.value.requirement == "DRIVER-3"
    assert not driver.runs


def test_processes_that_a_driver_starts_end_with_it() -> None:
    driver = Driver(["sh", "-c", f"'{sys.executable}' '{PYTHON[1]}'; true"])
    driver.start()
    driver.kill()
    assert not driver.runs


def test_a_drivers_standard_error_is_kept() -> None:
    with pytest.raises(Broken) as broken, script("sys.stderr.write('no such file'); sys.exit(3)"):
        pass
    assert broken.value.stderr == "no such file"


def test_a_missing_program_is_reported() -> None:
    with pytest.raises(Broken, match="cannot be started") as broken, Driver(["/no/such/program"]):
        pass
    assert broken.value.requirement == "DRIVER-4"
