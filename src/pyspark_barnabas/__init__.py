"""`format("barnabas")`: topics as Spark tables and streams, without a jar.

Spark imports every top-level module named `pyspark_*` and registers its `DefaultSource`, so being
installed is all it takes:

    spark.readStream.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "web").load()

Schema and options are the same as in Spark's Kafka connector (`options.py`). Reading is exactly
once with a checkpoint; writing is at least once, or exactly once with `exactlyOnce`.
"""

from pyspark_barnabas.source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
