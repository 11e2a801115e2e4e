"""Provides `format("barnabas")`, which reads and writes topics from Spark without a JAR.

Spark imports every top-level module named `pyspark_*` and registers its `DefaultSource`, so you
only need to install the package:

    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "web").load()

The schema and the options are the same as in Spark's Kafka connector (`options.py`). With a
checkpoint, each record is read exactly once. Records are written at least once, or exactly once
with `exactlyOnce`.
"""

from pyspark_barnabas.source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
