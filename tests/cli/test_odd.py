"""What surrounds a command: an output that is closed, full, or of another encoding; files and values that are wrong."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qmodel.cli.session import as_json
from tests.cli.conftest import Run
from tests.processes import started

ARGV = [sys.executable, "-m", "qmodel"]
QMODEL = shlex.join(ARGV)


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line, shell=True, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60, check=False
    )


# ---- the output


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_closed_output_is_no_accident(form: str) -> None:
    done = shell(f"{QMODEL} {form} op config >&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--json queues", "op --help", "--version"])
def test_a_full_disk_is_told_in_a_sentence(command: str, unbuffered: str) -> None:
    done = shell(f"{QMODEL} {command} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")


@pytest.mark.parametrize("form", ["", "--json "])
def test_an_output_without_a_letter_shows_its_number(form: str) -> None:
    put = '{"op": "put", "queue": "q", "jid": "a", "klass": "\\u03a9", "data": "\\ud800"}'
    history = put + '\n{"op": "peek", "queue": "q"}'
    done = subprocess.run(
        [*ARGV, *form.split(), "run"],
        input=history,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict" if form else "latin-1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if form:
        assert [json.loads(line)["op"] for line in done.stdout.splitlines()] == ["put", "peek"]
    else:
        assert "put q a \\u03a9" in done.stdout


def test_json_has_no_number_that_json_does_not_have() -> None:
    said = as_json({"rows": [{"a": float("nan"), "b": 1.5}, {"a": float("inf")}], "half": "\ud800"})
    assert json.loads(said, parse_constant=pytest.fail) == {
        "rows": [{"a": None, "b": 1.5}, {"a": None}],
        "half": "\ud800",
    }
    said.encode()


def test_a_terminal_obeys_no_job(run: Run) -> None:
    run("put", "q", "k", "clear\x1b[2J\x9b2J", "--jid", "a")
    run("op", "pop", "q", "--worker", "w")
    run("op", "fail", "a", "g", "one\n\x1b]0;title\x07two")
    for command in (
        ("get", "a"),
        ("search", "--queue", "q"),
        ("op", "failed", "g"),
        ("events",),
        ("op", "multiget", "a"),
    ):
        done = run(*command)
        assert done.code == 0 and not set(done.out) & set("\x1b\x07\x9b"), (command, done.out)
    assert "two" in run("get", "a").out


# ---- files and values


@pytest.mark.parametrize("command", [("init",), ("plan", "new")])
def test_a_file_that_cannot_be_written_is_named(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    done = run(*command, f"{tmp_path}/file/inside")
    assert done.code == 1
    assert done.err == f"Error: {tmp_path}/file/inside: Not a directory.\n"


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("command", [("run",), ("op", "put-many")])
def test_a_file_that_is_no_json_is_a_wrong_command_line(
    run: Run, tmp_path: Path, command: tuple[str, ...], content: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    done = run(*command, f"{tmp_path}/file")
    assert done.code == 2 and "Invalid value for FILE" in done.err


def test_a_duration_of_four_hundred_digits_is_refused(run: Run) -> None:
    done = run("put", "q", "k", "--delay", "9" * 400)
    assert done.code == 2 and "is longer than any duration" in done.err


def test_a_query_makes_no_folder_for_an_archive_that_is_not_there(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    for _ in range(2):
        done = run("query", f"{tmp_path}/typo", "select 1")
        assert done.code == 1 and "There is no archive at" in done.err
    assert not (tmp_path / "typo").exists()


# ---- other servers than --url


def test_the_server_of_an_app_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "away.py").write_text(
        "from qmodel import App\napp = App('redis://:secret@localhost:1/0')\n@app.job\ndef job(): pass\n"
    )
    began = time.monotonic()
    done = shell(f"cd {shlex.quote(str(tmp_path))} && {QMODEL} call away:job", QMODEL_URL="memory://")
    assert done.returncode == 69
    assert "The URL was redis://:***@localhost:1/0 (from away:job)." in done.stderr
    assert time.monotonic() - began < 30  # and not a minute, as in a program


def test_the_target_of_a_move_that_is_away_is_named(run: Run) -> None:
    done = run("--json", "move", "redis://:secret@localhost:1/0?connect_deadline=0.1")
    assert done.code == 69
    assert done.json["unreachable"] == "redis://:***@localhost:1/0?connect_deadline=0.1"
    assert done.json["url_from"] == "TO"


def test_the_password_of_the_original_is_not_shown(run: Run) -> None:
    pytest.importorskip("redis")
    done = run("qless-convert", "redis://:secret@localhost:1/0")
    assert done.code == 1 and "redis://:***@localhost:1/0 cannot be read" in done.err
    assert "secret" not in done.out + done.err


# ---- results


def test_a_result_that_no_json_has_does_not_hide_those_of_the_next_jobs(run: Run) -> None:
    for jid, result in (("a", "NaN"), ("b", "[1]")):
        run("put", "q", "k", "--jid", jid)
        run("op", "pop", "q", "--worker", "w")
        run("op", "complete", jid, "--result", result)
    done = run("wait", "a", "b", "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert done.code == 1
    assert (first["jid"], first["error"], second) == ("a", "DataError", {"jid": "b", "result": [1]})


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_call_that_is_interrupted_prints_no_result(tmp_path: Path, form: str) -> None:
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\nfrom qmodel import App\napp = App('memory://')\n@app.job\n"
        "def job():\n    pathlib.Path('begun').touch()\n    time.sleep(3)\n"
    )
    line = [*ARGV, "call", "slow:job", "--wait", *form.split()]
    with started(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    if form:
        assert json.loads(out).keys() == {"jid", "history"}
    else:
        assert out == "" and "popped" in err
