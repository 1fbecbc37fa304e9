"""`qmodel init` and `qmodel call`: the first five minutes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel.client.sync import Client
from tests.cli.conftest import Run
from tests.servers import ROOT, Server

JOBS = """
from dataclasses import dataclass
from datetime import date

from qmodel import App, Context

app = App()

@dataclass
class Person:
    name: str
    born: date

@app.job(queue="sums")
def add(x: int, y: int = 0) -> int:
    return x + y

@app.job(name="total")
def sum_up(*numbers: float, scale: float = 1) -> float:
    return sum(numbers) * scale

@app.job
def echo(context: Context, text: str, person: Person | None = None, **more: int) -> list:
    return [text, person and person.born.year, more]

@app.job
def bad() -> None:
    raise OSError("no luck")

no_job = 7
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with some jobs, in which one is."""
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jobs", raising=False)
    yield tmp_path
    sys.modules.pop("jobs", None)


def test_what_init_writes_passes_under_pytest_as_it_is(run: Run, tmp_path: Path) -> None:
    done = run("init", str(tmp_path / "new"))
    assert done.code == 0, done.err
    assert "qmodel call jobs:add 1 2 --wait" in done.out
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "qmodel.testing.plugin", "-p", "no:cacheprovider"]
    found = subprocess.run(command, cwd=tmp_path / "new", env=environment, capture_output=True, text=True, check=False)
    assert "5 passed" in found.stdout, found.stdout


def test_init_writes_over_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("mine", encoding="utf-8")
    done = run("init", str(tmp_path))
    assert done.code == 1
    assert "jobs.py in" in done.err and "Nothing was written" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.py"]
    assert (tmp_path / "jobs.py").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["jobs:add", "1", "2"], 3),
        (["jobs:add", "1"], 1),
        (["jobs:add", "y=2", "x=1"], 3),
        (["jobs:app.add", "1", "2"], 3),
        (["jobs:total", "1", "2", "0.5", "scale=2"], 7.0),
        (["jobs:app.total"], 0),
        (["jobs:echo", "12"], ["12", None, {}]),
        (["jobs:echo", "1+1=2", "n=1"], ["1+1=2", None, {"n": 1}]),
        (["jobs:echo", "x", 'person={"name": "ada", "born": "1815-12-10"}'], ["x", 1815, {}]),
    ],
    ids=str,
)
def test_a_job_is_called_as_its_function_and_its_result_is_printed(
    run: Run, jobs: Path, words: list[str], result: object
) -> None:
    done = run("call", *words, "--wait")
    assert done.code == 0, done.err
    assert done.json == result
    told = [
        next(word for word in ("put", "popped", "completed") if f" {word} " in line)
        for line in done.err.splitlines()[1:]
    ]
    assert told == ["put", "popped", "completed"]


def test_with_json_all_is_one_object(run: Run, jobs: Path) -> None:
    done = run("call", "jobs:add", "1", "2", "--jid", "sum", "--json")
    assert {**done.json, "history": None} == {"jid": "sum", "result": 3, "history": None}
    assert [stage["what"] for stage in done.json["history"]] == ["put", "popped", "completed"]
    assert done.json["history"][0]["queue"] == "sums"


def test_a_job_that_fails_or_takes_too_long_is_told(run: Run, jobs: Path) -> None:
    done = run("call", "jobs:bad", "--timeout", "0.5")
    assert done.code == 1
    assert "retried" in done.err
    assert "has not ended within 0.5 s" in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["jobs:add"], 2, "add() missing 1 required positional argument: 'x'. It takes (x: int, y: int = 0)"),
        (["jobs:add", "1", "2", "3"], 2, "add() takes from 1 to 2 positional arguments but 3 were given"),
        (["jobs:add", "1", "z=3"], 2, "add has no argument 'z'. It takes (x: int, y: int = 0)."),
        (["jobs:add", "one"], 2, "x of add is int, and not 'one'"),
        (["jobs:add", "true"], 2, "x of add is int, and not 'true'"),
        (["jobs:echo", "x", "person=7"], 2, "person of echo cannot be '7'"),
        (["jobs:ecko"], 1, "'jobs:ecko' names no job type. Did you mean jobs:echo?"),
        (["jobs:no_job"], 1, "'jobs:no_job' names no job type. There is jobs:add, jobs:total"),
        (["jobs:no_job.add"], 1, "jobs:no_job is an int, and not a qmodel.App"),
        (["jbos:add"], 1, "There is no module 'jbos'"),
    ],
    ids=str,
)
def test_a_slip_is_one_readable_message(run: Run, jobs: Path, words: list[str], code: int, said: str) -> None:
    done = run("call", *words)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


def test_on_a_server_the_job_is_put_for_others(run: Run, jobs: Path, server: Server) -> None:
    url = f"{server.url}?prefix=call:"
    done = run("call", "jobs:add", "1", "2", "--url", url, "--queue", "other", "--delay", "1m", "--priority", "-3")
    assert done.code == 0, done.err
    with Client(url) as client:
        job = client.jobs[done.out.strip()]
        assert (job.queue, job.state, job.priority) == ("other", "scheduled", -3)
        assert json.loads(job.text) == {"x": 1, "y": 2}
        client.jobs.cancel(job)
