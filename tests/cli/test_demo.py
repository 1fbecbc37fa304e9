"""`qmodel demo` on real folders: it counts what is there, and says what could not be counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qmodel.cli import demo
from tests.cli.conftest import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a little of everything."""
    (tmp_path / "a.txt").write_text("one two\nthree")
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "sub" / "b.txt").write_text("vier fünf\r\n")
    (tmp_path / "sub" / "deep" / "empty.txt").touch()
    (tmp_path / "empty folder").mkdir()
    (tmp_path / "latin.txt").write_bytes("grüße".encode("latin-1"))
    (tmp_path / "sub" / "binary").write_bytes(b"\x7fELF\0")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "sub" / "twice.txt").symlink_to("../a.txt")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_a_folder_is_counted_and_verified(run: Run, folder: Path) -> None:
    done = run("demo", str(folder), "--json").json

    assert done["counted"] == done["direct"] == {"files": 3, "lines": 3, "words": 5, "characters": 24}
    assert done["agrees"] is True
    assert done["folders"] == 4
    assert list(done["failed"]) == [str(folder / "latin.txt")]
    assert done["skipped"] == {"binary files": 1, "special files": 1, "symbolic links": 3}


def test_it_tells_what_it_does_and_what_failed(run: Run, folder: Path) -> None:
    done = run("demo", str(folder))

    assert done.code == 0
    for text in (
        "4 text files in 4 folders",
        "1 binary files, 1 special files, 3 symbolic links",
        "Put 9 jobs",
        "1 file failed into demo-undecodable (not UTF-8):",
        "latin.txt: 'utf-8' codec can't decode",
        "Verified: a direct count of the same files gives the same",
        "-files on ",
        "-sums on ",
    ):
        assert text in done.out


def test_the_jobs_can_be_looked_at_afterwards(run: Run, folder: Path) -> None:
    run("demo", str(folder))

    assert run("op", "failed-groups", "--json").json == [{"name": "demo-undecodable", "jobs": 1}]
    files, sums = run("queues", "--json").json
    assert files["name"].partition("-")[0] == sums["name"].partition("-")[0] == "demo"
    for name in ("waiting", "depends", "running", "stalled"):
        assert files[name] == sums[name] == 0


def test_it_can_run_twice_in_the_same_place(run: Run, folder: Path) -> None:
    run("demo", str(folder))

    assert run("demo", str(folder)).code == 0


def test_an_empty_folder_has_nothing_and_is_done(run: Run, tmp_path: Path) -> None:
    done = run("demo", str(tmp_path), "--json").json

    assert done["counted"] == {"files": 0, "lines": 0, "words": 0, "characters": 0}
    assert done["agrees"] is True


def test_folders_of_thousands_and_thousands_of_folders_are_counted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(2300):
        (tmp_path / "many" / f"{number}").write_text("x\n")
    for number in range(1100):
        (tmp_path / f"folder {number}").mkdir()
        (tmp_path / f"folder {number}" / "y").write_text("y z")
    done = run("demo", str(tmp_path), "--json").json

    assert done["agrees"] is True
    assert done["counted"] == {"files": 3400, "lines": 3400, "words": 4500, "characters": 7900}


def test_a_file_that_cannot_be_read_fails_and_its_folder_is_summed(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root can read everything, so the refusal is played."""

    def refusing(count: object) -> object:
        def counted(file: str) -> object:
            if file.endswith("b.txt"):
                raise PermissionError(13, "Permission denied", file)
            return count(file)  # type: ignore[operator]

        return counted

    monkeypatch.setattr(demo, "count_at_once", refusing(demo.count_at_once))
    monkeypatch.setattr(demo, "count_by_line", refusing(demo.count_by_line))
    done = run("demo", str(folder))

    assert done.code == 0
    assert "1 file failed into demo-unreadable (cannot be read):" in done.out


def test_names_that_are_not_utf8_are_counted(run: Run, tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xffme"))).write_text("a b\n")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xfe"))).write_bytes(b"\xff")
    done = run("demo", str(tmp_path))

    assert done.code == 0
    assert "bad\\udcfe" in done.out


def test_a_wrong_count_is_found_out(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "count_at_once", lambda file: demo.Count(1, 2, 3, 4))
    done = run("demo", str(folder))

    assert done.code == 1
    assert "NOT the same as a direct count" in done.out


def test_a_worker_that_breaks_ends_the_demo(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: str) -> demo.Count:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(demo, "count_at_once", broken)
    with pytest.raises(ZeroDivisionError):
        run("demo", str(folder))


def test_a_folder_that_is_not_there_is_a_wrong_command_line(run: Run) -> None:
    assert run("demo", "/no/such/folder").code == 2


def test_both_ways_of_counting_agree(tmp_path: Path) -> None:
    for text in ("", "\n", "a", "a\nb", "a\r\nb\r", "\u2028 x\x0c\n\n", "ä " * 1000, "\ufeffx"):
        file = tmp_path / "file"
        file.write_bytes(text.encode())
        assert demo.count_at_once(str(file)) == demo.count_by_line(str(file)), repr(text)


def test_on_a_server_the_demo_keeps_to_keys_of_its_own() -> None:
    assert demo.separate("redis://h/0") == "redis://h/0?prefix=qmodel-demo:"
    assert demo.separate("unix:///s?db=1") == "unix:///s?db=1&prefix=qmodel-demo:"
    assert demo.separate("redis://h?prefix=x:") == "redis://h?prefix=x:"
    assert demo.separate("memory://") == "memory://"


def test_the_standard_library_is_counted_by_a_real_process() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "qmodel", "demo"], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "Verified" in done.stdout
    assert "text files in " in done.stdout
