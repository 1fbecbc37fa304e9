"""An archive has events or entries of the journal, and each command says so if it is given the other kind."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from qmodel.cli import cli
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.archive import kinds, write
from qmodel.pipeline.journal import archive
from tests.pipeline.test_auditing import work
from tests.servers import Server


def filled(server: Server, events: str, journal: str) -> str:
    server.client().flushdb()
    url = f"{server.url}?prefix=kinds:"
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 5)
    assert sum(one.rows for one in write.archive(url, events)) > 0
    assert sum(rows for _, rows in archive.archive(url, journal)) > 0
    return url


def test_a_command_that_is_given_the_other_kind_says_so_in_a_sentence(server: Server, tmp_path: Path) -> None:
    events, journal = str(tmp_path / "events-1"), str(tmp_path / "journal-1")
    url = filled(server, events, journal)
    needs_events = f"{journal} has entries of the journal, and this needs events. Nothing was done."
    needs_journal = f"{events} has events, and this needs entries of the journal."
    for arguments, said in (
        (["statistics", journal], needs_events),
        (["--url", url, "reconcile", journal], needs_events),
        (["--url", url, "archive", "run", journal], needs_events),
        (["archive", "verify", journal], needs_events),
        (["archive", "compact", journal], needs_events),
        (["--url", url, "archive", "run", events, "--journal", "--no-events"], needs_journal),
        (["audit", events], needs_journal),
    ):
        found = CliRunner().invoke(cli, arguments)
        assert (found.exit_code, said in found.output) == (1, True), (arguments, found.output, found.exception)


def test_one_root_holds_both_kinds(server: Server, tmp_path: Path) -> None:
    root = str(tmp_path / "both")
    filled(server, f"{root}/events", f"{root}/journal")
    assert [kinds.opened(root, kind).root for kind in ("events", "journal")] == [f"{root}/events", f"{root}/journal"]
    found = CliRunner().invoke(cli, ["statistics", root])
    assert (found.exit_code, "waits" in found.output) == (0, True)
    found = CliRunner().invoke(cli, ["audit", root])
    assert (found.exit_code, "0 differ" in found.output) == (0, True)


def test_a_new_archive_has_a_folder_for_its_kind_if_asked(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert kinds.opened(root, kinds.EVENTS).root == root
    assert kinds.opened(root, kinds.EVENTS, apart=True).root == f"{root}/events"


def test_one_set_of_commands_keeps_events_and_journal_in_one_root(server: Server, tmp_path: Path) -> None:
    root = str(tmp_path / "shop")
    url = filled(server, str(tmp_path / "e"), str(tmp_path / "j"))

    def said(*arguments: str) -> str:
        found = CliRunner().invoke(cli, ["--url", url, *arguments])
        assert found.exit_code == 0, (found.output, found.exception)
        return found.output

    assert "entries of the journal added" in said("archive", "run", root, "--journal")
    assert sorted(path.name for path in Path(root).iterdir()) == ["events", "journal"]
    assert "each is there once" in said("archive", "verify", root)
    day = next(Path(root).glob("events/*/day=*")).name.removeprefix("day=")
    assert "Nothing to merge" in said("archive", "compact", root, "--day", day)
    assert "waits" in said("statistics", root)
    assert "0 differences" in said("reconcile", root)
    assert "completed" in said("query", root, "select outcome, count(*) from jobs group by all")
    assert "0 differ" in said("audit", root)
