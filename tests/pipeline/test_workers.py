"""Spark's workers compile nothing that is compiled already."""

from __future__ import annotations

from pyspark.sql import SparkSession


def test_workers_import_pyspark_from_where_it_is_installed(spark: SparkSession) -> None:
    def origin(_: int) -> str:
        import pyspark

        return str(pyspark.__file__)

    (found,) = spark.sparkContext.parallelize([0], 1).map(origin).collect()
    assert "pyspark.zip" not in found
