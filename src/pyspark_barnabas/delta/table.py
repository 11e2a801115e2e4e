"""Creates and checks a Delta table and commits to it, in the sink's driver, using `deltalake`."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.demands import refuse_demands
from pyspark_barnabas.delta.files import DataFile
from pyspark_barnabas.delta.kept import Kept
from pyspark_barnabas.delta.log import configuration, hook
from pyspark_barnabas.delta.options import DeltaOptions
from pyspark_barnabas.delta.progress import (
    MicroBatch,
    Progress,
    is_committed,
    is_committed_job,
    query_application,
)
from pyspark_barnabas.delta.schema import (
    check_partitioning,
    check_types,
    is_strict,
    new_fields,
    nullable_schema,
)
from pyspark_barnabas.delta.storage import filesystem, open_table
from pyspark_barnabas.delta.vacuum import vacuum

if TYPE_CHECKING:
    from deltalake import DeltaTable

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 20  # of a commit that loses races
_FIRST_LOOK: Final = 10  # commits to search for our last one
_UUID: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OWN_NAME: Final = re.compile(rf"part-{_UUID}\.parquet|\..*|_delta_log")
# In a commit's own metadata:
_APPLICATION: Final = "barnabas.txnAppId"
_ROWS: Final = "barnabas.rows"


class CommitLost(BarnabasError):
    """Nothing was committed, and the files can no longer be committed; the batch must run again."""


class Layout(NamedTuple):
    """The layout of a table, as sent to the tasks."""

    partition_by: tuple[str, ...]  # partition columns
    required: frozenset[str] = frozenset()  # columns that may not be null
    is_strict: bool = False  # some fields within columns may not be null either


class Table:
    """A table that is reopened for each operation, because other writers may have changed it.

    `kept`: keeps the table open between commits, unless another writer has changed it.
    """

    def __init__(self, options: DeltaOptions, kept: Kept | None = None) -> None:
        self._options = options
        self._kept = kept

    def open(self) -> DeltaTable | None:
        """Open the table's newest version, or return None if there is no table."""
        return open_table(self._options)

    def check(self, schema: pa.Schema, *, overwrite: bool = False) -> Layout:
        """Raise `ConfigError` if rows with this schema cannot be written."""
        check_types(schema)
        table = self.open()
        if table is None:
            check_partitioning(schema, self._options.partition_by)
            self._check_empty()
            return Layout(self._options.partition_by)
        self._check_partitioning(table)
        refuse_demands(table, overwrite=overwrite)
        layout = _layout(table)
        check_partitioning(schema, layout.partition_by)
        new_fields(table, schema, merge=self._options.merge_schema)
        return layout

    def commit(
        self, schema: pa.Schema, files: Sequence[DataFile], *, overwrite: bool, query: str | None
    ) -> bool:
        """Add the files in one commit, or return False if they have already been committed.

        `query`: the streaming query, whose progress is checked strictly, or None for a batch job.
        As with Delta's own writer, a batch job is skipped unless its version is newer.

        Raises `NotExactlyOnce`, `CommitLost`, or `ConfigError` if the schemas do not match.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError

        came_first = ""
        for _ in range(_ATTEMPTS):
            known = None
            table = None if self._kept is None else self._kept.table()
            if table is None:
                table = self.open()
            elif self._kept is not None:
                known = self._kept.progress
            if self._is_committed(table, files, query, known):
                return False
            self._check_files(table, files)
            properties = self._properties(files, query)
            before = 0 if table is None else table.version()
            try:
                if table is None:
                    self._create(schema, files, properties)
                else:
                    self._add(table, schema, files, properties, overwrite=overwrite)
            except CommitFailedError as error:
                came_first = in_one_line(error)
                # Other failures raise the same error, so only a newer version proves that the race
                # was lost.
                if not self._is_newer(table):
                    raise BarnabasError(f"{self._options.path}: {came_first}") from error
                _log.info("another commit of %s came first: %s", self._options.path, came_first)
                continue
            except (DeltaError, OSError) as error:
                # Two writers may create the table at the same time; one of them finds that it
                # exists.
                if table is None and self.open() is not None:
                    continue
                raise BarnabasError(f"{self._options.path}: {in_one_line(error)}") from error
            if table is not None:
                self._tidy(table, before)
                self._keep(table, files, query)
            return True
        raise CommitLost(
            f"{self._options.path}: in all {_ATTEMPTS} attempts, other writers committed first, or "
            f"seemed to ({came_first})"
        )

    def _keep(self, table: DeltaTable, files: Sequence[DataFile], query: str | None) -> None:
        version = self._options.version
        if self._kept is not None and query is not None and version is not None:
            self._kept.keep(table, Progress(version, version, _rows(files)))

    def _is_newer(self, table: DeltaTable | None) -> bool:
        """Return whether another commit has changed the table since it was opened."""
        now = self.open()
        before, after = (None if each is None else each.version() for each in (table, now))
        return after != before

    # ---- checks ----

    def _is_committed(
        self,
        table: DeltaTable | None,
        files: Sequence[DataFile],
        query: str | None,
        known: Progress | None,
    ) -> bool:
        app_id, version = self._options.app_id, self._options.version
        if app_id is None or version is None:
            return False
        if known is not None:
            found = known
        else:
            found = Progress() if table is None else _progress(table, app_id, query)
        begins = self._options.begins
        if query is None:
            return is_committed_job(found, app_id, version, begins)
        return is_committed(found, MicroBatch(app_id, query, version, _rows(files), begins))

    def _check_empty(self) -> None:
        """Raise `ConfigError` if the directory contains other files, which a vacuum would
        remove."""
        own = [f"{name}=" for name in self._options.partition_by]
        for info in filesystem(self._options).get_file_info(pa_fs.FileSelector("")):
            name = info.base_name
            if not _OWN_NAME.fullmatch(name) and not name.startswith(tuple(own)):
                raise ConfigError(
                    f"{self._options.path} is neither a Delta table nor empty (it contains "
                    f"{name}): choose another path"
                )

    def _check_partitioning(self, table: DeltaTable) -> None:
        wanted, found = self._options.partition_by, _layout(table).partition_by
        if wanted and wanted != found:
            raise ConfigError(
                f"option partitionBy={','.join(wanted)}: the table is partitioned by "
                f"{', '.join(found) or 'nothing'}"
            )

    def _check_files(self, table: DeltaTable | None, files: Sequence[DataFile]) -> None:
        """Raise `CommitLost` if the files are not, or are no longer, part of the table."""
        partition_by = self._options.partition_by if table is None else _layout(table).partition_by
        if any(tuple(file.partition_values) != partition_by for file in files):
            raise CommitLost(
                f"{self._options.path} became another table while rows were written for it: it is "
                f"partitioned by {', '.join(partition_by) or 'nothing'}"
            )
        if not files:
            return
        found = filesystem(self._options).get_file_info([file.path for file in files])
        for file, info in zip(files, found, strict=True):
            if info.size != file.size_bytes:
                raise CommitLost(
                    f"{self._options.path}/{file.path} is missing or has changed since a task "
                    "wrote it: a vacuum kept too little, or only the task's machine sees this path"
                )

    # ---- commits ----

    def _create(self, schema: pa.Schema, files: Sequence[DataFile], properties: Any) -> None:
        from deltalake.transaction import create_table_with_add_actions

        create_table_with_add_actions(
            self._options.path,
            nullable_schema(schema),
            _actions(files),
            mode="error",
            partition_by=list(self._options.partition_by),
            storage_options=dict(self._options.storage),
            configuration=configuration(self._options),
            commit_properties=properties,
            post_commithook_properties=hook(self._options),
        )

    def _add(
        self,
        table: DeltaTable,
        schema: pa.Schema,
        files: Sequence[DataFile],
        properties: Any,
        *,
        overwrite: bool,
    ) -> None:
        self._check_partitioning(table)
        refuse_demands(table, overwrite=overwrite)
        new = new_fields(table, schema, merge=self._options.merge_schema)
        if new:
            # This separate commit does no harm if the next one fails.
            table.alter.add_columns(new)
        table.create_write_transaction(
            _actions(files),
            "overwrite" if overwrite else "append",
            table.schema(),
            partition_by=list(_layout(table).partition_by),
            commit_properties=properties,
            post_commithook_properties=hook(self._options),
        )

    def _properties(self, files: Sequence[DataFile], query: str | None) -> Any:
        from deltalake import CommitProperties, Transaction

        app_id, version = self._options.app_id, self._options.version
        # Left to itself, `deltalake` would retry with weaker checks. An overwrite would then keep
        # files merged in the meantime, and a table created twice would contain both first batches.
        if app_id is None or version is None:
            return CommitProperties(max_commit_retries=0)
        transactions = [Transaction(app_id, version)]
        if query is not None:
            transactions.append(Transaction(query_application(app_id, query), version))
        said = {_APPLICATION: app_id, _ROWS: str(_rows(files))}
        return CommitProperties(said, max_commit_retries=0, app_transactions=transactions)

    def _tidy(self, table: DeltaTable, before: int) -> None:
        """Compact and vacuum if due.

        `before`: the version before the commit. The commit remains valid even if this fails.
        """
        every = (self._options.compact_every, self._options.vacuum_every)
        if every == (None, None):
            return
        from deltalake.exceptions import DeltaError

        try:
            table.update_incremental()
            compacts, vacuums = (
                each is not None and table.version() // each != before // each for each in every
            )
            if compacts:
                compact(self._options)
            if vacuums:
                vacuum(table)
        # Another writer may have changed the table in the meantime. It is sufficient to try again
        # after the next commit.
        except (BarnabasError, DeltaError, OSError, pa.ArrowException) as error:
            _log.warning(
                "%s: maintenance failed and will be retried later: %s",
                self._options.path,
                in_one_line(error),
            )


def _layout(table: DeltaTable) -> Layout:
    required = frozenset(field.name for field in table.schema().fields if not field.nullable)
    schema = pa.schema(table.schema().to_arrow())
    strict = any(is_strict(kind) for kind in schema.types)
    return Layout(tuple(table.metadata().partition_columns), required, strict)


def _progress(table: DeltaTable, app_id: str, query: str | None) -> Progress:
    application = table.transaction_version(app_id)
    if application is None:
        return Progress()
    own = None if query is None else table.transaction_version(query_application(app_id, query))
    # A restored table keeps the application's versions in its log, but not its rows.
    looked_at = _FIRST_LOOK
    while True:
        commits = table.history(looked_at)  # the newest first
        restored_to: list[int] = []
        for commit in commits:
            if commit.get(_APPLICATION) == app_id:
                rows = commit.get(_ROWS)
                # A newer RESTORE, to a version before this commit, has removed its rows.
                is_restored = any(version < commit["version"] for version in restored_to)
                return Progress(application, own, None if rows is None else int(rows), is_restored)
            if commit.get("operation") == "RESTORE":
                restored_to.append(int(commit["operationParameters"].get("version", -1)))
        if len(commits) < looked_at:
            return Progress(application, own, None, bool(restored_to))
        looked_at *= 10


def _rows(files: Sequence[DataFile]) -> int:
    return sum(file.rows for file in files)


def _actions(files: Sequence[DataFile]) -> list[Any]:
    from deltalake.transaction import AddAction

    return [
        AddAction(
            file.path,
            file.size_bytes,
            file.partition_values,
            file.modified_ms,
            True,
            file.stats,
        )
        for file in files
    ]
