"""Implements `format("barnabas.delta")`, for writing.

`deltalake`, DuckDB and Polars can read the tables.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.options import delta_options
from pyspark_barnabas.delta.writer import DeltaStreamWriter, DeltaWriter

_NOT_READ = (
    "format barnabas.delta writes tables and does not read them: use"
    " spark.createDataFrame(deltalake.DeltaTable(path).to_pyarrow_table()), or format delta with"
    " Delta's own jar, which also reads a table as a stream"
)


class DeltaDataSource(DataSource):
    """Provides a Delta table as a sink."""

    @classmethod
    def name(cls) -> str:
        return "barnabas.delta"

    def schema(self) -> NoReturn:
        raise ConfigError(_NOT_READ)

    def reader(self, schema: StructType) -> NoReturn:
        raise ConfigError(_NOT_READ)

    def streamReader(self, schema: StructType) -> NoReturn:
        raise ConfigError(_NOT_READ)

    def writer(self, schema: StructType, overwrite: bool) -> DeltaWriter:
        return DeltaWriter(delta_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeltaStreamWriter:
        return DeltaStreamWriter(delta_options(self.options), schema, overwrite)
