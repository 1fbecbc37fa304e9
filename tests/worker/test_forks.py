"""Jobs in their own processes: their limits, and their isolation from other jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from qmodel.app import App
from qmodel.app.outcome import Completed
from qmodel.client.sync import Client
from qmodel.errors import JobFailed
from qmodel.worker.folders import WorkFolder
from qmodel.worker.forks import ForkRunner, _parsed
from tests.worker import jobs
from tests.worker.support import PATIENCE, is_alive, lines, until, working


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with jobs.app.using(Client(url)):
        before, jobs.app.connection._given = jobs.app.connection._given, url
        yield jobs.app
        jobs.app.connection._given = before


def test_a_killed_process_is_a_failed_attempt_and_no_dead_worker(app: App) -> None:
    with working(app, runner="fork"):
        for number, how in (
            (signal.SIGKILL, "killed by SIGKILL"),
            (signal.SIGTERM, "killed by SIGTERM"),
            (signal.SIGRTMIN + 2, "killed by signal 36"),
            (0, "status 3"),
        ):
            job = jobs.die.put(int(number))
            with pytest.raises(JobFailed, match=how) as failed:
                job.wait(timeout=PATIENCE)
            assert failed.value.group == "Killed"
            assert [one.what for one in job.refresh().history].count("retried") == 2
        assert jobs.add.put(1).wait(timeout=PATIENCE) == 1


@pytest.mark.parametrize("text", ["junk", '["Completed", {"result_text": 7}]', '["Worker", {}]', "7", "[" * 9999])
def test_what_is_no_answer_is_none(text: str) -> None:
    assert _parsed(b'["Completed", {"result_text": "7"}]') == Completed("7")
    assert _parsed(text.encode()) is None


def test_a_closed_stream_harms_no_answer(app: App) -> None:
    with working(app, runner="fork"):
        jobs.hush.put().wait(timeout=PATIENCE)


def test_more_memory_than_is_allowed_is_a_memory_error(app: App) -> None:
    with working(app, runner="fork", memory=512 << 20):
        assert jobs.hoard.put(50).wait(timeout=PATIENCE) == 50 << 20
        with pytest.raises(JobFailed) as failed:
            jobs.hoard.put(1024).wait(timeout=PATIENCE)
        assert failed.value.group == "MemoryError"


def test_each_job_has_an_empty_folder_which_is_gone_after_it(app: App, notes: Path) -> None:
    with working(app, runner="fork"):
        assert [jobs.litter.put(str(notes)).wait(timeout=PATIENCE) for _ in range(2)] == [[], []]
        folders = [Path(line) for line in lines(notes)]
        assert folders[0].parent.name.startswith("qmodel-worker-") and not (folders[1] / "litter").exists()
    assert not folders[0].parent.exists()


def test_a_job_without_room_for_its_folder_is_a_failed_attempt_and_no_dead_thread(app: App) -> None:
    with working(app, runner="fork") as worker:
        jobs.add.put(1).wait(timeout=PATIENCE)
        runner = worker._runner
        assert isinstance(runner, ForkRunner)
        runner._folder.path.rename(elsewhere := runner._folder.path.with_suffix(".away"))
        job = jobs.add.options(retries=0).put(2)
        with pytest.raises(JobFailed, match="No process could be started for it: No such file or directory"):
            job.wait(timeout=PATIENCE)
        elsewhere.rename(runner._folder.path)
        assert jobs.add.put(3).wait(timeout=PATIENCE) == 3
        assert not runner._statuses


def test_what_a_killed_worker_left_is_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "qmodel-worker-left" / "1").mkdir(parents=True)
    living, other = WorkFolder(), WorkFolder()
    assert sorted(tmp_path.iterdir()) == sorted([living.path, other.path])
    living.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_job_started_ends_with_it(app: App, notes: Path) -> None:
    with working(app, runner="fork"):
        jobs.parent.put(str(notes)).wait(timeout=PATIENCE)
        child = int(lines(notes)[0])
        until(lambda: not is_alive(child))


def test_each_job_is_in_another_process(app: App, notes: Path) -> None:
    with working(app, runner="fork", concurrency=2):
        for job in [jobs.note.put(str(notes), str(number)) for number in range(6)]:
            job.wait(timeout=PATIENCE)
    assert len({line.split()[1] for line in lines(notes)}) == 6


@pytest.mark.parametrize("runner", ["thread", "async"])
def test_a_process_that_a_job_forks_ends_with_the_job_and_performs_no_other(
    app: App, runner: Literal["thread", "async"], notes: Path
) -> None:
    with working(app, runner=runner, concurrency=2):
        for job in [jobs.bear.put(str(notes)) for _ in range(3)] + [jobs.abear.put(str(notes)) for _ in range(3)]:
            job.wait(timeout=PATIENCE)
        children = [int(line) for line in lines(notes)]
        assert len(children) == 6
        until(lambda: not any(map(is_alive, children)), "the end of the children")


def test_a_killed_process_whose_daemon_lives_on_is_a_failed_attempt(app: App, notes: Path) -> None:
    with working(app, runner="fork"):
        job = jobs.leave_daemon.put(str(notes))
        try:
            with pytest.raises(JobFailed, match="killed by SIGKILL"):
                job.wait(timeout=30)
        finally:
            os.kill(int(lines(notes)[0]), signal.SIGKILL)
