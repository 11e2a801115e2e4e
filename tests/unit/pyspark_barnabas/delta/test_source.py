"""SP-3: what `format("barnabas.delta")` and `once` do not do is said in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql.types import StructType

from barnabas.errors import ConfigError
from pyspark_barnabas_delta import DefaultSource, once

SOURCE = DefaultSource({"path": "tables/events"})


@pytest.mark.parametrize(
    "read",
    [
        SOURCE.schema,
        lambda: SOURCE.reader(StructType()),
        lambda: SOURCE.streamReader(StructType()),
    ],
    ids=["load", "schema and load", "schema and stream"],
)
def test_sp_3_a_table_is_not_read_and_the_error_says_what_reads_it(
    read: Callable[[], object],
) -> None:
    with pytest.raises(ConfigError, match=r"does not read them.*DeltaTable\(path\)"):
        read()


class ConnectSession:
    """A session of Spark Connect, as far as a function for `foreachBatch` may look."""

    @property
    def sparkContext(self) -> object:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED",
            messageParameters={"attr_name": "sparkContext"},
        )


class Batch:
    """A micro-batch over Spark Connect."""

    sparkSession = ConnectSession()


def test_sp_3_once_over_connect_says_what_to_use() -> None:
    with pytest.raises(ConfigError, match=r"Spark Connect.*writeStream\.format"):
        once("tables/events")(Batch(), 0)  # type: ignore[arg-type]
