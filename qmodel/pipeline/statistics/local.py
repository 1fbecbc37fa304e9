"""Compute statistics on one machine with DuckDB (extra `duckdb`): faster than Spark, in less memory, without Java."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import duckdb
from pyarrow import fs

from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.archive.remote import opened
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.statistics.ordered import Kernel
from qmodel.pipeline.statistics.runs import FilesGone, StatisticsError, check_columns
from qmodel.pipeline.statistics.sql import DUCKDB

T = TypeVar("T")

NAMESPACE = "url_decode(regexp_extract(filename, '.*/namespace=([^/]*)/', 1))"
"""The namespace of a file: DuckDB itself would take each `name=value` above the archive for a column, too."""

BATCH = 100_000
"""The number of rows in one batch."""


class DuckDB:
    """DuckDB as the SQL engine. Data that do not fit into its memory go to a temporary folder."""

    dialect = DUCKDB

    def __init__(self, memory: str = "", threads: int = 0) -> None:
        """Limit the `memory`, such as `2GB`, and the `threads`; by default DuckDB decides."""
        self._folder = tempfile.TemporaryDirectory(prefix="qmodel-")
        settings: dict[str, Any] = {"temp_directory": self._folder.name, "preserve_insertion_order": "false"}
        if memory:
            settings["memory_limit"] = memory
        if threads:
            settings["threads"] = threads
        try:
            self._at = duckdb.connect(config=settings)
        except duckdb.Error as error:
            self._folder.cleanup()
            raise StatisticsError(f"DuckDB says: {error}. Give a --memory such as 500MB or 2GB.") from None
        self._at.execute("set enable_progress_bar = false")  # it would be mixed with the answer
        self._at.execute("set TimeZone = 'UTC'")  # as the columns: now() - put_at would be off by the local zone
        self._tables = 0
        self._schemes = set[str]()

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at.close()
        self._folder.cleanup()

    def events(self, name: str, archive: Archive, files: Sequence[File]) -> None:
        """Define a view of the events in some files of an archive, or in none.

        Raises StatisticsError if DuckDB cannot open it.
        """
        check_columns(archive, files)
        before, path = (self._opened(archive.root), archive.path) if "://" in archive.root else ("", "")
        columns = ", ".join(f"{DUCKDB.name(field.name)}" for field in SCHEMA)
        paths = [f"{before}{file.path[len(path) :]}" for file in files]
        if paths:
            self._read(
                name, paths, f"{NAMESPACE} as namespace, {columns}", "hive_partitioning = false, filename = true"
            )
        else:
            self._at.register("no_events", SCHEMA.empty_table())
            self.view(name, f"select '' as namespace, {columns} from no_events")

    def parquet(self, name: str, folders: Sequence[str]) -> None:
        """Define a view of the Parquet files in some folders, or at some URLs. Raises FilesGone if one has none."""
        paths = [path for folder in folders for path in self._some(folder)]
        self._read(name, paths, "*", "hive_partitioning = false")

    def _some(self, folder: str) -> list[str]:
        found = self._files(folder)
        if not found:
            raise FilesGone(f"{folder} has no Parquet files any more. Use another folder, and everything is made anew.")
        return found

    def _files(self, folder: str) -> list[str]:
        """List the Parquet files in a folder, or at a URL."""
        if "://" not in folder:
            return sorted(map(str, Path(folder).glob("*.parquet")))
        found, path, _ = opened(self._opened(folder))
        names = [one.base_name for one in found.get_file_info(fs.FileSelector(path, allow_not_found=True))]
        return [f"{folder}/{name}" for name in sorted(names) if name.endswith(".parquet")]

    def _opened(self, url: str) -> str:
        """Let DuckDB open a URL through fsspec; give the URL. Raises StatisticsError if fsspec cannot."""
        scheme = url.partition("://")[0]
        if scheme not in self._schemes:
            try:
                from fsspec.core import url_to_fs

                self._at.register_filesystem(url_to_fs(url, use_listings_cache=False)[0])
            except (ImportError, ValueError) as error:
                raise StatisticsError(f"DuckDB cannot open {url}: {error}. Install qmodel[remote].") from None
            self._schemes.add(scheme)
        return url.rstrip("/")

    def _read(self, name: str, paths: Sequence[str], columns: str, option: str) -> None:
        texts = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        self.view(name, f"select {columns} from read_parquet([{texts}], union_by_name = true, {option})")

    def view(self, name: str, select: str) -> None:
        """Define a view."""
        self._do(f"create or replace temporary view {name} as {select}")

    def table(self, name: str, select: str) -> None:
        """Define a table: the select is executed once and its rows are kept."""
        self._tables += 1
        self._do(f"create temporary table kept{self._tables} as {select}")
        self.view(name, f"select * from kept{self._tables}")

    def write(self, select: str, folder: str) -> None:
        """Write the rows of a select into a new folder, or to a URL, as Parquet."""
        if "://" in folder:
            found, path, _ = opened(self._opened(folder))
            found.create_dir(path, recursive=True)
        else:
            Path(folder).mkdir()
        part = f"{folder}/part.parquet".replace("'", "''")
        self._do(f"copy ({select}) to '{part}' (format parquet, compression zstd)")

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """Give the rows of a select."""
        return self._do(select).fetchall()

    def asked(self, select: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Give the names of the columns of a select of a user, and its rows. Raises duckdb.Error for mistakes in it."""
        found: duckdb.DuckDBPyConnection | None = self._reading(lambda: self._at.execute(select))
        if found is None:  # of a text without a statement, against the annotation
            return [], []
        return [column[0] for column in found.description], found.fetchall()

    def ordered(
        self, select: str, keys: Sequence[str], order: str, kernel: Kernel, schema: pa.Schema
    ) -> list[tuple[Any, ...]]:
        """What a kernel makes of the rows of a select, sorted by keys, and then by a column."""
        text = f"{select} order by {', '.join((*keys, order))}"
        found: pa.RecordBatchReader = self._asking(lambda: self._at.sql(text).to_arrow_reader(BATCH))
        return [tuple(row.values()) for batch in kernel(found) for row in batch.to_pylist()]

    def _do(self, text: str) -> duckdb.DuckDBPyConnection:
        return self._asking(lambda: self._at.execute(text))

    @classmethod
    def _asking(cls, ask: Callable[[], T]) -> T:
        try:
            return cls._reading(ask)
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            raise StatisticsError(
                f"DuckDB says: {said}. A file may be damaged: `qmodel archive verify` names those of an archive; for "
                f"tables that are made of it, give another folder."
            ) from None

    @staticmethod
    def _reading(ask: Callable[[], T]) -> T:
        try:
            return ask()
        except duckdb.OutOfMemoryException as error:
            said = str(error).partition("\n")[0]
            raise StatisticsError(
                f"DuckDB says: {said} Give it more with --memory, or use less with --threads 1."
            ) from None
        except duckdb.IOException as error:
            said = str(error).partition("\n")[0]
            gone = "No files found" in said or "No such file" in said
            raise (FilesGone if gone else StatisticsError)(f"DuckDB says: {said}.") from None
