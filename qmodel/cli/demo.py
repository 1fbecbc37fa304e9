"""`qmodel demo`: count the lines, words and characters of a folder, as jobs.

One job per file (`CountFile`, larger files first). In a second queue, one job per folder that depends on its files
(`SumFolder`), and one that depends on all folders (`SumAll`). Two workers pop from both queues, sums first. Each run
has its own queues: a worker that runs already must not get jobs before their dependencies are set.

A file that cannot be read or decoded fails into a group, and a failed job would block its folder for ever. This
application sums a folder without its failed files: the worker first removes the file from the folder's dependencies,
then fails it. In this order a worker that is killed in between does no harm.

Symbolic links are not followed, so there are no loops. Binary files (by git's rule: a zero among the first 8000 bytes)
are skipped. At the end everything is counted once more, without the queue and in another way.
"""

from __future__ import annotations

import os
import secrets
import stat
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import click

from qmodel.backends import BUILT_IN
from qmodel.cli import picture, without_password
from qmodel.cli.convert import format_duration
from qmodel.cli.session import Session, common, session
from qmodel.client.sync import Client, Job
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import DependsOff, DependsOn, Put
from qmodel.errors import LockLost, RefusedError
from qmodel.present.numbers import counted

GROUPS = {"demo-undecodable": "not UTF-8", "demo-unreadable": "cannot be read"}
WORKERS = 2
BATCH = 32
SNIFFED = 8000
LARGE = 1 << 25


class Count(NamedTuple):
    """What is counted."""

    files: int = 0
    lines: int = 0
    words: int = 0
    characters: int = 0


def total(counts: Iterable[Sequence[int]]) -> Count:
    """The sum of counts."""
    return Count(*map(sum, zip(*(Count(), *counts), strict=True)))


# ---- the files


@dataclass
class Folder:
    """A folder, and the positions of its text files in the list of all."""

    path: str
    first: int
    count: int = 0


@dataclass
class Tree:
    """The text files below a folder, folder by folder, and the skipped files."""

    files: list[tuple[str, int]] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
NOT_STANDARD = {"site-packages", "dist-packages", "__pycache__"}


def explore(top: str) -> Tree:
    """Find the text files below a folder."""
    tree = Tree()

    def unreadable(error: OSError) -> None:
        tree.skipped["folders that cannot be read"] += 1

    for path, names, files in os.walk(top, onerror=unreadable):
        if top == STANDARD_LIBRARY:
            names[:] = sorted(set(names) - NOT_STANDARD)
        tree.skipped["symbolic links"] += sum(os.path.islink(os.path.join(path, n)) for n in names)
        folder = Folder(path, len(tree.files))
        for name in sorted(files):
            file = os.path.join(path, name)
            kind, size = look_at(file)
            if kind:
                tree.skipped[kind] += 1
            else:
                tree.files.append((file, size))
        folder.count = len(tree.files) - folder.first
        tree.folders.append(folder)
    tree.skipped = +tree.skipped
    return tree


def look_at(file: str) -> tuple[str, int]:
    """Give the reason to skip a file, if any, and its size. An unreadable file is not skipped: its job fails."""
    try:
        found = os.lstat(file)
        if stat.S_ISLNK(found.st_mode):
            return "symbolic links", 0
        if not stat.S_ISREG(found.st_mode):
            return "special files", 0
        with open(file, "rb") as opened:
            return "binary files" if b"\0" in opened.read(SNIFFED) else "", found.st_size
    except OSError:
        return "", 0


def count_at_once(file: str) -> Count:
    """Count a file by reading it whole, unless it is large."""
    if os.path.getsize(file) > LARGE:
        return count_by_line(file)
    with open(file, "rb") as opened:
        text = opened.read().decode()
    return Count(
        1,
        text.count("\n") + (text != "" and not text.endswith("\n")),
        len(text.split()),
        len(text),
    )


def count_by_line(file: str) -> Count:
    """Count a file line by line: the slower check."""
    lines = words = characters = 0
    with open(file, encoding="utf-8", newline="\n") as opened:
        for line in opened:
            lines += 1
            words += len(line.split())
            characters += len(line)
    return Count(1, lines, words, characters)


# ---- the jobs


class Plan:
    """The jobs of one run."""

    def __init__(self, client: Client, tree: Tree) -> None:
        self.client = client
        self.tree = tree
        self.run = "demo-" + secrets.token_hex(4)
        self.total = f"{self.run}-total"
        self.files = client.queues[f"{self.run}-files"]
        self.sums = client.queues[f"{self.run}-sums"]

    def folder(self, index: int) -> str:
        """Give the id of a folder's job."""
        return f"{self.run}-folder-{index}"

    def file(self, index: int) -> str:
        """Give the id of a file's job."""
        return f"{self.run}-file-{index}"

    def put(self) -> None:
        """Put all jobs, from the top down.

        The check for cycles looks at no more than 1000 jobs below a new dependency. So the total is made to wait for
        folders that do not wait for files yet; then each folder is put again, with its files.
        """
        client, tree = self.client, self.tree
        folders = [self.folder(index) for index in range(len(tree.folders))]
        kept = len(tree.files) + len(folders) + 1
        if kept > client.config["jobs-history-count"]:
            client.config["jobs-history-count"] = kept
        self._put_many([self._sum_folder(index) for index in range(len(folders))])
        data = {"jids": self.run + "-folder-", "first": 0, "count": len(folders)}
        self._put_waiting(self.sums.new("SumAll", data, priority=1, jid=self.total), folders)
        self._put_many([self._count_file(i, f) for f, one in enumerate(tree.folders) for i in _range(one)])
        for index, folder in enumerate(tree.folders):
            if folder.count:
                self._put_waiting(self._sum_folder(index), [self.file(i) for i in _range(folder)])

    def _sum_folder(self, index: int) -> Put:
        folder = self.tree.folders[index]
        data = {"jids": self.run + "-file-", "first": folder.first, "count": folder.count}
        data["folder"] = folder.path
        return self.sums.new("SumFolder", data, jid=self.folder(index))

    def _count_file(self, index: int, folder: int) -> Put:
        path, size = self.tree.files[index]
        return self.files.new(
            "CountFile",
            {"path": path, "folder": self.folder(folder)},
            priority=-size.bit_length(),
            jid=self.file(index),
        )

    def _put_many(self, jobs: list[Put]) -> None:
        for start in range(0, len(jobs), MOST):
            self.client.put_many(jobs[start : start + MOST])

    def _put_waiting(self, job: Put, others: list[str]) -> None:
        """Put a job that waits for any number of others, 1000 at a time."""
        job = replace(job, depends=tuple(others[:MOST]))
        more = [DependsOn(job.jid, tuple(others[i : i + MOST])) for i in range(MOST, len(others), MOST)]
        for reply in self.client.execute_many([job, *more]):
            if isinstance(reply, RefusedError):
                raise reply


def _range(folder: Folder) -> range:
    return range(folder.first, folder.first + folder.count)


# ---- the workers


class Workers:
    """Threads that run jobs until they are stopped."""

    def __init__(self, plan: Plan, count: int = WORKERS) -> None:
        self.client = plan.client
        self._queues = [plan.sums.name, plan.files.name]
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._at_work: set[threading.Thread] = set()
        self._threads = [
            threading.Thread(target=self._work, name=f"demo-{number}", daemon=True) for number in range(1, count + 1)
        ]

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """Stop them after the jobs that they hold."""
        self._stop.set()

    def __exit__(self, *error: object) -> None:
        """Wait until they have finished the jobs that they hold, but not for idle ones."""
        self.stop()
        for thread in list(self._at_work):
            thread.join(5)

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                jobs = self.client.pop(self._queues, BATCH, timeout=1)
                self._at_work.add(threading.current_thread())
                self._perform(jobs)
                self._at_work.discard(threading.current_thread())
        except Exception as error:
            self.error = self.error or (None if self._stop.is_set() else error)

    def _perform(self, jobs: list[Job]) -> None:
        done = []
        for job in jobs:
            try:
                done.append((job, perform(self.client, job)))
            except UnicodeDecodeError as error:
                self._fail(job, "demo-undecodable", f"{job.data['path']}: {error}")
            except OSError as error:
                self._fail(job, "demo-unreadable", str(error))
        try:
            self.client.complete_many(done)
        except LockLost:  # one took too long; the others are done all the same
            for job, result in done:
                _unless_lost(job, result)

    def _fail(self, job: Job, group: str, message: str) -> None:
        (without,) = self.client.execute_many([DependsOff(job.data["folder"], (job.jid,))])
        if isinstance(without, RefusedError) and without.code not in ("WRONG_STATE", "JOB_NOT_FOUND"):
            raise without
        try:
            job.fail(group, message.encode(errors="backslashreplace").decode())
        except LockLost:
            return


def _unless_lost(job: Job, result: object) -> None:
    try:
        job.complete(result)
    except LockLost:
        return


def perform(client: Client, job: Job) -> Count:
    """Run a job: count a file, or sum the counts of its dependencies."""
    data = job.data
    if job.klass == "CountFile":
        return count_at_once(data["path"])
    jids = [f"{data['jids']}{data['first'] + i}" for i in range(data["count"])]
    return total(done.result for done in client.jobs.get_many(jids) if done.state == "complete")


# ---- progress


class Progress(NamedTuple):
    """The progress of the jobs."""

    files: int
    folders: int
    failed: int
    running: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{counted(self.files, 'file')} counted, {counted(self.folders, 'folder')} summed, "
            f"{self.failed:,} failed ({self.seconds:.1f} s)"
        )


def watch(plan: Plan, workers: Workers, every: float) -> Iterator[Progress]:
    """Give the progress of the jobs, until all have ended or a worker has failed."""
    began = time.monotonic()
    before = plan.client.failed.groups(0, MOST)
    done = False
    while not done and workers.error is None:
        time.sleep(every)
        done = plan.client.jobs[plan.total].state == "complete"
        files, folders = plan.files.counts, plan.sums.counts
        groups = plan.client.failed.groups(0, MOST)
        left = files.waiting + files.running + files.stalled
        left_folders = folders.waiting + folders.running + folders.depends + folders.stalled
        yield Progress(
            max(len(plan.tree.files) - left, 0),
            max(len(plan.tree.folders) + 1 - max(left_folders, 1), 0),
            sum(groups.get(name, 0) - before.get(name, 0) for name in GROUPS),
            files.running + folders.running,
            time.monotonic() - began,
        )
    if workers.error is not None:
        raise workers.error


def show_live(at: Session, plan: Plan, workers: Workers) -> None:
    """Draw the progress in the terminal, in place."""
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Table

    bars = Bars(TextColumn("{task.description:<8}"), BarColumn(40), MofNCompleteColumn())
    files = bars.add_task("files", total=len(plan.tree.files))
    folders = bars.add_task("folders", total=len(plan.tree.folders))
    with Live(bars, console=at.console(), refresh_per_second=10) as live:
        for one in watch(plan, workers, 0.1):
            bars.update(files, completed=one.files)
            bars.update(folders, completed=one.folders)
            drawn = Table.grid()
            drawn.add_row(bars)
            rate = one.files / one.seconds if one.seconds else 0
            drawn.add_row(f"{one.running} running, {one.failed} failed, {rate:,.0f} files a second")
            live.update(drawn)


def show_lines(plan: Plan, workers: Workers) -> None:
    """Write the progress about once a second."""
    shown = 0.0
    for one in watch(plan, workers, 0.05):
        if one.seconds - shown >= 1:
            shown = one.seconds
            click.echo(f"  {one}")
    click.echo(f"  {one}")


# ---- the whole


@click.command("demo")
@click.argument(
    "folder",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    default=STANDARD_LIBRARY,
    metavar="[FOLDER]",
)
def command(folder: str) -> None:
    """Count lines, words and characters of every text file below FOLDER, as jobs.

    By default FOLDER is Python's standard library. It needs no server; with --url redis://... it uses a
    server, with keys of its own. Exit code 1 if a direct count gives another result.
    """
    at = session()
    at.url = separate(at.url)
    say = (lambda *_: None) if at.json else click.echo
    say(f"Looking for text files below {os.fsencode(folder).decode(errors='backslashreplace')}")
    tree = explore(folder)
    say(f"  {len(tree.files):,} text files in {len(tree.folders):,} folders")
    if tree.skipped:
        passed = ", ".join(f"{number:,} {kind}" for kind, number in sorted(tree.skipped.items()))
        say(f"  skipped: {passed}")

    client = at.client
    plan = Plan(client, tree)
    began = time.monotonic()
    plan.put()
    put_after = time.monotonic() - began
    jobs = len(tree.files) + len(tree.folders) + 1
    say(f"Put {jobs:,} jobs in {put_after:.2f} s on {without_password(at.url)}")

    say(f"{WORKERS} workers take them")
    began = time.monotonic()
    with Workers(plan) as workers:
        perform_all(at, plan, workers)
        workers.stop()
        seconds = time.monotonic() - began
        counted = Count(*client.jobs[plan.total].result)
        say("Counting the same files directly, without the queue")
        direct, failed = count_directly(tree)
    report(at, plan, counted, direct, failed, seconds)


def separate(url: str) -> str:
    """Add a prefix for the demo to the URL of a server that has no prefix."""
    scheme = url.partition("://")[0]
    if BUILT_IN.get(scheme, ("",))[0] != "qmodel.backends.redis.connect" or "prefix=" in url:
        return url
    return url + ("&" if "?" in url else "?") + "prefix=qmodel-demo:"


def perform_all(at: Session, plan: Plan, workers: Workers) -> None:
    """Wait for the total, and show the progress."""
    if at.json:
        for _ in watch(plan, workers, 0.05):
            pass
    elif at.console().is_terminal:
        show_live(at, plan, workers)
    else:
        show_lines(plan, workers)


def count_directly(tree: Tree) -> tuple[Count, dict[str, str]]:
    """Count the same files without the queue, and name those that cannot be counted."""
    counts = []
    failed = {}
    for path, _ in tree.files:
        try:
            counts.append(count_by_line(path))
        except (UnicodeDecodeError, OSError) as error:
            failed[path] = str(error)
    return total(counts), failed


def report(at: Session, plan: Plan, counted: Count, direct: Count, failed: dict[str, str], seconds: float) -> None:
    """Print the result; exit with 1 if a direct count gives another one."""
    agrees = counted == direct and counted.files + len(failed) == len(plan.tree.files)
    if at.json:
        found = {"counted": counted._asdict(), "direct": direct._asdict(), "agrees": agrees}
        found |= {"failed": failed, "skipped": dict(plan.tree.skipped), "seconds": seconds}
        at.answer({**found, "folders": len(plan.tree.folders), "run": plan.run})
    else:
        _report(at, plan, counted, direct, failed, seconds, agrees)
    if not agrees:
        raise click.exceptions.Exit(1)


def _report(
    at: Session,
    plan: Plan,
    counted: Count,
    direct: Count,
    failed: dict[str, str],
    seconds: float,
    agrees: bool,
) -> None:
    _show_failed(at, plan)
    click.echo()
    for name, number in counted._asdict().items():
        click.secho(f"{name:>12} {number:>15,}", bold=True)
    click.echo(f"in {format_duration(seconds * 1000)}.")
    if agrees:
        click.secho("Verified: a direct count of the same files gives the same result.", fg="green")
    else:
        click.secho(f"NOT the same as a direct count: {direct}, {len(failed)} failed", fg="red")
    for queue in (plan.files, plan.sums):
        click.echo()
        waits, runs = _durations(plan.client, queue.name)
        click.echo(picture.of(queue.stats(), waits, runs))
    click.echo()
    if at.url != "memory://":
        click.echo(f"Look around: export QMODEL_URL='{without_password(at.url)}'; qmodel queues")
    click.echo("Next: qmodel --help, or in Python: qmodel.connect().queues['emails'].put('Send', {'to': 1})")


def _durations(client: Client, queue: str) -> tuple[list[int], list[int]]:
    """Give the waiting and running times of single jobs of a queue, as far as events are kept."""
    found: dict[str, list[int]] = {"popped": [], "completed": []}
    for event in client.events():
        if event.event in found and event.named["queue"] == queue:
            facts = event.named
            found[event.event].append(int(facts.get("wait_ms", facts.get("run_ms", 0))))
    return found["popped"], found["completed"]


def _show_failed(at: Session, plan: Plan, most: int = 5) -> None:
    """Show the jobs of this run that failed, by group."""
    for group, meaning in GROUPS.items():
        listing = plan.client.failed.jobs(group, 0, MOST)
        ours = [job for job in listing if job.jid.startswith(plan.run)]
        if not ours:
            continue
        click.echo()
        click.secho(f"{counted(len(ours), 'file')} failed into {group} ({meaning}):", fg="yellow")
        for job in ours[:most]:
            failure = job.failure
            click.echo(f"  {failure.message if failure else job.jid}")
        if len(ours) > most:
            click.echo(f"  and {len(ours) - most:,} more")
        click.echo("  Their folders were summed without them: their dependencies were removed.")


common(command)
