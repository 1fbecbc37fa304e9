"""Worker processes: how signals stop them, and what remains after they are killed."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.request
from pathlib import Path

import pytest

from qmodel.client.sync import Client
from qmodel.contract.operations import Pop, Put, Release
from qmodel.worker.connection import Connection
from qmodel.worker.orphans import give_back
from tests.backends.helpers import Starter
from tests.worker.support import INTERRUPT, KILL, PATIENCE, TERMINATE, Process, free_port, is_alive, lines, until

RUNNERS = pytest.mark.parametrize("runner", ["thread", "async", "fork"])
TWO = pytest.mark.parametrize("runner", ["thread", "fork"])
KLASS = {"thread": "rest", "async": "arest", "fork": "rest"}


def put(client: Client, klass: str, notes: Path, seconds: float) -> str:
    """Put a job that writes a note when it begins; give its id."""
    return client.queues["default"].put(klass, {"seconds": seconds, "path": str(notes)}).jid


@TWO
def test_the_first_interrupt_lets_jobs_finish(runner: str, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--runner", runner) as worker:
        jid = put(client, KLASS[runner], notes, 60)
        until(lambda: lines(notes))
        later = put(client, KLASS[runner], notes, 0)
        worker.send(INTERRUPT)
        worker.says("Finishing 1 job. Ctrl-C again gives them back.")
        Path(f"{notes}.enough").touch()
        assert worker.wait() == 0
    assert client.jobs[jid].result == "rested"
    assert client.jobs[later].state == "waiting"


@RUNNERS
def test_the_second_interrupt_gives_jobs_back_uncounted(runner: str, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--runner", runner) as worker:
        jid = put(client, KLASS[runner], notes, 60)
        until(lambda: lines(notes))
        worker.send(INTERRUPT)
        worker.says("Finishing 1 job")
        worker.send(INTERRUPT)
        assert worker.wait() == 0
        assert "Giving 1 job back." in worker.output and "Its worker stops." in worker.output
    job = client.jobs[jid]
    assert (job.state, job.remaining) == ("waiting", job.retries)


@TWO
def test_termination_gives_jobs_a_deadline(runner: str, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--runner", runner, "--grace", "60s") as worker:
        quick = put(client, KLASS[runner], notes, 60)
        until(lambda: lines(notes))
        worker.send(TERMINATE)
        worker.says("Finishing 1 job within 60 s")
        Path(f"{notes}.enough").touch()
        assert worker.wait() == 0
    assert client.jobs[quick].state == "complete"
    Path(f"{notes}.enough").unlink()
    with Process(url, "--runner", runner, "--grace", "300ms") as worker:
        slow = put(client, KLASS[runner], notes, 60)
        until(lambda: lines(notes)[2:])
        worker.send(TERMINATE)
        assert worker.wait() == 0
    assert (client.jobs[slow].state, client.jobs[slow].remaining) == ("waiting", client.jobs[slow].retries)


def test_a_plain_function_that_ran_for_too_long_does_not_keep_the_process(url: str, client: Client) -> None:
    with Process(url, "--runner", "async") as worker:
        client.queues["default"].put("endless", {}, timeout=0.4, retries=0)
        worker.says("failed (TimedOut)")
        worker.send(TERMINATE)
        assert worker.wait() == 0


def test_the_first_line_says_what_it_works_on(url: str) -> None:
    with Process(url, "-q", "a,b,defalt", "-c", "3") as worker:
        worker.says("queues a, b, defalt (ordered), 3 at a time in threads; ")
        assert "No job type has the queue defalt. Did you mean default?" in worker.output
        assert "job types: aadd, " in worker.output and url.partition("?")[0] in worker.output


def test_a_worker_takes_jobs_of_all_queues_of_its_app(url: str, client: Client, tmp_path: Path) -> None:
    program = "from qmodel import App\napp = App()\nfor name in 'ab':\n app.job(name=name, queue=name)(lambda: 1)\n"
    (tmp_path / "two_queues.py").write_text(program)
    with Process(url, app="two_queues:app", cwd=tmp_path) as worker:
        worker.says("queues a, b (round-robin)")
        assert [client.queues[name].put(name).wait(PATIENCE) for name in ("b", "a")] == [1, 1]


def test_what_a_killed_worker_held_is_performed_by_another(url: str, client: Client, notes: Path) -> None:
    client.config["heartbeat"] = 0.5
    client.config["grace-period"] = PATIENCE  # while its worker lives, it does not lapse, however busy the machine is
    with Process(url) as worker:
        jid = put(client, "rest", notes, 60)
        until(lambda: lines(notes))
        worker.send(KILL)
        worker.wait()
    client.config["heartbeat"] = 60
    client.config["grace-period"] = 0
    Path(f"{notes}.enough").touch()
    with Process(url):
        until(lambda: client.jobs[jid].state == "complete")
    assert [stage.what for stage in client.jobs[jid].history] == ["put", "popped", "lapsed", "popped", "completed"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the processes are looked up in /proc")
@pytest.mark.parametrize("number", [KILL, TERMINATE], ids=["killed", "terminated"])
def test_no_process_of_a_job_outlives_its_worker(number: int, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--runner", "fork", "--grace", "0") as worker:
        put(client, "rest", notes, 60)
        until(lambda: lines(notes))
        child = int(lines(notes)[0].split()[1])
        assert child != worker.process.pid and is_alive(child)
        worker.send(number)
        worker.wait()
        until(lambda: not is_alive(child))


@pytest.mark.parametrize("number", [KILL, INTERRUPT], ids=["killed", "interrupted"])
def test_no_process_outlives_its_supervisor(number: int, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--processes", "2") as worker:
        for _ in range(2):
            put(client, "rest", notes, 60)
        until(lambda: len(lines(notes)) == 2)
        Path(f"{notes}.enough").touch()
        until(lambda: lines(notes).count("ended") == 2)
        pids = {int(line.split()[1]) for line in lines(notes) if line != "ended"}
        assert len(pids) == 2 and worker.process.pid not in pids
        worker.send(number)
        worker.wait()
        until(lambda: not any(map(is_alive, pids)))


def test_processes_of_a_burst_end_and_are_not_replaced(url: str, client: Client, notes: Path) -> None:
    for number in range(10):
        client.queues["default"].put("note", {"path": str(notes), "text": str(number)})
    with Process(url, "--processes", "2", "--burst") as worker:
        assert worker.wait() == 0, worker.output
    assert sorted(line.split()[0] for line in lines(notes)) == sorted(map(str, range(10)))


def test_a_process_that_dies_is_replaced(url: str, client: Client, notes: Path) -> None:
    with Process(url, "--processes", "2") as worker:
        put(client, "rest", notes, 30)
        until(lambda: lines(notes))
        os.kill(int(lines(notes)[0].split()[1]), signal.SIGKILL)
        worker.says("was killed by SIGKILL; another one starts in ")
        until(lambda: worker.output.count("Worker ") >= 3)
        Path(f"{notes}.enough").touch()  # the job was given back, and rests once more
        worker.send(INTERRUPT)
        assert worker.wait() == 0


@pytest.mark.parametrize("name", [(), ("--name", "me")], ids=["unnamed", "named"])
def test_the_jobs_of_a_process_that_dies_are_given_back_at_once(
    name: tuple[str, ...], url: str, client: Client, notes: Path
) -> None:
    with Process(url, "--processes", "2", *name) as worker:  # the lease lasts for a minute
        jids = [put(client, "rest", notes, 60) for _ in range(2)]
        until(lambda: len(lines(notes)) == 2)
        dead, living = (int(line.split()[1]) for line in lines(notes))
        os.kill(dead, signal.SIGKILL)
        until(lambda: len(lines(notes)) == 3)  # another process has begun it
        worker.says("Gave back 1 job of the dead worker")
        counted = sorted(client.jobs[jid].retries - client.jobs[jid].remaining for jid in jids)
        assert counted == [0, 1]  # a job that kills its process is not performed for ever
        Path(f"{notes}.enough").touch()
        until(lambda: all(client.jobs[jid].state == "complete" for jid in jids))
        assert is_alive(living)
    stages = sorted([stage.what for stage in client.jobs[jid].history] for jid in jids)
    assert stages == [["put", "popped", "completed"], ["put", "popped", "raised", "retried", "popped", "completed"]]


def test_a_job_that_another_worker_has_taken_is_not_given_back() -> None:
    connection = Connection("memory://", lambda: client)
    with Client("memory://") as client:
        client.config["grace-period"] = 0
        for jid in ("a", "b"):
            client.execute(Put("q", jid, "K", ""))
        taken = client.execute(Pop("q", "dead", 2))
        client.execute(Release("a", taken[0].token))
        client.execute(Pop("q", "other"))
        connection.connect()
        give_back(connection, "dead", "was killed by SIGKILL")
        assert (client.jobs["a"].state, client.jobs["a"].worker) == ("running", "other")
        assert (client.jobs["b"].state, client.jobs["b"].failure.group) == ("waiting", "Killed")


def test_a_worker_whose_fork_server_is_killed_gives_its_jobs_back_and_ends(
    url: str, client: Client, notes: Path
) -> None:
    with Process(url, "--runner", "fork") as worker:
        jid = put(client, "rest", notes, 60)
        until(lambda: lines(notes))
        child = int(lines(notes)[0].split()[1])
        os.kill(int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
        assert worker.wait() == 1
        assert "The fork server of this worker is gone" in worker.output and "Traceback" not in worker.output
    assert client.jobs[jid].state == "waiting"
    until(lambda: not is_alive(child))


def test_probes_are_answered(url: str) -> None:
    port = free_port()
    with Process(url, "--health-port", str(port)) as worker:
        worker.says("queues default")
        for path in ("live", "ready"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=PATIENCE) as answer:
                assert answer.status == 200
        with Process(url, "--health-port", str(port)) as other:
            assert other.wait() == 69
            assert f"Port {port} of 127.0.0.1 cannot be used" in other.output


def test_a_worker_begins_anew_when_its_code_changes(url: str, client: Client, tmp_path: Path) -> None:
    code = "from qmodel import App\napp = App()\n@app.job\ndef which() -> int:\n    return {}\n"
    module = tmp_path / "changing.py"
    module.write_text(code.format(1))
    with Process(url, "--reload", app="changing:app", path=str(tmp_path), cwd=tmp_path) as worker:
        assert client.queues["default"].put("which", {}).wait(timeout=PATIENCE) == 1
        module.write_text(code.format(2))
        worker.says("changing.py changed: the worker restarts.")
        until(lambda: client.queues["default"].put("which", {}).wait(timeout=PATIENCE) == 2)
        module.write_text("this is no Python")
        worker.says("SyntaxError")
        module.write_text(code.format(3))
        until(lambda: client.queues["default"].put("which", {}).wait(timeout=PATIENCE) == 3)
        worker.send(TERMINATE)
        worker.wait()
        assert client.workers.counts() == []


def test_a_worker_whose_server_is_gone_still_ends_in_time(private: Starter, notes: Path) -> None:
    with private() as server, Process(f"{server.url}?deadline=0.2", "--grace", "300ms") as worker:
        client = Client(server.url)
        client.config["heartbeat"] = 1
        put(client, "rest", notes, 60)
        until(lambda: lines(notes))
        server.kill()
        worker.says("keeps trying")
        worker.send(TERMINATE)
        assert worker.wait() == 0
        assert "1 job left until their leases run out" in worker.output and "Traceback" not in worker.output


@pytest.mark.parametrize("number", [TERMINATE, INTERRUPT], ids=["terminated", "interrupted"])
@pytest.mark.parametrize("tries", [False, True], ids=["at-once", "while-it-tries"])
def test_an_idle_worker_whose_server_is_gone_ends_in_time(number: int, tries: bool, private: Starter) -> None:
    with private() as server, Process(f"{server.url}?deadline={10 * PATIENCE}", "--grace", "500ms") as worker:
        worker.says("queues default")
        server.kill()
        if tries:
            worker.says("keeps trying")
        worker.send(number)
        assert worker.wait() == 0  # the test does not wait for so long as the deadline
        assert "Traceback" not in worker.output


@TWO
def test_a_job_given_back_at_the_end_is_not_taken_again(runner: str, url: str, client: Client, notes: Path) -> None:
    with Process(url, "--runner", runner, "-c", "2", "--grace", "0") as worker:  # one slot waits for a wake-up
        jid = put(client, "rest", notes, 60)
        until(lambda: lines(notes))
        time.sleep(0.3)
        worker.send(TERMINATE)
        assert worker.wait() == 0
    assert [stage.what for stage in client.jobs[jid].history] == ["put", "popped", "released"]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_server_that_does_not_want_us_is_not_waited_for(processes: str, private: Starter) -> None:
    evicting = private("--maxmemory-policy", "allkeys-lru")
    with evicting as server, Process(server.url, "--processes", processes) as worker:
        assert worker.wait() == 69
        assert "allkeys-lru" in worker.output and "Traceback" not in worker.output


def test_a_mistake_is_one_sentence(url: str) -> None:
    for app, sentence in (("tests.worker.job:app", "There is no module"), ("tests.worker.jobs:ap", "has no 'ap'")):
        with Process(url, app=app) as worker:
            assert worker.wait() != 0
            assert sentence in worker.output and "Traceback" not in worker.output


def test_a_server_that_is_not_there_is_waited_for_and_said_so_once(tmp_path: Path) -> None:
    with Process(f"unix://{tmp_path}/socket?deadline=0.1") as worker:
        worker.says("keeps trying")
        with socket.socket(socket.AF_UNIX) as listener:  # it takes connections, and answers nothing
            listener.bind(f"{tmp_path}/socket")
            listener.listen()
            for _ in range(3):
                listener.accept()[0].close()
        worker.send(INTERRUPT)
        assert worker.wait() == 0
        assert worker.output.count("keeps trying") == 1 and "Traceback" not in worker.output
