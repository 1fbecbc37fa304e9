"""An archiver may die at any moment: nothing is lost, and nothing is archived twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmodel import Client, connect
from tests.pipeline.archives import put, stored
from tests.processes import started
from tests.servers import ROOT
from tests.tester import share

pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `arrow`")

from qmodel.pipeline.archive import layout
from qmodel.pipeline.archive.compact import compact
from qmodel.pipeline.archive.layout import Archive
from qmodel.pipeline.archive.verify import verify
from qmodel.pipeline.archive.write import archive

CHANGES = {"create_dir", "move", "delete_file", "delete_dir", "open_output_stream"}


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


class Dies:
    """A file system whose process dies before a chosen change."""

    left = 0

    def __init__(self, real: object) -> None:
        self.real = real

    def __getattr__(self, name: str) -> object:
        if name in CHANGES:
            if Dies.left == 0:
                raise KeyboardInterrupt
            Dies.left -= 1
        return getattr(self.real, name)


def deaths(monkeypatch: pytest.MonkeyPatch, start: Path, action: Callable[[str], object]) -> Iterator[Path]:
    """Repeat an action on copies of a folder, dying one change later each time, until it survives; yield the deaths."""
    real = Archive.__init__

    def init(self: Archive, root: str) -> None:
        real(self, root)
        self.fs = Dies(self.fs)

    for count in range(1000):
        root = start.with_name(f"{start.name}-{count}")
        shutil.copytree(start, root)
        with monkeypatch.context() as patch:
            patch.setattr(Archive, "__init__", init)
            Dies.left = count
            try:
                action(str(root))
            except KeyboardInterrupt:
                pass
            else:
                return
        yield root


def each_once(root: Path, last: int) -> None:
    """Check that readers by name find each event once, at least up to the last."""
    found = Archive(str(root))
    files = found.files("spark:")
    assert sum(file.rows for file in files) == found.last("spark:") >= last
    (verdict,) = verify(str(root))
    assert verdict.whole and verdict.rows == found.last("spark:")


def test_who_dies_before_any_change_has_lost_and_doubled_nothing(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tmp_path / "events"
    put(client, 4)
    list(archive(url, str(start)))
    put(client, 12, day=20_000)
    put(client, 12, day=20_001)
    tried = 0
    for root in deaths(monkeypatch, start, lambda root: list(archive(url, root, rows=8, together=2))):
        tried += 1
        each_once(root, 4)
        finished(client, url, root)
    assert tried > 20


def test_who_dies_merging_has_lost_and_doubled_nothing(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tmp_path / "events"
    for day in (20_000, 20_001, 20_002):
        put(client, 9, day)
        list(archive(url, str(start), rows=4))
    tried = 0
    for root in deaths(monkeypatch, start, lambda root: list(compact(root))):
        tried += 1
        each_once(root, client.newest())
        finished(client, url, root)
        list(compact(str(root)))
        assert [file.rows for file in layout.files(str(root))][:2] == [9, 9]
    assert tried > 10


def killed(args: list[str], lines: int, delay: float) -> None:
    """Start a command, and kill it with all its processes soon after it printed so many lines."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}"}
    command = [sys.executable, "-m", "qmodel", *args]
    with started(command, stdout=-1, text=True, env=environment, start_new_session=True) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline(), "it ended by itself"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)


def finished(client: Client, url: str, root: Path) -> None:
    """Archive the rest, and compare everything with the server."""
    list(archive(url, str(root)))
    assert stored(root) == list(range(1, client.newest() + 1))
    assert next(verify(str(root))).whole


def test_archivers_of_a_demo_are_killed_with_all_their_processes(client: Client, url: str, tmp_path: Path) -> None:
    client.config.set("max-events", 10**6)
    chance = random.Random(7)
    demo = [sys.executable, "-m", "qmodel", "--url", url, "demo", str(ROOT / "qmodel" / "cli")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}"}
    root = str(tmp_path / "shop")
    every = ["--url", url, "archive", "run", root, "--processes", "2", "--rows", "20", "--every", "10ms"]
    with started(demo, stdout=subprocess.DEVNULL, env=environment) as running:
        for _ in range(3):
            killed(every, chance.randint(1, 3), chance.random() / 20)
        assert running.wait(120) == 0
    assert client.newest() > 100
    assert layout.files(f"{root}/events")
    finished(client, url, tmp_path / "shop" / "events")


@pytest.mark.spark
def test_an_archiver_on_spark_is_killed_with_all_its_processes(client: Client, url: str, tmp_path: Path) -> None:
    from tests.pipeline.sparking import needed

    needed()
    put(client, 3000)
    root, on = str(tmp_path / "shop"), ["--on", "spark", "--master", "local[2]"]
    killed(["--url", url, "archive", "run", root, *on, "--rows", "40"], 1, 0.05)
    assert 0 < Archive(f"{root}/events").last("spark:") < client.newest()
    finished(client, url, tmp_path / "shop" / "events")


def test_readers_never_fail_beside_an_archiver_and_a_compactor_that_are_killed(
    client: Client, url: str, tmp_path: Path
) -> None:
    """Each look finds each event once, in order: by the reader, by listed files, and by DuckDB."""
    pytest.importorskip("duckdb")
    from qmodel.pipeline.archive.read import read
    from qmodel.pipeline.statistics.count import count
    from qmodel.pipeline.statistics.local import DuckDB

    client.config.set("max-events", 10**6)
    root, chance, looks = str(tmp_path / "events"), random.Random(11), list[int]()
    put(client, 3000, day=20_000)
    put(client, 3000, day=20_001)
    list(archive(url, root, rows=50, together=2))
    adding = f"while True:\n    for one in archive({url!r}, {root!r}, rows=50, together=2): pass"
    merging = f"while True:\n    for one in compact({root!r}, days=('2024-10-04', '2024-10-05'), grace=60): pass"
    code = "from qmodel.pipeline.archive.{0} import {1}\nprint(flush=True)\n{2}"
    works = [code.format("write", "archive", adding), code.format("compact", "compact", merging)]
    for _ in range(share(6)):
        adds, merges = ([sys.executable, "-c", work] for work in works)
        with started(adds, stdout=-1) as one, started(merges, stdout=-1) as other:
            assert one.stdout and one.stdout.readline() and other.stdout and other.stdout.readline()
            for _ in range(chance.randint(1, 3)):
                put(client, 100, day=20_001)
                listed = layout.files(root, "spark:")
                seqs = [seq for table in read(root, "spark:") for seq in table.column("seq").to_pylist()]
                assert seqs == list(range(1, len(seqs) + 1)) and len(seqs) >= max(looks, default=0)
                with DuckDB() as engine:
                    assert count(engine, Archive(root), None)["spark:"].until >= len(seqs)
                for file in listed:
                    Archive(root).open(file).close()
                looks.append(len(seqs))
            for process in chance.sample((one, other), 2):
                process.kill()
    finished(client, url, Path(root))
