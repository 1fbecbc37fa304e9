"""The journals of namespaces as an archive, and the states from which an audit of them may begin.

It is an archive as `qmodel.pipeline.archive.layout` describes it, in a folder of its own: what is a sequence there is
the number of an entry here. A file is sorted by that. Beside the entries there are states:

    <root>/namespace=ql%3A/_states/000000100000.json.gz      the state after entry 100,000

Those that were taken from the server cut a journal into segments that can be audited side by side: each begins with a
state and has to end with the next, so all of it is proved. The state with which an audit ended is one, too.
"""

from __future__ import annotations

import gzip
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.parquet as pq
from pyarrow import fs

from qmodel.client.sync import Client
from qmodel.contract.replies import Recorded
from qmodel.model import restore
from qmodel.model.snapshot import Snapshot
from qmodel.pipeline.archive.commit import Writer, sync, writing
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit, File, folder_of
from qmodel.pipeline.archive.write import GROUP, days, namespace_of
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.journal.pages import JournalWentBack, newest, pages
from qmodel.pipeline.journal.tables import COLUMNS, VERSION, entries_of, table

STATES = "_states"

BATCH = 5_000
"""So many entries of a file are made at a time."""

ROWS = 100_000
"""How many entries are committed together."""

_STATE = re.compile(r"(\d+)\.json\.gz")


def archive(url: str, root: str, *, namespace: str = "", rows: int = ROWS) -> Iterator[tuple[int, int]]:
    """Add to an archive the entries that it has not; after each commit gives the last number in it and how many came.

    `namespace` is the name there, by default what the keys begin with. Raises EntriesGone where the server keeps no
    longer what was to be archived next, JournalWentBack where the archive is ahead of it, and ArchiveError where there
    is no name, or another one writes to it.
    """
    with Client(url) as client:
        namespace = namespace or namespace_of(client)
        if not namespace:
            raise ArchiveError(f"{url} has no prefix: give the namespace a name under which the archive keeps it.")
        with writing(Archive(root), namespace) as writer:
            last, until = writer.archive.last(namespace), newest(client)
            if until < last:
                raise JournalWentBack(last)
            found: list[Recorded] = []
            for page in pages(client, last, until):
                found += page
                if len(found) >= rows or page[-1].number == until:
                    _add(writer, namespace, table(found))
                    yield found[-1].number, len(found)
                    found = []


def _add(writer: Writer, namespace: str, added: pa.Table) -> None:
    folder = writer.begin()
    moves = []
    for day, part in sorted(days(added).items()):
        numbers = part.column("number")
        path = f"{numbers[0]}-{day}.part"
        whole = writer.archive.at(f"{folder}/{path}")
        with writer.archive.fs.open_output_stream(whole) as out:
            pq.write_table(part, out, row_group_size=GROUP, compression="zstd")
        if writer.archive.local:
            sync(whole)
        moves.append(
            (path, File(namespace, day, numbers[0].as_py(), numbers[-1].as_py(), part.num_rows, VERSION, path).name)
        )
    writer.commit(folder, Commit(tuple(moves)))


def read(root: str, namespace: str, after: int = 0, last: int | None = None) -> Iterator[Recorded]:
    """The archived entries of a namespace after a number, up to another, in their order.

    Of files that have entries of each other's range, as where clocks went back over midnight, several are read at once.
    """
    found = Archive(root)
    together: list[File] = []
    for file in [*found.files(namespace, after=after, last=last), None]:
        if together and (file is None or file.first > max(one.last for one in together)):
            yield from _between(found, together, after, last)
            together = []
        if file is not None:
            together.append(file)


def _between(found: Archive, files: list[File], after: int, last: int | None) -> Iterator[Recorded]:
    """The entries of files, of which each begins before another one ends."""
    for batch in _ordered(found, files):
        numbers, rows = batch.column("number"), range(batch.num_rows)
        begin = bisect_right(rows, after, key=lambda row: numbers[row].as_py())
        end = len(rows) if last is None else bisect_right(rows, last, key=lambda row: numbers[row].as_py())
        yield from entries_of(batch.slice(begin, max(end - begin, 0)))


def _ordered(found: Archive, files: list[File]) -> Iterator[pa.RecordBatch]:
    """Their batches, few rows at a time: texts as Python has them take more memory than a file."""
    if len(files) == 1:
        with found.fs.open_input_file(files[0].path) as opened:
            yield from pq.ParquetFile(opened).iter_batches(BATCH, columns=COLUMNS)
        return
    tables = []
    for one in files:
        with found.fs.open_input_file(one.path) as opened:
            tables.append(pq.ParquetFile(opened).read(columns=COLUMNS, use_threads=False))
    yield from pa.concat_tables(tables).sort_by("number").to_batches(max_chunksize=BATCH)


# ---- states


class Segment(NamedTuple):
    """Entries after one, up to another (0: the last); they begin with a state, and end with that of the next."""

    namespace: str
    after: int
    last: int


def states(root: str, namespace: str) -> list[int]:
    """The numbers of the entries after which a state is kept."""
    found = Archive(root)
    where = fs.FileSelector(found.at(f"{folder_of(namespace)}/{STATES}"), allow_not_found=True)
    matches = (_STATE.fullmatch(one.base_name) for one in found.fs.get_file_info(where))
    return sorted(int(match[1]) for match in matches if match)


def keep(root: str, namespace: str, state: Snapshot) -> int:
    """Keep a state with a journal; gives the number of the entry after which it was."""
    found = Archive(root)
    folder = f"{folder_of(namespace)}/{STATES}"
    found.fs.create_dir(found.at(folder), recursive=True)
    path = found.at(f"{folder}/{state.journaled:012}.json.gz")
    with found.fs.open_output_stream(f"{path}.part", compression=None) as out:
        out.write(gzip.compress(restore.dumps(state).encode(), 3))
    found.fs.move(f"{path}.part", path)
    return state.journaled


def state(root: str, namespace: str, number: int) -> Snapshot:
    """The state after an entry. Raises ValueError where it is damaged or of another version."""
    found = Archive(root)
    path = found.at(f"{folder_of(namespace)}/{STATES}/{number:012}.json.gz")
    with found.fs.open_input_stream(path, compression=None) as file:
        return restore.loads(gzip.decompress(file.read()).decode())


def segments(root: str, namespace: str, after: int = 0) -> list[Segment]:
    """The segments of a namespace from the first state on that is not before an entry; the beginning is one, too.

    Raises ArchiveError where there is none to begin with.
    """
    files = Archive(root).files(namespace)
    if not files:
        return []
    first, last = files[0].first - 1, max(file.last for file in files)
    known = {number for number in states(root, namespace) if first <= number < last}
    starts = sorted(number for number in known | ({0} if first == 0 else set()) if number >= after)
    if not starts and last > after:
        raise ArchiveError(
            f"The archive {root} has the entries {first + 1} to {last} of {namespace!r}, and no state to begin with "
            f"after {after}. Keep one with `qmodel journals {root} --take`, while the journal is on."
        )
    return [Segment(namespace, start, end) for start, end in zip(starts, [*starts[1:], 0], strict=False)]


def all_segments(root: str, after: int = 0) -> list[Segment]:
    """The segments of all namespaces, the longest first: begun so, the last of them end at about the same time."""
    archive = Archive(root)
    found = [one for namespace in archive.namespaces() for one in segments(root, namespace, after)]
    return sorted(found, key=lambda one: (one.last or archive.last(one.namespace)) - one.after, reverse=True)
