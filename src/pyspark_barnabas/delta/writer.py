"""Implements the Delta sink's writers, called by Spark's tasks and its driver.

Each micro-batch of a stream is committed in one commit. A repeated micro-batch is recognised by the
query's id and the batch's number. A task that runs twice writes its files twice, but only the files
listed in a commit message are committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.files import DataFile, FileWriter
from pyspark_barnabas.delta.options import DeltaOptions
from pyspark_barnabas.delta.schema import arrow_schema
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table


class FilesWritten(WriterCommitMessage):
    """The files written by a task, and the task's query."""

    def __init__(self, query: str | None, files: Sequence[DataFile]) -> None:
        self.query = query
        self.files = list(files)


class _Writer:
    """The base of batch and stream writers."""

    def __init__(self, options: DeltaOptions, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._overwrite = overwrite
        self._layout = Table(options).check(self._schema, overwrite=overwrite)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> list[DataFile]:
        writer = FileWriter(filesystem(self._options), self._schema, *self._layout)
        try:
            for batch in batches:
                writer.write(batch)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def _commit(
        self, options: DeltaOptions, messages: list[WriterCommitMessage | None], query: str | None
    ) -> bool:
        files = [file for each in messages if isinstance(each, FilesWritten) for file in each.files]
        return Table(options).commit(self._schema, files, overwrite=self._overwrite, query=query)


class DeltaWriter(_Writer, DataSourceArrowWriter):
    """Implements `df.write.format("barnabas.delta").mode("append" or "overwrite")`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        return FilesWritten(None, self._write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(self._options, messages, self._options.query)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing, because a vacuum removes files that were not committed."""


class DeltaStreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Implements `df.writeStream.format("barnabas.delta")`; output mode `complete` replaces all
    rows."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        if query is None:
            raise ConfigError("Spark did not name the query of this task")
        return FilesWritten(query, self._write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        written = [each for each in messages if isinstance(each, FilesWritten)]
        if written:
            query = str(written[0].query)
            app_id = self._options.app_id or query
            options = self._options._replace(app_id=app_id, version=batchId)
            self._commit(options, messages, query)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, as in `DeltaWriter`.

        Besides, it may be unknown whether a commit succeeded.
        """
