"""`format("barnabas.delta")`: Delta tables from Spark, without a jar.

Spark registers one data source for each top-level module named `pyspark_*`, so this one has its
own; the implementation is in `pyspark_barnabas.delta`.
"""

from pyspark_barnabas.delta.once import once
from pyspark_barnabas.delta.source import DeltaDataSource as DefaultSource

__all__ = ["DefaultSource", "once"]
