"""A standalone Spark cluster on the loopback: a master and workers, each a process of its own.

The workers have different addresses, which to Spark are machines: it runs a slow task a second
time on another machine only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark

from pyspark_barnabas.java import provide_java
from tests.kit.pipeline import class_archive
from tests.kit.processes.broker_process import free_port
from tests.kit.waiting import wait_until

_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# Each of these JVMs lives for seconds; executors inherit the environment of their worker.
_JAVA = {"JAVA_TOOL_OPTIONS": class_archive.options()}


class SparkCluster:
    """The processes of one cluster; `start` has begun them, `stop` ends all of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://127.0.0.1:{free_port()}"

    def start(self, workers: int) -> None:
        port = self.master.rpartition(":")[2]
        self._run("master", "master.Master", "--host", "127.0.0.1", "--port", port)
        for number in range(workers):
            options = ["--host", f"127.0.0.{1 + number}", "--cores", "1", "--memory", "1g"]
            options += ["--work-dir", str(self._directory / f"work-{number}")]
            self._run(f"worker-{number}", "worker.Worker", *options, self.master)
        log = self._directory / "master.log"
        wait_until(lambda: log.read_text().count("Registering worker") == workers, within_s=60)

    def executors(self) -> list[psutil.Process]:
        """Those that run now, on all workers."""
        return [
            child
            for process in self._processes
            for child in psutil.Process(process.pid).children()
            if _EXECUTOR in _command(child)
        ]

    def stop(self) -> None:
        children = [
            child
            for process in self._processes
            for child in psutil.Process(process.pid).children(recursive=True)
        ]
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(60)
        _, alive = psutil.wait_procs(children, timeout=20)
        for child in alive:
            child.kill()

    def _run(self, name: str, daemon: str, *options: str) -> None:
        provide_java(os.environ)
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
        command += [f"org.apache.spark.deploy.{daemon}", "--webui-port", "0", *options]
        environment = {
            **os.environ,
            **_JAVA,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
        }
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    cwd=self._directory,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended since
        return []


@contextlib.contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster of workers with one core each."""
    cluster = SparkCluster(directory)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()


@contextlib.contextmanager
def job(module: str, directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver, which writes to `job.log` in the directory."""
    with (directory / "job.log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", f"tests.pipeline.{module}", *arguments, str(directory)],
            env={**os.environ, **_JAVA, "SPARK_WORKER_DIR": str(directory / "work")},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield running
    finally:
        running.kill()  # Spark's Java ends with it
        running.wait()
