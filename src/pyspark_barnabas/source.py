"""Implements the data source: Spark's entry point, which creates readers and writers.

Spark pickles the data source and sends it to several processes, so the data source contains only
the text of the options. The options are parsed where they are used; parsing needs no connection.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from pyspark_barnabas.exactly_once import ExactlyOnceStreamWriter, ExactlyOnceWriter
from pyspark_barnabas.options import sink_options, source_options
from pyspark_barnabas.reader import TopicReader
from pyspark_barnabas.schema import read_schema
from pyspark_barnabas.stream import TopicStreamReader
from pyspark_barnabas.writer import TopicStreamWriter, TopicWriter


class BarnabasDataSource(DataSource):
    """Provides topics as a Spark data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        # Use a plain dictionary of lower-case names, because Spark's mapping is case-insensitive,
        # but a copy of it is not. `GivenOptions` is always case-insensitive.
        self.options = {name.lower(): value for name, value in options.items()}

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        # Spark asks for the schema in `load()`, where users expect errors for wrong options.
        options = source_options(self.options)
        return read_schema(options.include_headers, options.record_batches)

    def reader(self, schema: StructType) -> TopicReader:
        return TopicReader(source_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> TopicStreamReader:
        return TopicStreamReader(source_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> TopicWriter | ExactlyOnceWriter:
        options = sink_options(self.options)
        if options.exactly_once:
            return ExactlyOnceWriter(options, schema, overwrite)
        return TopicWriter(options, schema, overwrite)

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> TopicStreamWriter | ExactlyOnceStreamWriter:
        options = sink_options(self.options)
        if options.exactly_once:
            return ExactlyOnceStreamWriter(options, schema)
        return TopicStreamWriter(options, schema, overwrite)
