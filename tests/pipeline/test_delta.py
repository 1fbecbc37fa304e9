"""A table of Delta Lake has each event once, whoever writes it, and however often it is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `delta`")
deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; it comes with the extra `delta`")

from qmodel import Client, connect  # noqa: E402
from qmodel.cli import cli  # noqa: E402
from qmodel.errors import Forked  # noqa: E402
from qmodel.pipeline.archive.delta import DeltaError, append, columns, position  # noqa: E402
from qmodel.pipeline.events.decode import events_of, read, tables  # noqa: E402
from qmodel.pipeline.events.gaps import EventsGone, SequenceWentBack  # noqa: E402
from qmodel.pipeline.events.schema import SCHEMA  # noqa: E402
from tests.pipeline.archives import put  # noqa: E402
from tests.processes import started  # noqa: E402
from tests.servers import ROOT, Server  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        put(client, 40)
        yield client


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def stored(place: str) -> Any:
    """Give the events of the table, as a reader of Delta finds them, in order."""
    found = deltalake.DeltaTable(place).to_pyarrow_table().sort_by("seq")
    return found.select(SCHEMA.names).cast(SCHEMA)


def test_new_events_are_added_with_the_position(client: Client, url: str, place: str) -> None:
    assert [(one.last, one.rows) for one in append(url, place, rows=30)] == [
        (30, 30),
        (client.newest(), client.newest() - 30),
    ]
    put(client, 20, day=20_001)
    assert sum(one.rows for one in append(url, place)) == client.newest() - 40
    assert list(append(url, place)) == []
    assert list(events_of(stored(place))) == list(client.events())
    table = deltalake.DeltaTable(place)
    assert table.metadata().partition_columns == ["namespace", "day"]
    assert position(table, "spark:") == tuple(client.position())
    assert position(table, "other:") == (0, None)
    assert columns().names[:3] == ["namespace", "day", "seq"]


def test_of_two_that_add_the_same_events_one_succeeds(client: Client, url: str, place: str) -> None:
    one = append(url, place, rows=10)
    next(one)
    assert sum(added.rows for added in append(url, place)) == client.newest() - 10
    with pytest.raises(DeltaError, match="Another process has added events of 'spark:'"):
        next(one)
    other = append(url, place, namespace="other:", rows=10)
    next(other)
    assert len(stored(place)) == client.newest() + 10


def test_delta_refuses_a_commit_on_an_old_snapshot(
    client: Client, url: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qmodel.pipeline.archive import delta

    write = delta.write_deltalake

    def meanwhile(*given: Any, **options: Any) -> None:
        """Let another process add the same events before this one."""
        monkeypatch.setattr(delta, "write_deltalake", write)
        list(append(url, place))
        write(*given, **options)

    monkeypatch.setattr(delta, "write_deltalake", meanwhile)
    with pytest.raises(DeltaError, match="nothing was added"):
        list(append(url, place))
    assert stored(place).column("seq").to_pylist() == list(range(1, client.newest() + 1))


def test_events_that_are_gone_or_lost_are_errors(client: Client, url: str, place: str, spark_server: Server) -> None:
    list(append(url, place))
    client.config.set("max-events", 10)
    put(client, 60, day=20_001)
    with pytest.raises(EventsGone):
        list(append(url, place))
    spark_server.client().flushdb()
    with pytest.raises((SequenceWentBack, Forked)):
        list(append(url, place))


def test_what_is_gone_is_left_out_if_that_is_wanted(client: Client, url: str, place: str) -> None:
    list(append(url, place))
    before = client.newest()
    client.config.set("max-events", 10)
    put(client, 60, day=20_001)
    newest, at = client.newest(), list(append(url, place, rows=4, skip_gaps=True))
    (gap,) = at[0].gaps
    assert (gap.first, newest - gap.last) == (before + 1, sum(one.rows for one in at)) and len(at) > 1
    assert [one.gaps for one in at[1:]] == [()] * (len(at) - 1)
    assert stored(place).column("seq").to_pylist() == [*range(1, before + 1), *range(gap.last + 1, newest + 1)]
    assert position(deltalake.DeltaTable(place), "spark:") == tuple(client.position())
    assert sum("qmodel_gone" in one for one in deltalake.DeltaTable(place).history()) == 1
    put(client, 3, day=20_001)
    assert sum(one.rows for one in append(url, place)) == client.newest() - newest


def test_a_table_of_others_and_what_is_no_table_are_refused(client: Client, url: str, tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "orders"), pa.table({"id": [1, 2]}))
    with pytest.raises(DeltaError, match="is a table with other rows"):
        list(append(url, str(tmp_path / "orders")))
    assert deltalake.DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().column_names == ["id"]
    (tmp_path / "file").touch()
    with pytest.raises(DeltaError, match=r"file cannot be opened as a table of Delta Lake: .*Give a folder"):
        list(append(url, str(tmp_path / "file")))


def test_a_writer_that_is_killed_has_lost_and_doubled_nothing(client: Client, url: str, place: str) -> None:
    chance = random.Random(7)
    code = f"from qmodel.pipeline.archive.delta import append\nlist(append({url!r}, {place!r}, rows=5))"
    for _ in range(4):
        put(client, 60, day=20_001)
        with started([sys.executable, "-c", code], cwd=ROOT) as process:
            try:
                process.wait(chance.uniform(0.4, 1.5))
            except subprocess.TimeoutExpired:
                process.kill()
    list(append(url, place))
    assert stored(place).column("seq").to_pylist() == list(range(1, client.newest() + 1))


def test_the_command_adds_and_says_so(client: Client, url: str, place: str) -> None:
    def run(*options: str) -> str:
        done = CliRunner().invoke(cli, [*options, "--url", url, "archive", "delta", place], catch_exceptions=False)
        assert done.exit_code == 0
        return done.output

    assert f"up to {client.newest()}" in run()
    assert run() == "There is no new event.\n"
    put(client, 3, day=20_001)
    assert json.loads(run("--json"))["rows"] == 3
    client.config.set("max-events", 10)
    put(client, 60, day=20_001)
    done = CliRunner().invoke(cli, ["--url", url, "archive", "delta", place])
    assert done.exit_code == 1 and "are gone from the server" in done.stderr and "With --skip-gaps" in done.stderr
    done = CliRunner().invoke(cli, ["--url", url, "archive", "delta", place, "--skip-gaps"])
    assert done.exit_code == 0 and "left out, because they are gone: " in done.stderr
    done = CliRunner().invoke(cli, ["--url", "memory://x", "archive", "delta", place])
    assert done.exit_code == 1 and "needs a server" in done.output


def recipes() -> dict[str, Any]:
    """Execute the functions of the documentation's recipes."""
    text = (ROOT / "docs" / "pipeline" / "delta.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    exec(text.split('```python title="recipes.py"\n')[1].split("```")[0], found)
    return found


class Batch:
    """A batch of a stream, as Spark gives it."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def toArrow(self) -> Any:
        return self.table


@pytest.mark.parametrize("name", ["append_once", "merge_by_seq"])
def test_the_recipes_add_a_batch_once(client: Client, name: str, place: str) -> None:
    add = recipes()[name]
    batches = [Batch(one) for one in (tables([part]) for part in read(client)) for one in (one[:25], one[25:])]
    for number, batch in enumerate(batches):
        add(place, batch, number)
        add(place, batch, number)
    assert stored(place).column("seq").to_pylist() == list(range(1, client.newest() + 1))
