"""Registers `format("barnabas.delta")`, which writes Delta tables from Spark without a JAR.

Spark registers one data source for each top-level module named `pyspark_*`, so this one needs its
own module; the implementation is in `pyspark_barnabas.delta`.
"""

from pyspark_barnabas.delta.once import once
from pyspark_barnabas.delta.source import DeltaDataSource as DefaultSource

__all__ = ["DefaultSource", "once"]
