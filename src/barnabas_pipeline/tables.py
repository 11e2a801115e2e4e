"""Reads and writes the pipeline's tables, all Delta tables, and the control table with their state.

    events/  dead_letters/  ...     a row is written once
    sessions/  files/  ...          a batch adds its part; readers merge the parts
    control/                        one row: the last complete batch, and its version of each table

A Delta commit cannot span tables. A batch is therefore committed to all tables and then to the
control table, and readers use the versions that the control table lists. Each commit records its
query and micro-batch. A batch interrupted between two commits is repeated: it starts from the state
in the control table, and its earlier commits are recognised. The cost of a batch depends only on
its size. At intervals, small files and the parts in them are merged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple, TypeVar

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from barnabas_pipeline.arrow import to_table
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.one_pass import write
from barnabas_pipeline.places import Positions
from barnabas_pipeline.work import Outcome
from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.files import DataFile
from pyspark_barnabas.delta.kept import Kept
from pyspark_barnabas.delta.log import cut
from pyspark_barnabas.delta.options import DeltaOptions, delta_options
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table
from pyspark_barnabas.delta.vacuum import vacuum
from pyspark_barnabas.token import NotExactlyOnce

_log = logging.getLogger(__name__)

T = TypeVar("T")

_CONTROL: Final = "control"
_CONTROL_SCHEMA: Final = pa.schema(
    [
        ("batch", pa.int64()),
        ("query", pa.string()),
        ("newest_s", pa.int64()),
        ("versions", pa.string()),
        ("dead_letters_end", pa.string()),
    ]
)
_COMPACT_EVERY: Final = 32  # batches
_AT_ONCE: Final = 4  # tables
_LOG_KEPT_HOURS: Final = 1  # and back to the newest checkpoint older than this


class Control(NamedTuple):
    """The state of the tables after all batches of a query up to this one."""

    batch: int
    query: str  # the streaming query's id, stored in its checkpoint
    newest_s: int | None  # time of the newest line, seconds since the epoch
    versions: dict[str, int]
    dead_letters_end: dict[int, int]
    """The end offsets of the dead letter topic in this state, by partition."""


class Tables:
    """The tables of one pipeline, in a directory shared by all of Spark's processes."""

    def __init__(self, directory: Path, layout: Layout) -> None:
        """Raises `ConfigError` if an earlier version of the pipeline wrote the tables."""
        self.directory = directory
        self.layout = layout
        self._all = layout.all
        self._kept = {name: Kept(self._path(name)) for name in (*self._all, _CONTROL)}
        # The state after the last batch, if this process wrote it. The next batch then need not
        # read it.
        self._state: tuple[Control, Positions] | None = None
        # The positions before the current batch or, once it is committed, the positions after it.
        self._seen: Positions | None = None
        if (directory / "versions").is_dir():
            raise ConfigError(
                f"the tables in {directory} were written by an earlier version, in a format that "
                "is no longer supported: remove the output directory and run again, or choose "
                "another one"
            )

    # ---- reading ----

    def control(self) -> Control | None:
        """Return the current state, or None before the first batch.

        Raises `ConfigError` if the tables belong to another pipeline.
        """
        if self._state is not None and self._kept[_CONTROL].version() is not None:
            return self._state[0]
        path = self._path(_CONTROL)
        if not DeltaTable.is_deltatable(path):
            return None
        row = self.dataset(_CONTROL).to_table().to_pylist()[0]
        ends, versions = json.loads(row.pop("dead_letters_end")), json.loads(row.pop("versions"))
        # Tables added by a later version of the pipeline are empty until its first batch.
        if not versions.keys() <= self._all.keys():
            raise ConfigError(
                f"the tables in {self.directory} belong to another pipeline or another version: "
                "choose another output directory"
            )
        return Control(
            versions=versions,
            dead_letters_end={int(partition): offset for partition, offset in ends.items()},
            **row,
        )

    def parts(self, name: str, version: int | None) -> pa.Table:
        """Return the stored rows of a table; for a merged table, they are parts.

        `version`: None if the table did not exist.
        """
        schema = self._all[name]
        if version is None:
            return schema.empty_table()
        stored = self.dataset(name, version).to_table()
        # A column added by a later version of the pipeline is null in older rows.
        for field in schema:
            if field.name not in stored.schema.names:
                stored = stored.append_column(field, pa.nulls(stored.num_rows, field.type))
        return stored.select(schema.names).cast(schema)

    def dataset(self, name: str, version: int | None = None) -> Any:
        """Return a table's rows as an unread dataset. `version`: None means the newest.

        The dataset uses Arrow's own file system, because with deltalake's file system, reading
        threads may abort an exiting process or keep it from exiting (pyarrow 26).
        """
        table = DeltaTable(self._path(name), version=version)
        return table.to_pyarrow_dataset(filesystem=filesystem(self._options(name)))

    def positions(self, control: Control | None) -> Positions:
        """Return the highest position seen in each file."""
        if control is None:
            self._seen = {}
        elif self._state is not None and self._state[0] == control:
            self._seen = self._state[1]
        else:
            parts = self.parts("files", control.versions["files"])
            self._seen = _positions(self.layout.merge("files", parts))
        return self._seen

    # ---- writing ----

    def check_query(self, query: str | None) -> None:
        """Raise `ConfigError` unless this query wrote these tables. `query`: None if no query has
        written any tables."""
        control = self.control()
        made_by = control.query if control else None
        if made_by != query:
            raise ConfigError(
                f"the tables in {self.directory} and the checkpoint next to them do not belong"
                " together: remove both, or choose another output directory"
            )

    def is_next(self, batch: int, query: str, control: Control | None) -> bool:
        """Return True if a batch must be written, or False if it is already committed."""
        if control is None:
            done = -1
        elif control.query == query:
            done = control.batch
        else:
            raise NotExactlyOnce(
                f"the tables in {self.directory} belong to query {control.query}; this is query"
                f" {query}: choose another output directory for it"
            )
        # The checkpoint is newer because the control table, or a version of it, was removed.
        if batch > done + 1:
            raise ConfigError(
                f"batch {batch} comes after batch {done} in {self.directory}: versions of the"
                " tables were lost; remove the output directory and run again"
            )
        return batch == done + 1

    def growing_paths(self) -> dict[str, str]:
        """Return the directories to which tasks write files."""
        return {name: self._path(name) for name in self.layout.growing}

    def commit(self, batch: int, query: str, found: Outcome) -> None:
        """Commit a batch to every table except the control table."""
        self._of_each(lambda name: self.commit_to(name, batch, query, found))
        if self._seen is not None:
            self._seen = _advanced(self._seen, _positions(found.parts["files"]))

    def commit_to(self, name: str, batch: int, query: str, found: Outcome) -> bool:
        """Commit a batch to one table; return False if it was already committed."""
        schema = self._all[name]
        # Tasks have written the rows; the driver writes the parts, which are merged first.
        if name in self.layout.growing:
            files: Sequence[DataFile] = found.files[name]
        else:
            files = write(self._path(name), to_table(found.parts[name], schema), schema)
        options = self._options(name, batch)
        kept = self._kept[name]
        if kept.table() is None and not DeltaTable.is_deltatable(options.path):
            before = self.control()
            # A table added by a later version of the pipeline begins with this batch. If the
            # control table lists it, the table was lost, and the commit is refused.
            if before is not None and name not in before.versions:
                options = options._replace(begins=batch)
        return Table(options, kept).commit(schema, files, overwrite=False, query=query)

    def conclude(
        self, batch: int, query: str, newest_s: int | None, dead_letters_end: Mapping[int, int]
    ) -> None:
        """Make a batch visible once it is committed to all tables."""
        if (batch + 1) % _COMPACT_EVERY == 0:
            # Do this before the control table's commit, which must never list a version whose files
            # a vacuum removes, even if the pipeline has not run for a long time.
            self.tidy()
        versions = self._of_each(lambda name: self._version_of(name, batch))
        row = {
            "batch": batch,
            "query": query,
            "newest_s": newest_s,
            "versions": json.dumps(versions),
            "dead_letters_end": json.dumps(dead_letters_end),
        }
        is_new = self.replace_control(batch, query, row)
        self._state = None
        if is_new and self._seen is not None:
            control = Control(batch, query, newest_s, versions, dict(dead_letters_end))
            self._state, self._seen = (control, self._seen), None
        if (batch + 1) % _COMPACT_EVERY == 0:
            # Until the control table lists these versions, readers need older ones, as does a
            # driver that restarts, even long after it was killed.
            self._drop_old(versions)
        # Only the next batch needs this, and often it arrives later.
        Thread(target=self._refresh, name="refresh-tables").start()

    def _refresh(self) -> None:
        for kept in self._kept.values():
            kept.refresh()

    def replace_control(self, batch: int, query: str, row: Mapping[str, Any]) -> bool:
        rows = pa.Table.from_pylist([row], schema=_CONTROL_SCHEMA)
        files = write(self._path(_CONTROL), rows, _CONTROL_SCHEMA)
        options = self._options(_CONTROL, batch)
        kept = self._kept[_CONTROL]
        return Table(options, kept).commit(_CONTROL_SCHEMA, files, overwrite=True, query=query)

    def tidy(self) -> None:
        """Merge small files and the parts in them. If this fails, the next call tries again."""
        for name in self._all:
            try:
                compact(self._options(name), self._merge_of(name))
            except (BarnabasError, DeltaError, OSError, pa.ArrowException) as error:
                _log.warning(
                    "compacting table %s failed and will be retried later: %s",
                    name,
                    in_one_line(error),
                )

    def _drop_old(self, versions: Mapping[str, int]) -> None:
        """Remove old log entries, and files that are not needed by any version from the last week.

        After a failure, the next call tries again.
        """
        for name in (*self._all, _CONTROL):
            try:
                vacuum(DeltaTable(self._path(name)))
                cut(self._options(name), versions.get(name))
            except (DeltaError, OSError) as error:
                _log.warning(
                    "removing old files of table %s failed and will be retried later: %s",
                    name,
                    in_one_line(error),
                )

    def _of_each(self, do: Callable[[str], T]) -> dict[str, T]:
        """Call `do` for every table except the control table. Several calls run at a time, because
        they mostly wait for the disk."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(self._all, pool.map(do, self._all), strict=True))

    def _path(self, name: str) -> str:
        return str(self.directory / name)

    def _options(self, name: str, batch: int | None = None) -> DeltaOptions:
        options = delta_options(
            {
                "path": self._path(name),
                "txnAppId": self.layout.application,
                "logRetentionHours": str(_LOG_KEPT_HOURS),
                "mergeSchema": "true",  # a later version of the pipeline may add columns
            }
        )
        # `conclude` truncates the logs once readers need no older version.
        return options._replace(version=batch, cuts_log=False)

    def _version_of(self, name: str, batch: int) -> int:
        """Return the newest version that contains this batch but no later batch. If another driver
        is running, it may be ahead."""
        kept = self._kept[name]
        if (known := kept.version()) is not None and kept.progress.application == batch:
            return known
        # A version inherits batch numbers from earlier ones. A compaction of the batch's files
        # therefore has the same number and is found first.
        table = DeltaTable(self._path(name))
        while (found := table.transaction_version(self.layout.application)) != batch:
            assert found is not None and found > batch, f"{table.table_uri} has lost batch {batch}"
            table.load_as_version(table.version() - 1)
        return table.version()

    def _merge_of(self, name: str) -> Callable[[pa.Table], pa.Table] | None:
        schema = self.layout.merged.get(name)
        if schema is None:
            return None
        return lambda parts: to_table(self.layout.merge(name, parts), schema)


def _positions(files: pl.DataFrame) -> Positions:
    rows = files.select("file_id", "partition", "position").iter_rows()
    return {(file_id, partition): position for file_id, partition, position in rows}


def _advanced(seen: Positions, reached: Positions) -> Positions:
    """Return the positions after a batch that reached `reached`; they never decrease."""
    advanced = dict(seen)
    for place, position in reached.items():
        known = advanced.get(place)
        # A record may have no position.
        if known is None or (position is not None and position > known):
            advanced[place] = position
    return advanced
