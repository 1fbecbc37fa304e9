"""The commands that are made from the catalogue."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time

import click
import pytest

import qmodel
from qmodel.cli import cli, commands, derive, without_password
from qmodel.cli.convert import format_duration, parse_duration, parse_moment
from qmodel.client.profiles import PROFILES, Profile, written
from qmodel.contract.operations import CATALOGUE, SECTIONS
from tests.cli.conftest import Run

OPERATIONS = list(CATALOGUE.values())


@pytest.mark.parametrize("spec", OPERATIONS, ids=lambda spec: spec.name)
def test_every_operation_has_a_command_with_all_its_arguments(run: Run, spec: derive.Spec) -> None:
    command = derive.command(derive.hyphened(spec))
    assert command is not None
    names = {param.name for param in command.params}
    assert {argument.name for argument in spec.arguments} <= names

    help = run("op", derive.hyphened(spec), "--help")
    assert help.code == 0
    assert "".join(spec.summary.split()) in "".join(help.out.split())
    assert "--json" in help.out


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=lambda spec: spec.name)
def test_no_two_options_of_a_command_have_one_name(spec: derive.Spec) -> None:
    command = derive.command(derive.hyphened(spec))
    assert command is not None
    names = [name for param in command.params for name in param.opts if name.startswith("-")]
    assert len(names) == len(set(names))


def test_a_key_and_how_long_it_holds_are_two_options(run: Run) -> None:
    first = run("put", "syncs", "Sync", "--unique", "sync-7", "--unique-mode", "window", "--unique-for", "5m").out
    assert run("put", "syncs", "Sync", "--unique", "sync-7").out == first


def test_every_operation_is_listed_under_the_heading_of_its_section(run: Run) -> None:
    shown = run("op", "--help").out
    headings = [shown.index(f"\n{heading}:\n") for heading in SECTIONS.values()]

    assert headings == sorted(headings)
    for (section, heading), end in zip(SECTIONS.items(), [*headings[1:], len(shown)], strict=True):
        part = shown[shown.index(f"\n{heading}:\n") : end]
        for spec in OPERATIONS:
            assert (f"\n  {derive.hyphened(spec)} " in part) == (spec.section == section)


def test_the_help_explains_some_thirty_commands_in_groups_and_names_the_others(run: Run) -> None:
    shown = run("--help").out

    for heading, group in commands.GROUPS.items():
        part = shown[shown.index(f"\n{heading}:\n") :]
        assert all(f"\n  {name} " in part for name in group)
    assert ", ".join(commands.MORE) in " ".join(shown.split())
    assert 20 <= sum(map(len, commands.GROUPS.values())) <= 35


def test_a_daily_operation_is_one_command_object_at_the_top_and_under_op() -> None:
    op = cli.get_command(click.Context(cli), "op")
    assert isinstance(op, click.Group)
    for name in commands.DAILY:
        assert commands.load(name) is op.get_command(click.Context(op), name)


def test_what_is_listed_at_the_top_is_daily_or_has_a_module() -> None:
    assert {*commands.own(), *commands.DAILY} == commands.listed().keys()
    assert not commands.DAILY & set(commands.own())


def test_a_job_goes_from_put_to_complete(run: Run) -> None:
    put = run("put", "emails", "Send", '{"to": 1}', "--priority", "-2", "--tags", "a", "--tags", "b")
    jid = put.out.strip()
    assert (put.code, len(jid)) == (0, 32)

    popped = run("op", "pop", "emails", "--worker", "me", "--json").json
    assert (popped[0]["jid"], popped[0]["worker"]) == (jid, "me")
    assert run("op", "heartbeat", jid).out.startswith("expires at 20")
    assert run("op", "complete", jid, "--result", "[1]").out == "complete\n"
    job = run("get", jid, "--json").json
    assert (job["state"], job["result"], job["tags"], job["priority"]) == ("complete", "[1]", ["a", "b"], -2)
    assert [stage["what"] for stage in job["history"]] == ["put", "popped", "completed"]
    assert job["history"][1]["facts"] == {"worker": "me", "token": popped[0]["token"]}


def test_the_common_options_stand_before_or_after_the_command(run: Run) -> None:
    before = run("--url", "memory://cli-common", "--json", "--now", "5", "put", "q", "A", "--jid", "a")
    after = run("get", "a", "--url", "memory://cli-common", "--json", "--now", "1970-01-01T00:00:00.007Z")

    assert before.json == "a"
    assert after.json["put_at"] == 5


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["get", "a"], ["job a", "waiting", '{"x": 1}', "history", "put"]),
        (["op", "peek", "q"], ["jid", "klass", "waiting"]),
        (["op", "waiting", "q"], ["1 to 1 of 1", "waiting"]),
        (["op", "waiting", "q", "--offset", "5"], ["5 to 5 of 1"]),
        (["queues"], ["queue", "q"]),
        (["queue", "nothing"], ["nothing"]),
        (["op", "length", "q"], ["1"]),
        (["workers"], ["No workers."]),
        (["op", "worker", "w"], ["jobs: -", "stalled: -"]),
        (["op", "failed-groups"], ["None."]),
        (["op", "top-tags"], ["None."]),
        (["op", "tracked"], ["No jobs."]),
        (["op", "completed"], ["0 to 0 of 0"]),
        (["events"], ["put", "jid=a", "queue=q"]),
        (["config"], ["heartbeat", "1 min", "default", "How long a lease lasts"]),
        (["op", "config-get", "max-events"], ["10000 events"]),
        (["stats", "q"], ["q on ", "wait  no job yet"]),
        (["stats", "q", "--tag", "eu"], ["q on ", "tag eu", "wait  no job yet"]),
        (["op", "metrics", "q", "--count", "3"], ["0 completed in 3 minutes."]),
        (["op", "drain", "q"], ["1 canceled, 0 left"]),
        (["cancel", "a"], ["a"]),
        (["op", "delay", "a", "10m"], ["scheduled"]),
        (["op", "tag-add", "a", "x", "y"], ["x", "y"]),
        (["pause", "q", "p"], ["2"]),
        (["pause", "q", "--reason", "deploy", "--for", "1m"], ["1"]),
        (["search", "--queue", "q", "--klass", "A"], ["jid", "a"]),
        (["op", "cancel-many", "--queue", "q", "--preview"], ["1 fit"]),
        (["op", "cancel-many", "--queue", "q"], ["1 canceled"]),
        (["op", "clean", "complete", "--older", "1d"], ["0 deleted"]),
        (["op", "retry-many"], ["0 retried"]),
        (["op", "obliterate", "q"], ["1 deleted"]),
        (["op", "obliterate", "q", "--count", "1"], ["1 deleted"]),
        (["op", "metadata-set", "A", "k", "a text"], ["1"]),
        (["op", "metadata-increment", "A", "n", "--by", "5"], ["5"]),
        (["op", "metadata-get", "A"], ["None."]),
    ],
)
def test_replies_can_be_read(run: Run, arguments: list[str], shown: list[str]) -> None:
    run("put", "q", "A", '{"x": 1}', "--jid", "a")
    done = run(*arguments)

    assert done.code == 0
    for text in shown:
        assert text in done.out


def test_workers_are_shown_with_their_profiles(run: Run) -> None:
    text = written("w", Profile("host", 7, "1.0", "3.12.1", "thread", 4, 0, 10, 20, 1, ("mails",))).value
    for command in (("op", "pop", "q", "--worker", "w"), ("op", "metadata-set", PROFILES, "w", text)):
        run(*command, "--url", "memory://cli-profiles")
    listed = run("workers", "--url", "memory://cli-profiles").out
    shown = run("op", "worker", "w", "--url", "memory://cli-profiles").out
    assert all(part in listed for part in ("host", "slots", "mails"))
    assert "Process 7 on host" in shown


def test_throttles_are_shown_with_their_family(run: Run) -> None:
    run("op", "throttle-set", "tenant-*", "--concurrency", "2", "--url", "memory://cli-family")
    shown = run("op", "throttle-get", "tenant-7", "--url", "memory://cli-family").out
    assert all(part in shown for part in ("tenant-7", "0 of 2", "tenant-*"))


def test_what_goes_through_many_jobs_goes_through_all_unless_one_step_is_asked_for(run: Run) -> None:
    for part in range(3):
        lines = "\n".join(json.dumps({"queue": "q", "klass": "A", "jid": f"{part}-{n}"}) for n in range(1000))
        assert run("op", "put-many", "-", input=lines).code == 0
    assert run("op", "cancel-many", "--queue", "q", "--preview").out == "3000 fit\n"
    assert run("op", "cancel-many", "--queue", "q", "--count", "10").out.startswith(
        "10 canceled\nMore may follow: --cursor"
    )
    assert run("op", "obliterate", "q", "--count", "10").out.startswith(
        "10 deleted, 2980 left\nMore may follow: --cursor"
    )
    assert run("op", "obliterate", "q", "--json").json == {"done": 2980, "passed": 0, "cursor": ""}
    assert run("queues", "--json").json == []


def test_many_jobs_are_put_from_json_lines(run: Run) -> None:
    lines = [{"queue": "q", "klass": "A", "jid": "a"}, {"queue": "q", "klass": "B", "depends": ["a"], "data": "1"}]
    done = run("op", "put-many", "-", input="\n".join(map(json.dumps, lines)))

    assert (done.code, len(done.out.split())) == (0, 2)
    assert run("op", "depending", "q").out.splitlines()[-1] == "1 to 1 of 1"
    wrong = run("op", "put-many", "-", input='{"queue": "q", "klass": "A"}\n{"klas": 1}')
    assert wrong.code == 2
    assert "line 2: put has no klas" in wrong.err
    assert run("op", "length", "q").out == "2\n"


def test_data_may_come_from_the_standard_input(run: Run) -> None:
    run("put", "q", "A", "-", "--jid", "a", input='{"long": true}')

    assert run("get", "a", "--json").json["data"] == '{"long": true}'


def test_data_that_is_not_json_is_put_with_a_note(run: Run) -> None:
    done = run("put", "q", "A", "hello")

    assert done.code == 0
    assert "job.text" in done.err


@pytest.mark.parametrize(
    ("typed", "value"), [("90", 90_000), ("1.5s", 1500), ("10m", 600_000), ("250ms", 250), ("1h30m", 5_400_000)]
)
def test_durations_are_typed_with_units(run: Run, typed: str, value: int) -> None:
    assert run("op", "config-set", "heartbeat", typed, "--json").json == value
    run("put", "q", "A", "--jid", "a", "--delay", typed, "--now", "1000")
    assert run("get", "a", "--json").json["ready_at"] == 1000 + value


@pytest.mark.parametrize("typed", ["", "x", "1x", "5 6", "-1", "1h30", "1.2.3"])
def test_what_is_no_duration_is_not_taken_for_one(run: Run, typed: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(typed)
    done = run("op", "delay", "a", "--", typed)
    assert done.code == 2
    assert "is not a duration" in done.err


def test_durations_survive_being_shown() -> None:
    for ms in (5, 1500, 60_000, 5_400_000, 86_400_000 * 3):
        assert parse_duration(format_duration(ms).replace("min", "m").replace(" ", "")) == ms


def test_what_is_no_moment_is_not_taken_for_one(run: Run) -> None:
    assert parse_moment("yesterday") + 86_400_000 == pytest.approx(parse_moment("now"), abs=1000)
    done = run("stats", "q", "--at", "soon")
    assert done.code == 2
    assert "is not a moment" in done.err


# ---- what goes wrong


def test_a_refusal_exits_with_1_and_says_what_to_do(run: Run) -> None:
    done = run("op", "retry-many", "--group", "g", "--to", "q", "--count", "25")
    assert done.code == 0
    run("put", "q", "A", "--jid", "a")
    done = run("op", "forget", "q")

    assert (done.code, done.out) == (1, "")
    assert "Refused (QUEUE_NOT_EMPTY): Queue q still has jobs: 1." in done.err
    assert "Drain it first" in done.err


def test_a_refusal_in_json_has_code_and_facts(run: Run) -> None:
    done = run("op", "log", "nobody", "hello", "--json")

    assert done.code == 1
    assert done.json["refused"] == "JOB_NOT_FOUND"
    assert done.json["facts"] == {"jid": "nobody"}
    assert done.json["next_step"]


def test_a_job_that_does_not_exist_exits_with_1(run: Run) -> None:
    assert run("get", "nobody") == (1, "There is no job nobody.\n", "")
    assert run("get", "nobody", "--json") == (1, "null\n", "")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["pup", "q"], "Did you mean 'qmodel put' or 'qmodel op pop'?"),
        (["complete_many", "-"], "There is no command 'complete_many'. Did you mean 'qmodel op complete-many'?"),
        (["pop", "q"], "There is no command 'pop'. Did you mean 'qmodel op pop'?"),
        (["op", "pup", "q"], "There is no operation 'pup'. Did you mean 'qmodel op put' or 'qmodel op pop'?"),
        (["xyzzy"], "There is no command 'xyzzy'."),
        (["op", "pop"], "Missing argument 'QUEUE'"),
        (["op", "pop", "q", "--count", "0"], "'--count': it must be a whole number from 1 to 1000."),
        (["op", "pop", "q", "--count", "x"], "--count"),
        (["op", "length", ""], "it must be 1 to 128 bytes"),
        (["op", "config-set", "max-events", "x"], "VALUE"),
        (["put", "q", "A", "--priorty", "1"], "--priority"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_a_hint(run: Run, arguments: list[str], hint: str) -> None:
    done = run(*arguments)

    assert done.code == 2
    assert hint in done.err


@pytest.mark.parametrize("url", ["nowhere://x", "localhost", "memory://a/b", "unix:///tmp/no-such-socket?deadline=0"])
def test_a_backend_that_cannot_be_reached_exits_with_69_and_says_where_the_url_came_from(run: Run, url: str) -> None:
    done = run("op", "length", "q", "--url", url)

    assert done.code == 69
    assert f"The URL was {url} (from --url)." in done.err
    assert "Traceback" not in done.err
    again = run("op", "length", "q", "--url", url, "--json")
    assert again.code == 69
    assert again.json["unreachable"] == url


def test_a_command_says_that_it_tries_to_connect_and_soon_gives_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    at_session = importlib.import_module("qmodel.cli.session")
    monkeypatch.setattr(at_session, "CONNECT_DEADLINE", 0.5)
    monkeypatch.setattr(at_session, "SILENT", 0.05)
    began = time.monotonic()
    done = run("op", "length", "q", "--url", "unix://:secret@/tmp/no-such-socket")

    assert (done.code, time.monotonic() - began < 30) == (69, True)
    assert done.err.startswith("unix://:***@/tmp/no-such-socket does not answer yet; trying again ...\n")
    assert "It was tried again for 0.5 seconds." in done.err


def test_the_url_may_come_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMODEL_URL", "nowhere://user:secret@x")
    done = run("op", "length", "q")

    assert done.code == 69
    assert "nowhere://user:***@x (from QMODEL_URL)" in done.err
    assert "secret" not in done.err


def test_passwords_are_not_shown() -> None:
    assert without_password("redis://:pass@h/0") == "redis://:***@h/0"
    assert without_password("redis://h/0") == "redis://h/0"


def test_a_store_that_is_gone_at_once_is_told_of(run: Run) -> None:
    assert "memory:// lives only as long as this process" in run("put", "q", "A", "--url", "memory://").err
    assert run("op", "length", "q", "--url", "memory://").err == ""


def test_nothing_is_put_where_nobody_can_find_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL")
    done = run("put", "q", "A")
    assert done.code == 2 and "would be lost when this command ends" in done.err
    assert run("op", "length", "q").code == 0


def test_a_worker_that_no_jobs_can_reach_does_not_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL")
    done = run("worker", "tests.worker.jobs:app")
    assert done.code == 2 and "jobs that nobody can put" in done.err


# ---- for real


def real(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qmodel", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


def test_a_real_process_says_its_version_and_exits_well() -> None:
    assert real("--version").stdout == f"qmodel {qmodel.__version__}\n"
    assert real("op", "length", "q").stdout == "0\n"
    assert real("wrok").returncode == 2
    assert real("op", "length", "q", QMODEL_URL="no://").returncode == 69
    assert "The URL was no:// (from --url)." in real("op", "length", "q", "--url", "no://").stderr


def test_a_pipe_that_is_closed_is_not_an_accident() -> None:
    done = subprocess.run(
        f"{sys.executable} -m qmodel --help | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


def test_help_is_quick_for_it_imports_nothing_slow() -> None:
    code = (
        "import sys\nfrom qmodel.cli import cli\ncli(['--help'], standalone_mode=False)\n"
        "slow = {'rich', 'redis', 'asyncio', 'lupa', 'pyspark', 'hypothesis'} & set(sys.modules)\n"
        "print('SLOW', sorted(slow))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "SLOW []"


def test_importing_qmodel_alone_imports_nothing_of_it() -> None:
    code = "import sys, qmodel; print([m for m in sys.modules if m.startswith('qmodel.')], 'typing' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[] False\n"


def test_every_command_is_a_click_command() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert isinstance(cli.get_command(context, name), click.Command)


def test_a_job_is_put_for_an_iso_time_with_a_zone(run: Run) -> None:
    assert run("put", "q", "K", "--jid", "a", "--at", "2126-01-31T12:00:00+01:00").code == 0
    assert run("--json", "get", "a").json["ready_at"] == 4_925_530_800_000
    naive = run("put", "q", "K", "--at", "2126-01-31T12:00:00")
    assert naive.code == 2 and "has no time zone: add Z for UTC, or an offset such as +01:00" in naive.err
    both = run("put", "q", "K", "--at", "2126-01-31T12:00:00Z", "--delay", "5s")
    assert both.code != 0 and "give at or delay, not both" in both.err


def test_a_complete_job_is_deleted_by_its_id(run: Run) -> None:
    run("put", "q", "K", "--jid", "a")
    run("op", "pop", "q")
    run("op", "complete", "a")
    assert run("--json", "cancel", "a").json == []
    assert run("--json", "cancel", "a", "--complete").json == ["a"]
