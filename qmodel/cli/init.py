"""`qmodel init`: write an example app and its tests."""

from __future__ import annotations

from pathlib import Path

import click

from qmodel.errors import QmodelError

JOBS = '''"""The jobs of this project.

    qmodel dev jobs                  run them here, without a server, and show them in a browser
    qmodel call jobs:add 1 2 --wait  enqueue one, and wait for its result
    qmodel worker jobs:app           run the jobs of the server in QMODEL_URL
"""

from qmodel import App, Context

app = App()  # jobs at QMODEL_URL: redis://localhost:6379/0, ...; without it in the memory of each process


@app.job(queue="sums")
def add(x: int, y: int) -> int:
    return x + y


@app.job(queue="emails", retries=3, backoff="exponential")
def welcome(context: Context, to: str, *, language: str = "en") -> str:
    context.log(f"attempt {context.attempt}")
    if "@" not in to:
        raise ValueError(f"{to!r} is not an address")
    return {"en": "Welcome", "de": "Willkommen"}[language] + f", {to}!"


def sign_up(address: str) -> None:
    """Enqueue a job, as a program does, and continue."""
    welcome.options(delay=3600).put(address)
'''

TESTS = '''"""Tests of jobs.py. `qm` is a queue for one test, with its own clock: no test waits or needs a server."""

import pytest

from jobs import add, sign_up, welcome


def test_a_job_is_a_function():
    assert add(1, 2) == 3


def test_a_job_is_enqueued_and_runs(qm):
    job = add.put(1, y=2)
    qm.drain_queue("sums")
    assert job.wait() == 3


def test_a_new_user_is_welcomed_after_an_hour(qm):
    sign_up("ada@example.com")
    qm.assert_enqueued(welcome, args={"to": "ada@example.com"}, delay=3600)
    with qm.worker() as done:
        qm.clock.advance(hours=1)
    assert done.completed == 1


def test_the_welcome(qm):
    assert qm.perform_job(welcome, "ada@example.com", language="de") == "Willkommen, ada@example.com!"
    with pytest.raises(ValueError):
        qm.perform_job(welcome, "ada")


def test_a_failing_welcome_is_retried_three_times(qm):
    welcome.put("ada")
    done = qm.drain_queue("emails", with_scheduled=True)
    assert (done.retried, done.failed) == (3, 1)
'''

FILES = {"jobs.py": JOBS, "test_jobs.py": TESTS}


class Exists(QmodelError):
    """A file exists already."""


@click.command("init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write jobs.py and test_jobs.py into a folder, by default this one. Existing files are not changed."""
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        names = " and ".join(there)
        raise Exists(f"{names} in {folder.resolve()}: exists already. Nothing was written; name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    click.echo(f"In {folder.resolve()}:")
    click.echo("  jobs.py       an app with two job types")
    click.echo("  test_jobs.py  their tests\n\nNow try" + (f", in {folder}:" if folder != Path() else ":"))
    click.echo("  pytest")
    click.echo("  qmodel call jobs:add 1 2 --wait")
    click.echo("  qmodel dev jobs")
