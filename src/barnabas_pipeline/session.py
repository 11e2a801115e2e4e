"""Creates the Spark session; no other module creates one.

The settings are the same on one machine and on a cluster; only the master differs. The session is
not necessarily new, because Spark has only one session per process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from barnabas.errors import ConfigError
from pyspark_barnabas.java import provide_java
from pyspark_barnabas.workers import python_for_workers

LOCAL = "local[*]"

SHORT_LIVED = {
    # Java's second compiler pays off only after minutes. In a measured run of a few seconds, it
    # took a third of the CPU time. The first compiler compiles everything, including the large
    # methods that Spark generates.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:-DontCompileHugeMethods",
}
"""The settings for a short-lived session."""

_SETTINGS = {
    # Times are the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # Micro-batches are small; the default would create 200 almost empty tasks.
    "spark.sql.shuffle.partitions": "4",
    # By default, Spark writes times as INT96, a type used by no other program.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL_SETTINGS = {
    # A laptop's host name may not resolve, and no other host should connect.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark and its Python processes exchange a micro-batch in several small steps. Over TCP, these
    # steps took a quarter longer in a measurement.
    "spark.python.unix.domain.socket.enabled": "true",
    # By default, Spark writes the checkpoint through a Hadoop interface that starts about ten
    # processes (readlink, chmod) for each of a batch's two entries, which takes 50 ms per entry
    # instead of 12 ms. Either way, a temporary file is written and renamed.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
}


def start_session(
    name: str,
    *,
    master: str = LOCAL,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    keep_open: tuple[int, ...] = (),
) -> SparkSession:
    """Start a session on `master`; `settings` override the pipeline's own.

    `log`: the file for the Java side's standard error, or None to leave it as it is. `keep_open`:
    file descriptors that the Java process inherits and keeps open until it exits.

    Raises `ConfigError` if Java is missing or does not start.
    """
    provide_java(os.environ)
    if "PYSPARK_PYTHON" not in os.environ:
        # Otherwise, the workers run the `python3` of the PATH, which may lack our packages.
        is_here = master.startswith("local")  # other machines have no such script
        os.environ["PYSPARK_PYTHON"] = python_for_workers() if is_here else sys.executable
    chosen = {**_SETTINGS, **(_LOCAL_SETTINGS if master.startswith("local") else {})}
    conf = SparkConf().setAppName(name).setMaster(master)
    for key, value in {**chosen, **(settings or {})}.items():
        conf.set(key, value)
    if SparkContext._active_spark_context is None:
        SparkContext(conf=conf, gateway=_launch(conf, log, keep_open))
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _launch(conf: SparkConf, log: Path | None, keep_open: tuple[int, ...]) -> Any:
    launch: Callable[[SparkConf, dict[str, Any]], Any] = launch_gateway
    # Start the Java process in a separate session: Ctrl-C then reaches only us, and we can stop
    # Spark cleanly. Java exits by itself when our end of its standard input closes, even after kill
    # -9.
    options: dict[str, Any] = {"pass_fds": keep_open, "start_new_session": True}
    try:
        if log is None:
            return launch(conf, options)
        with log.open("ab") as file:
            return launch(conf, {**options, "stdout": file, "stderr": subprocess.STDOUT})
    except PySparkRuntimeError as error:
        where = f"see {log}" if log else "its output is above"
        raise ConfigError(
            f"Java in {os.environ['JAVA_HOME']} did not start Spark ({where}): check that there "
            "is memory for another process, and that the master is correct"
        ) from error
