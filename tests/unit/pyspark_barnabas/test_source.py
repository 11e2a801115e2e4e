"""What Spark does with the data source before anything is connected."""

from __future__ import annotations

import pickle
import pkgutil

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource

import pyspark_barnabas
from barnabas.errors import ConfigError
from pyspark_barnabas.schema import read_schema

WEB = CaseInsensitiveDict({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "web"})


def test_spark_finds_the_source_by_the_name_of_its_module() -> None:
    """As `lookup_data_sources.py` of PySpark does it."""
    assert "pyspark_barnabas" in {module.name for module in pkgutil.iter_modules()}
    assert issubclass(pyspark_barnabas.DefaultSource, DataSource)
    assert pyspark_barnabas.DefaultSource.name() == "barnabas"


def test_nothing_connects_before_it_must_and_all_of_it_travels() -> None:
    """SP-1: Spark pickles source, reader and writer from process to process."""
    source = pickle.loads(pickle.dumps(pyspark_barnabas.DefaultSource(WEB)))
    schema = source.schema()
    assert schema == read_schema(False)
    for reader in (source.reader(schema), source.streamReader(schema)):
        pickle.dumps(reader)
    sink = pyspark_barnabas.DefaultSource(
        CaseInsensitiveDict({"bootstrap.servers": "nowhere:1", "topic": "out"})
    )
    pickle.dumps(sink.writer(schema=schema, overwrite=False))
    pickle.dumps(sink.streamWriter(schema=schema, overwrite=False))
    with pytest.raises(ConfigError, match="cannot be overwritten"):
        sink.writer(schema=schema, overwrite=True)


def test_options_stay_case_insensitive() -> None:
    given = CaseInsensitiveDict({**WEB, "includeHeaders": "TRUE"})
    assert "headers" in pyspark_barnabas.DefaultSource(given).schema().fieldNames()
