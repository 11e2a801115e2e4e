"""One run: broker, collector, Spark job, summary and report; once, or as a service.

Everything that has to outlive it lies in the workspace, so the next run goes on where this one
ended, however that was.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.client.sync import SyncAdmin
from barnabas.collector.log_file import open_log
from barnabas.collector.registry import Registry
from barnabas.errors import TopicAlreadyExists
from barnabas.pipeline.collector import Collected, Collector
from barnabas.pipeline.figures import Accounts, read_accounts, read_figures
from barnabas.pipeline.follower import Follower
from barnabas.pipeline.generator import write_log
from barnabas.pipeline.java import provide_java
from barnabas.pipeline.job import Job
from barnabas.pipeline.report import write_report
from barnabas.pipeline.session import LOCAL, SHORT_LIVED, start_session
from barnabas.pipeline.stop import Stop
from barnabas.pipeline.summary import Steps, account, behaviour
from barnabas.pipeline.workspace import Workspace

TOPIC = "web-access"
DEAD_LETTER_TOPIC = "web-access-dead-letters"

_PARTITIONS = 3
_TRIGGER_S = 5.0
_POLL_S = 1.0
_LOOK_S = 1
_REPORT_EVERY_S = 10.0
# A dead leader is missed only when its session ends, after 18 s unless somebody has set less.
_CLUSTER_PATIENCE_S = 60.0


class Options(NamedTuple):
    """What the command line says."""

    input: Path | None  # None: the generated log
    lines: int
    seed: int
    master: str
    is_service: bool
    port: int  # 0: a free one
    max_records_per_batch: int
    bootstrap_servers: str | None = None  # None: a broker of the run's own


class Run:
    """A run in a workspace that is ours."""

    def __init__(self, options: Options, workspace: Workspace, stop: Stop) -> None:
        self._options = options
        self._workspace = workspace
        self._stop = stop
        self._steps = Steps(sys.stdout)

    def run(self) -> bool:
        """Whether every line is accounted for.

        Raises `ConfigError` and other `BarnabasError`s, `OSError`, and Spark's exceptions.
        """
        provide_java(os.environ)  # else it would be missed only after all the rest
        path = self._input()
        before = read_accounts(self._workspace.tables)
        with self._brokers() as servers:
            _create_topics(servers)
            with self._collector(servers) as collector:
                self._collect(collector, path)
                self._process(servers, collector, path)
        return self._conclude(before)

    @contextmanager
    def _brokers(self) -> Iterator[str]:
        """Where they listen: those of a cluster, or one of our own for as long as we need it."""
        servers = self._options.bootstrap_servers
        if servers is None:
            self._workspace.check_own_broker()
            with barnabas.Broker(self._workspace.broker, config=self._listeners()) as broker:
                self._steps.tell("broker", f"{broker.bootstrap_servers}, log in {broker.data_dir}")
                yield broker.bootstrap_servers
            return
        with SyncAdmin(servers) as admin:
            cluster = admin.describe_cluster()
        self._workspace.check_cluster(cluster.cluster_id)
        names = ", ".join(f"{broker.host}:{broker.port}" for broker in cluster.brokers)
        self._steps.tell("cluster", f"{cluster.cluster_id}: {names}")
        yield servers

    def _collector(self, servers: str) -> Collector:
        registry = Registry(self._workspace.registry)
        if self._options.bootstrap_servers is None:
            return Collector(servers, TOPIC, registry)
        return Collector(servers, TOPIC, registry, patience_s=_CLUSTER_PATIENCE_S)

    def _listeners(self) -> dict[str, str]:
        # Executors on other machines have to reach the broker as well.
        host = "127.0.0.1" if self._options.master.startswith("local") else "0.0.0.0"
        return {"listeners": f"PLAINTEXT://{host}:{self._options.port}"}

    def _input(self) -> Path:
        given = self._options.input
        if given is not None:
            # Fails now, before a broker and a Spark have been started for nothing.
            with open_log(given):
                self._steps.tell("input", str(given))
            return given
        lines, seed = self._options.lines, self._options.seed
        path = self._workspace.generated(lines, seed)
        with self._steps.timed("input") as told:
            if not path.exists():
                write_log(path, lines, seed)
            told.append(f"{path}, generated: {lines:,} lines, seed {seed}")
        return path

    def _collect(self, collector: Collector, path: Path) -> None:
        with self._steps.timed("collected") as told:
            sent = collector.collect(path)
            told.append(_told(sent, path))

    def _process(self, servers: str, collector: Collector, path: Path) -> None:
        with self._stop.patiently(), self._steps.timed("spark") as told:
            spark = self._session()
            told.append(f"{spark.version} on {spark.sparkContext.master}")
        try:
            with self._stop.patiently():
                self._run_job(spark, servers, collector, path)
        finally:
            spark.stop()

    def _session(self) -> SparkSession:
        spark = start_session(
            "barnabas user behaviour",
            master=self._options.master,
            settings={} if self._options.is_service else SHORT_LIVED,
            log=self._workspace.spark_log,
            keep_open=(self._workspace.lock_fd,),
        )
        self._stop.listen()  # PySpark has put a handler of its own in place
        return spark

    def _run_job(self, spark: SparkSession, servers: str, collector: Collector, path: Path) -> None:
        if self._options.bootstrap_servers is None:
            servers = f"{_reachable_host(spark)}:{servers.rpartition(':')[2]}"
        job = Job(
            bootstrap_servers=servers,
            topic=TOPIC,
            dead_letter_topic=DEAD_LETTER_TOPIC,
            tables=self._workspace.tables.resolve(),
            checkpoint=self._workspace.checkpoint.resolve(),
            max_records_per_batch=self._options.max_records_per_batch,
        )
        if self._options.is_service:
            self._serve(job.start(spark, every_seconds=_TRIGGER_S), collector, path)
        else:
            with self._steps.timed("processed") as told:
                told.append(self._drain(job.start(spark)))

    def _drain(self, query: StreamingQuery) -> str:
        while not query.awaitTermination(_LOOK_S):
            if self._stop.requested.is_set():
                _end(query)
                raise KeyboardInterrupt
        batches = len([progress for progress in query.recentProgress if progress["numInputRows"]])
        return f"{batches} {'batch' if batches == 1 else 'batches'}"

    def _serve(self, query: StreamingQuery, collector: Collector, path: Path) -> None:
        self._steps.tell("service", f"follows {path}; Ctrl-C ends it")
        report_at_s = 0.0
        reported = Accounts()
        with Follower(collector, path) as follower:
            while not self._stop.wait(_POLL_S):
                follower.poll()
                if not query.isActive:
                    query.awaitTermination()  # raises what it died of
                    return
                accounts = read_accounts(self._workspace.tables)
                if accounts != reported and time.monotonic() >= report_at_s:
                    began_s = time.monotonic()
                    self._report()
                    reported = accounts
                    # Never more than a fifth of the time goes into pictures.
                    took_s = time.monotonic() - began_s
                    report_at_s = time.monotonic() + max(_REPORT_EVERY_S, 4 * took_s)
                    self._steps.tell("report", f"{account(accounts)}  ({took_s:.1f} s)")
        _end(query)

    def _report(self) -> None:
        write_report(self._workspace.report, read_figures(self._workspace.tables))

    def _conclude(self, before: Accounts) -> bool:
        figures = read_figures(self._workspace.tables)
        write_report(self._workspace.report, figures)
        total = figures.accounts
        self._steps.tell("", "")
        if before.read:
            self._steps.tell("this run", account(total.minus(before)))
        self._steps.tell("in all" if before.read else "lines", account(total))
        for label, text in behaviour(figures):
            self._steps.tell(label, text)
        self._steps.tell("tables", str(self._workspace.tables))
        self._steps.tell("report", str(self._workspace.report))
        if self._options.is_service:
            return total.balance
        sent = Registry(self._workspace.registry).lines_sent()
        counted = sum(of.valid + of.dead_letters for _, of in figures.files)
        if sent > counted:
            self._steps.tell("missing", f"{sent - counted:,} lines were sent and are not here")
        return total.balance and sent <= counted


def _end(query: StreamingQuery) -> None:
    """Stop the query; the batch under way is cut off, and taken again by the next run."""
    # Py4J logs as an error, with a stack trace, that its call was interrupted. That is the point.
    logging.getLogger("py4j").disabled = True
    query.stop()


def _told(sent: Collected, path: Path) -> str:
    left = sent.unfinished_bytes
    waiting = f"; {left:,} bytes of an unfinished line wait for the next run" if left else ""
    if not sent.lines:
        is_empty = path.exists() and not path.stat().st_size
        return f"nothing: {path} is empty" if is_empty else f"nothing new in {path}{waiting}"
    cut = f", {sent.cut_lines:,} of them cut, being too long" if sent.cut_lines else ""
    return f"{sent.lines:,} lines, {sent.size_bytes / 1e6:.1f} MB{cut}{waiting}"


def _reachable_host(spark: SparkSession) -> str:
    """Where Spark's executors find the broker of our own: beside the driver."""
    if (spark.sparkContext.master or LOCAL).startswith("local"):
        return "127.0.0.1"
    return str(spark.conf.get("spark.driver.host"))


def _create_topics(bootstrap_servers: str) -> None:
    with SyncAdmin(bootstrap_servers) as admin:
        for topic in (NewTopic(TOPIC, _PARTITIONS), NewTopic(DEAD_LETTER_TOPIC, 1)):
            try:
                admin.create_topics([topic])
            except TopicAlreadyExists:
                continue  # by an earlier run in this workspace
