"""Journals are archived whole, and audited in segments that together prove all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qmodel.backends.redis.take_snapshot import taken
from qmodel.cli import cli
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.replies import Recorded
from qmodel.model import snapshot
from qmodel.model.state.store import Store
from qmodel.pipeline.archive.forks import ArchiveForked
from qmodel.pipeline.archive.layout import Archive, ArchiveError
from qmodel.pipeline.audit import findings
from qmodel.pipeline.journal import archive
from qmodel.pipeline.journal.pages import EntriesGone, position
from tests.pipeline.test_auditing import work
from tests.servers import Server

SPACE = "journal:"


def url_of(server: Server) -> str:
    server.client().flushdb()
    return f"{server.url}?prefix={SPACE}"


def kept(url: str, root: str) -> int:
    return sum(rows for _, rows in archive.archive(url, root))


def segmented(url: str, root: str, parts: int = 3) -> Client:
    """Archive a journal in so many segments, each of which begins with a state of the server."""
    client = Client(url)
    client.execute(ops.ConfigSet("journal", 1))
    for part in range(parts):
        if part:
            archive.keep(root, SPACE, taken(url))
        work(client, 20, f"p{part}-")
        kept(url, root)
    return client


def audited(root: str, **options: Any) -> list[dict[str, Any]]:
    segments = archive.segments(root, SPACE, **options)
    return [row for segment in segments for row in findings.audited(root, segment)]


def test_what_is_archived_is_the_journal_and_each_entry_once(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 30)
        assert kept(url, root) == len(list(client.journal()))
        work(client, 30, "k")
        assert kept(url, root) > 0
        assert kept(url, root) == 0
        assert list(archive.read(root, SPACE)) == list(client.journal())
        assert list(archive.read(root, SPACE, 10, 20)) == list(client.journal())[10:20]


def test_entries_of_moments_that_go_back_over_midnight_are_read_in_their_order(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    with Client(url) as client:
        client.backend.execute(ops.ConfigSet("journal", 1), 0)
        for number in range(40):
            client.backend.execute(ops.Put("q", f"j{number}", "k", ""), (number % 3) * 86_400_000)
        kept(url, root)
        assert len(Archive(root).files(SPACE)) == 3
        assert list(archive.read(root, SPACE)) == list(client.journal())
        assert [row["kind"] for row in audited(root)] == ["end"]


def test_an_archive_that_has_missed_entries_says_which(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 10)
        kept(url, root)
        work(client, 10, "k")
        client.execute(ops.ConfigSet("max-journal", 2))
        with pytest.raises(EntriesGone):
            kept(url, root)
        server.client().flushdb()
        with pytest.raises(ArchiveForked):
            kept(url, root)


def test_the_archive_and_the_audit_go_on_behind_entries_that_were_dropped(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    add = ("--url", url, "archive", "run", root, "--journal", "--no-events")
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 5)
        kept(url, root)
        before = position(client).number
        client.execute(ops.ConfigSet("max-journal", 6))
        work(client, 10, "k")
        said = run(*add)
        assert said.exit_code == 1 and f"Entries {before + 1} to " in said.stderr and "--skip-gaps" in said.stderr
        assert run(*add, "--skip-gaps").output == "6 entries of the journal added.\n"
        assert run(*add, "--take").exit_code == 0
        state = position(client).number
        client.execute(ops.ConfigSet("max-journal", 1000))
        work(client, 3, "l")
        kept(url, root)
        last = position(client).number
    assert archive.segments(root, SPACE) == [(SPACE, 0, before), (SPACE, state, 0)]
    done = run("audit", root, "--processes", "1")
    assert (done.exit_code, done.stderr) == (
        0, f"{SPACE}: not audited, lost or without a state before them: {before + 1} to {state}\n",
    )  # fmt: skip
    assert f"{before + last - state} entries up to {last}, 0 differ" in done.stdout
    assert "has no entries after 9999" in run("audit", root, "--after", "9999").stdout


def test_a_journal_without_its_beginning_is_archived_and_needs_a_state(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        client.execute(ops.ConfigSet("max-journal", 6))
        work(client, 10)
        (found,) = archive.archive(url, root, skip_gaps=True)
        assert found[1] == 6 and Archive(root).holes(SPACE) == [(1, found[0] - 6)]
        with pytest.raises(ArchiveError, match="no state to begin with"):
            archive.segments(root, SPACE)
        archive.keep(root, SPACE, taken(url))
        assert archive.segments(root, SPACE) == []
        work(client, 1, "k")
        kept(url, root)
        assert archive.segments(root, SPACE) == [(SPACE, found[0], 0)]


def test_segments_begin_with_states_and_end_with_the_next(server: Server, tmp_path: Path) -> None:
    root = str(tmp_path)
    with segmented(url_of(server), root) as client:
        cut = archive.states(root, SPACE)
        assert [(one.after, one.last) for one in archive.segments(root, SPACE)] == [
            (0, cut[0]), (cut[0], cut[1]), (cut[1], 0),
        ]  # fmt: skip
        ends = audited(root)
        assert [row["kind"] for row in ends] == ["end"] * 3
        assert sum(row["entries"] for row in ends) == len(list(client.journal()))
        assert [one.after for one in archive.segments(root, SPACE, cut[1])] == [cut[1]]


def test_a_segment_that_ends_with_another_state_is_told(server: Server, tmp_path: Path) -> None:
    root = str(tmp_path)
    with segmented(url_of(server), root):
        number = archive.states(root, SPACE)[0]
        wrong = archive.state(root, SPACE, number)
        jid = next(iter(wrong.jobs))
        wrong.jobs[jid]["data"] = "other"
        archive.keep(root, SPACE, wrong)
        state = next(row for row in audited(root) if row["kind"] == "state")
        assert state["number"] == number
        assert f"jobs['{jid}']['data']" in state["expected"]


def test_a_segment_whose_entries_are_lacking_is_stopped(tmp_path: Path) -> None:
    segment = archive.Segment("x", 0, 5)
    call = '{"op":"config_set","now":0,"option":"journal","value":1}'
    first = Recorded(1, 1, call, '{"reply":1}')
    rows = list(findings.found(str(tmp_path), segment, [first]))
    assert [row["kind"] for row in rows] == ["stopped", "end"]
    rows = list(findings.found(str(tmp_path), archive.Segment("x", 3, 0), [first]))
    assert rows[0]["kind"] == "stopped"
    assert findings.batch(rows).num_rows == 2


@pytest.mark.parametrize("harm", [lambda data: data[:-20], lambda data: data[:30] + b"\xff" * 20 + data[50:]])
def test_a_segment_that_begins_with_a_damaged_state_is_stopped(tmp_path: Path, harm: Any) -> None:
    store = Store()
    store.journaled = 3
    archive.keep(str(tmp_path), "x", snapshot.of(store))
    (file,) = tmp_path.rglob("*.gz")
    file.write_bytes(harm(file.read_bytes()))
    rows = findings.audited(str(tmp_path), archive.Segment("x", 3, 0))
    assert [row["kind"] for row in rows] == ["stopped", "end"]
    assert "The state is damaged" in rows[0]["expected"]


def test_an_archive_without_a_state_to_begin_with_says_so(server: Server, tmp_path: Path) -> None:
    root = str(tmp_path)
    with segmented(url_of(server), root, 1), pytest.raises(ArchiveError, match="no state to begin with after 5"):
        archive.segments(root, SPACE, 5)
    assert archive.segments(str(tmp_path / "none"), SPACE) == []


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, [*words])


def test_an_archive_that_is_not_there_is_not_audited(tmp_path: Path) -> None:
    said = run("audit", str(tmp_path / "misspelt"))
    assert (said.exit_code, said.stderr) == (1, f"Error: There is no archive in {tmp_path}/misspelt.\n")


def test_the_command_keeps_and_audits(server: Server, tmp_path: Path) -> None:
    url, root = url_of(server), str(tmp_path)
    add = ("--url", url, "archive", "run", root, "--journal", "--no-events")
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 10)
        assert json.loads(run(*add, "--take", "--json").stdout)["state"] > 20
        work(client, 10, "k")
        assert "entries of the journal added" in run(*add).output
        done = run("audit", root, "--keep", "--processes", "1")
        assert done.exit_code == 0, done.output
        assert " 0 differ" in done.output
        assert len(archive.states(f"{root}/journal", SPACE)) == 2
        assert run("audit", root, "--processes", "2").exit_code == 0
