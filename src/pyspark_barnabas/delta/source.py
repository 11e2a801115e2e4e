"""`format("barnabas.delta")`, for writing. `deltalake`, DuckDB and Polars read such tables."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from pyspark_barnabas.delta.options import delta_options
from pyspark_barnabas.delta.writer import DeltaStreamWriter, DeltaWriter


class DeltaDataSource(DataSource):
    """A Delta table as a sink."""

    @classmethod
    def name(cls) -> str:
        return "barnabas.delta"

    def writer(self, schema: StructType, overwrite: bool) -> DeltaWriter:
        return DeltaWriter(delta_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeltaStreamWriter:
        return DeltaStreamWriter(delta_options(self.options), schema, overwrite)
