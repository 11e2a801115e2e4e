"""Provides `format("barnabas")`, which reads and writes topics from Spark without a JAR.

Spark imports every top-level module named `pyspark_*` and registers its `DefaultSource`, so
installing the package is all that is needed:

    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "web").load()

The schema and the options are the same as those of Spark's Kafka connector (see `options.py`). A
query with a checkpoint reads each record exactly once. Records are written at least once, or
exactly once if the option `exactlyOnce` is set.
"""

from pyspark_barnabas.source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
