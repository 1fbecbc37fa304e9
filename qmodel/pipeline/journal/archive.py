"""Archive the journals of namespaces, with states that an audit can start from.

The archive has the layout of `qmodel.pipeline.archive.layout`, in a folder of its own. The number of an entry takes the
part of the sequence, and files are sorted by it. States are kept beside the entries:

    <root>/namespace=ql%3A/_states/000000100000.json.gz      the state after entry 100,000

States taken from the server cut a journal into segments, which can be audited in parallel. Each segment begins with a
state and must end with the next one, so the whole journal is proved. The state at the end of an audit is kept as well.
"""

from __future__ import annotations

import gzip
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import pyarrow.parquet as pq
from pyarrow import fs

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.replies import Recorded
from qmodel.model import restore
from qmodel.model.snapshot import Snapshot
from qmodel.pipeline.archive.commit import Overtaken, Writer, sync, writing
from qmodel.pipeline.archive.forks import Moved, Rows, joined
from qmodel.pipeline.archive.kinds import JOURNAL, opened
from qmodel.pipeline.archive.layout import LOST, Archive, ArchiveError, Commit, File, folder_of
from qmodel.pipeline.archive.read import reading
from qmodel.pipeline.archive.write import GROUP, days, namespace_of
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import STOP, Position
from qmodel.pipeline.journal.pages import JournalWentBack, Row, pages, position
from qmodel.pipeline.journal.tables import COLUMNS, VERSION, current, rows_of, table

STATES = "_states"

BATCH = 5_000
"""The number of entries that are read from a file at a time."""

ROWS = 100_000
"""The number of entries in one commit."""

_STATE = re.compile(r"(\d+)\.json\.gz")


def write_file(archive: Archive, folder: str, namespace: str, day: str, part: pa.Table) -> File:
    """Write entries of one day to a work folder; `path` is the name below that folder."""
    numbers = part.column("number")
    first, last = numbers[0].as_py(), numbers[-1].as_py()
    path = f"{first}-{day}.part"
    whole = archive.at(f"{folder}/{path}")
    with archive.fs.open_output_stream(whole) as out:
        pq.write_table(part, out, row_group_size=GROUP, compression="zstd")
    if archive.local:
        sync(whole)
    return File(namespace, day, first, last, part.num_rows, VERSION, path, part.column("epoch")[-1].as_py())


ENTRIES = Rows("entry", "number", write_file, current)
"""The rows of an archive of journals."""


def archive(
    url: str, root: str, *, namespace: str = "", rows: int = ROWS, on_fork: str = STOP, skip_gaps: bool = False
) -> Iterator[tuple[int, int]]:
    """Add new entries to an archive; after each commit yield the number of the last entry, and how many were added.

    `namespace` is the name in the archive, by default the prefix of the keys. Raises ArchiveForked if the server has
    lost entries that are archived; with `on_fork` "keep", moves these and the states after them to `_lost`, and
    continues after the newest common entry. Raises EntriesGone if the server no longer keeps the next entries; with
    `skip_gaps`, records these as a hole and continues. Raises JournalWentBack if the archive is ahead of the server,
    and ArchiveError if there is no name. Another archiver may work beside this one.
    """
    with Client(url) as client:
        namespace = namespace or namespace_of(client)
        if not namespace:
            raise ArchiveError(f"{url} has no prefix: give a name for the namespace in the archive.")
        with writing(opened(root, JOURNAL), namespace) as writer:
            overtaken = Position(-1, None)
            while True:
                try:
                    yield from _entries(client, writer, rows, on_fork, skip_gaps)
                    return
                except Overtaken:  # by another archiver: go on after what it added
                    before, overtaken = overtaken, writer.archive.position(namespace)
                    if before == overtaken:
                        raise


def _entries(client: Client, writer: Writer, rows: int, on_fork: str, skip_gaps: bool) -> Iterator[tuple[int, int]]:
    """Add the entries up to the newest one, as `archive` does. Raises Overtaken."""
    namespace = writer.namespace
    after, _ = joined(client, ops.Journal, writer, namespace, ENTRIES, on_fork, _states_after)
    until, last_epoch = position(client)
    if until < after.number:
        raise JournalWentBack(after.number)
    found, gaps = list[Recorded](), list[Gap]()
    asked = gaps if skip_gaps else None
    for page in pages(client, after.number, until, epoch=after.epoch, last_epoch=last_epoch, gaps=asked):
        found += page
        if len(found) >= rows or page[-1].number == until:
            _add(writer, namespace, table(found), after, tuple(gaps))
            yield found[-1].number, len(found)
            after = Position(found[-1].number, found[-1].epoch)
            found = []
            gaps.clear()


def _add(writer: Writer, namespace: str, added: pa.Table, after: Position, holes: tuple[Gap, ...]) -> None:
    folder = writer.begin()
    parts = sorted(days(added).items())
    files = [write_file(writer.archive, folder, namespace, day, part) for day, part in parts]
    writer.commit(folder, Commit(tuple((file.path, file.name) for file in files), (), holes), after)


def _states_after(archive: Archive, folder: str, namespace: str, number: int) -> Moved:
    """Copy the states after an entry to a work folder: they are of the history that the server lost."""
    moves, removes = [], []
    for one in states(archive.root, namespace):
        if one > number:
            name, path = _state_name(one), f"state-{one}.part"
            with archive.fs.open_input_stream(
                archive.at(f"{folder_of(namespace)}/{STATES}/{name}"), compression=None
            ) as file:
                data = file.read()
            with archive.fs.open_output_stream(archive.at(f"{folder}/{path}"), compression=None) as out:
                out.write(data)
            if archive.local:
                sync(archive.at(f"{folder}/{path}"))
            epoch = _loaded(data).epoch
            moves.append((path, f"{folder_of(namespace)}/{LOST}/{STATES}/{epoch}-{name}"))
            removes.append(f"{folder_of(namespace)}/{STATES}/{name}")
    return moves, removes


def _state_name(number: int) -> str:
    return f"{number:012}.json.gz"


def read(root: str, namespace: str, after: int = 0, last: int | None = None) -> Iterator[Recorded]:
    """Give the archived entries of a namespace after a number, up to another, in order."""
    return map(Recorded._make, rows(root, namespace, after, last))


def rows(root: str, namespace: str, after: int = 0, last: int | None = None) -> Iterator[Row]:
    """Give the same entries as plain tuples."""
    return chain.from_iterable(map(rows_of, _batches(root, namespace, after, last)))


def _batches(root: str, namespace: str, after: int, last: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of entries; files that overlap, as when a clock went back over midnight, are read together."""
    found = Archive(root)
    together: list[File] = []
    for file in [*found.files(namespace, after=after, last=last), None]:
        if together and (file is None or file.first > max(one.last for one in together)):
            yield from _between(found, together, after, last)
            together = []
        if file is not None:
            together.append(file)


def _between(found: Archive, files: list[File], after: int, last: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that overlap."""
    for batch in _ordered(found, files):
        numbers, places = batch.column("number"), range(batch.num_rows)
        begin = bisect_right(places, after, key=lambda place: numbers[place].as_py())
        end = len(places) if last is None else bisect_right(places, last, key=lambda place: numbers[place].as_py())
        yield batch.slice(begin, max(end - begin, 0))


def _ordered(found: Archive, files: list[File]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files in small batches: as Python strings, the texts of a whole file take more memory."""
    if len(files) == 1:
        with reading(found, files[0]) as opened:
            for batch in pq.ParquetFile(opened).iter_batches(BATCH, columns=COLUMNS):
                yield from current(pa.Table.from_batches([batch])).select(COLUMNS).to_batches()
        return
    tables = []
    for one in files:
        with reading(found, one) as opened:
            tables.append(current(pq.ParquetFile(opened).read(columns=COLUMNS, use_threads=False)).select(COLUMNS))
    yield from pa.concat_tables(tables).sort_by("number").to_batches(max_chunksize=BATCH)


# ---- states


class Segment(NamedTuple):
    """The entries after a number, up to another (0: the last). It begins with a state, and ends with the next one's, or
    where entries are lost.
    """

    namespace: str
    after: int
    last: int


def states(root: str, namespace: str) -> list[int]:
    """List the numbers of the entries with a kept state."""
    found = Archive(root)
    where = fs.FileSelector(found.at(f"{folder_of(namespace)}/{STATES}"), allow_not_found=True)
    matches = (_STATE.fullmatch(one.base_name) for one in found.fs.get_file_info(where))
    return sorted(int(match[1]) for match in matches if match)


def keep(root: str, namespace: str, state: Snapshot) -> int:
    """Keep a state beside a journal; give the number of the entry before it."""
    found = Archive(root)
    folder = f"{folder_of(namespace)}/{STATES}"
    found.fs.create_dir(found.at(folder), recursive=True)
    path = found.at(f"{folder}/{_state_name(state.journaled)}")
    with found.fs.open_output_stream(f"{path}.part", compression=None) as out:
        out.write(restore.pack(state))
    found.fs.move(f"{path}.part", path)
    return state.journaled


def state(root: str, namespace: str, number: int) -> Snapshot:
    """Read the state after an entry. Raises ValueError if it is damaged or has another version."""
    found = Archive(root)
    path = found.at(f"{folder_of(namespace)}/{STATES}/{_state_name(number)}")
    with found.fs.open_input_stream(path, compression=None) as file:
        return _loaded(file.read())


def _loaded(data: bytes) -> Snapshot:
    """Read a state. Raises ValueError if it is damaged."""
    try:
        return restore.unpack(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"The state is damaged: {error}.") from error


def segments(root: str, namespace: str, after: int = 0) -> list[Segment]:
    """List the segments of a namespace, from the first state at or after an entry; the start counts as a state.

    Raises ArchiveError if there is no state to begin with.
    """
    files, holes = Archive(root).files(namespace), Archive(root).holes(namespace)
    if not files:
        return []
    first, last = files[0].first - 1, max(file.last for file in files)
    kept = states(root, namespace)
    known = {number for number in kept if first <= number < last} | ({0} if first == 0 else set())
    lost = [(hole.first - 1, hole.last) for hole in holes]
    starts = sorted(n for n in known if n >= after and not any(low <= n < high for low, high in lost))
    if not starts and last > after and last not in kept:  # a state at the end is for the entries to come
        raise ArchiveError(
            f"The archive {root} has the entries {first + 1} to {last} of {namespace!r}, and no state to begin with "
            f"after {after}. Keep one with `qmodel archive run ARCHIVE --journal --take`, while the journal is on."
        )
    ends = [
        min(low for low in (*starts[at:], *(low for low, _ in lost), last) if low > start)
        for at, start in enumerate(starts)
    ]
    return [Segment(namespace, start, 0 if end == last else end) for start, end in zip(starts, ends, strict=True)]


def left_out(root: str, found: Sequence[Segment], namespace: str, after: int = 0) -> list[Gap]:
    """List the entries of a namespace after a number that no segment has: lost, or without a state before them."""
    last, gaps = Archive(root).last(namespace), list[Gap]()
    for one in sorted(found):
        if one.after > after:
            gaps.append(Gap(after + 1, one.after))
        after = one.last or last
    return [*gaps, Gap(after + 1, last)] if after < last else gaps


def all_segments(root: str, after: int = 0) -> list[Segment]:
    """List the segments of all namespaces, the longest first: so parallel workers end at about the same time."""
    archive = opened(root, JOURNAL)
    found = [one for namespace in archive.namespaces() for one in segments(archive.place, namespace, after)]
    return sorted(found, key=lambda one: (one.last or archive.last(one.namespace)) - one.after, reverse=True)
