"""Archives the classes that Spark's JVM loads, so that each JVM of the tests starts faster.

    python -m tests.kit.pipeline.class_archive

Loading and verifying about 15,000 classes is most of a Spark session's start. With an archive that
the JVM maps (class data sharing, JEP 350), a session and its first queries were measured to take
58 % of the time. An archive fits one JVM and one list of jars, and a JVM ignores any other, so it
is kept in the virtual environment to whose jars it belongs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
_OPTIONS = "SPARK_SUBMIT_OPTS"  # Spark's start script passes them to the JVM
_MOST_S = 600
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java is not to say that an archive does not fit."""
# Every session of the tests is short, a service's too: see `SHORT_LIVED` of the pipeline.
_FRUGAL = ("-XX:TieredStopAtLevel=1", "-XX:-DontCompileHugeMethods", "-XX:+UseSerialGC")


def options() -> str:
    """Those of each JVM that Spark starts; they map the archive, if there is one."""
    mapped = [f"-XX:SharedArchiveFile={ARCHIVE}", *QUIET] if ARCHIVE.exists() else []
    return " ".join([*_FRUGAL, *mapped])


def use() -> None:
    """Let every Spark of this process and its children start as a short-lived one."""
    os.environ.setdefault(_OPTIONS, options())


def main() -> None:
    import psutil  # type: ignore[import-untyped]  # every pytest imports this module

    with tempfile.TemporaryDirectory(prefix="barnabas-classes-") as name:
        written = Path(name) / ARCHIVE.name
        archived = " ".join([*_FRUGAL, f"-XX:ArchiveClassesAtExit={written}", *QUIET])
        job = [sys.executable, "-m", "tests.kit.pipeline.class_archive", name]
        done = subprocess.run(job, env={**os.environ, _OPTIONS: archived}, stdout=subprocess.PIPE)
        done.check_returncode()
        # The JVM outlives the process that started it, and writes the archive as it exits.
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(done.stdout)).wait(_MOST_S)
        # Another test run may be starting: it sees a whole archive or none.
        whole = ARCHIVE.with_suffix(f".{os.getpid()}")
        shutil.copyfile(written, whole)
        whole.replace(ARCHIVE)


def _run_job(directory: Path) -> None:
    """Load the classes that a pipeline uses, and print the JVM's process id."""
    import psutil

    import barnabas
    from barnabas.client import NewTopic, SyncAdmin
    from barnabas_collector.registry import Registry
    from barnabas_pipeline.behaviour.definition import Behaviour
    from barnabas_pipeline.behaviour.generator import write_log
    from barnabas_pipeline.collector import Collector
    from barnabas_pipeline.job import Job
    from barnabas_pipeline.session import start_session

    log = directory / "access.log"
    write_log(log, 100, seed=1)
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("lines", 2), NewTopic("dead", 1)])
        with Collector(servers, "lines", Registry(directory / "registry.json")) as collector:
            collector.collect(log)
        spark = start_session("classes", master="local[2]", log=directory / "spark.log")
        places = directory / "tables", directory / "checkpoint"
        Job(Behaviour(), servers, "lines", "dead", *places, 50).start(spark).awaitTermination()
        spark.range(100).createOrReplaceTempView("numbers")
        spark.sql("select id % 7 as k, count(*) from numbers group by 1 order by 1").collect()
        spark.createDataFrame([(1, "a")], "a int, b string").write.parquet(f"{directory}/rows")
        spark.read.parquet(f"{directory}/rows").collect()
        (java,) = (each for each in psutil.Process().children() if each.name() == "java")
        spark.stop()
    print(java.pid)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _run_job(Path(sys.argv[1]))
    else:
        main()
