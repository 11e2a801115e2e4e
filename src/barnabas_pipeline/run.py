"""Performs a run, once or as a service: broker, collector, Spark job, summary and report.

All persistent state is in the workspace, so the next run continues where this one stopped, no
matter how it ended.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.config import of_every_client
from barnabas.client.sync.producer import SyncAdmin
from barnabas.counted import counted
from barnabas.errors import ConfigError, TopicAlreadyExists
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.alerts.rules import Rules
from barnabas_pipeline.alerts.watch import Watch
from barnabas_pipeline.application import Application, Collecting, Report, Source
from barnabas_pipeline.job import Job
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.rejections import complaint
from barnabas_pipeline.session import LOCAL, SHORT_LIVED, start_session
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.stop import Stop
from barnabas_pipeline.summary import Steps, account
from barnabas_pipeline.workspace import Workspace
from pyspark_barnabas.java import provide_java

_TRIGGER_S = 5.0
_POLL_S = 1.0
_LOOK_S = 1
_REPORT_EVERY_S = 10
# A dead leader is replaced only when its session expires, after 18 s by default.
_CLUSTER_PATIENCE_S = 60.0
_PATIENCE_S = 15.0


class Options(NamedTuple):
    """The command-line options."""

    input: Path | None  # None if the input is generated
    lines: int
    seed: int
    master: str
    is_service: bool
    port: int  # 0 for any free port
    max_records_per_batch: int
    bootstrap_servers: str | None = None  # None if the run starts its own broker
    show_addresses: bool = False  # on the page
    is_fed_by_others: bool = False  # nothing is collected; other programs send to the topic
    client_options: Mapping[str, str] = {}
    """Options for every client of the cluster, under Kafka's names."""
    alerts: Rules | None = None


class Run:
    """A run in a locked workspace."""

    def __init__(
        self, application: Application, options: Options, workspace: Workspace, stop: Stop
    ) -> None:
        self._application = application
        self._options = options
        self._workspace = workspace
        self._stop = stop
        self._steps = Steps(sys.stdout)
        self._watch: Watch | None = None
        if options.alerts is not None:
            self._watch = Watch(options.alerts, workspace.tables, application.definition.name)

    def run(self) -> bool:
        """Run all steps, and return whether all lines are accounted for.

        Raises `ConfigError` (also if no line is valid), another `BarnabasError`, `OSError`, or an
        exception from Spark.
        """
        provide_java(os.environ)  # otherwise, a missing Java would be noticed too late
        path = None if self._options.is_fed_by_others else self._input()
        before = self._accounts()
        with self._brokers() as servers:
            self._create_topics(servers)
            with self._collecting(servers, path) as collecting:
                if path is not None:
                    with self._steps.step("collected", "sending the lines") as results:
                        results.append(collecting.collect())
                self._process(servers, collecting, path)
                sent_lines = collecting.sent_lines()
        return self._conclude(before, sent_lines)

    def _collecting(self, servers: str, path: Path | None) -> AbstractContextManager[Collecting]:
        if path is None:
            return nullcontext(_Others())
        is_own = self._options.bootstrap_servers is None
        patience_s = _PATIENCE_S if is_own else _CLUSTER_PATIENCE_S
        source = Source(
            servers,
            self._application.topic,
            path,
            self._workspace,
            patience_s,
            self._client_options(),
        )
        return self._application.collecting(source)

    def _client_options(self) -> dict[str, Any]:
        return of_every_client(self._options.client_options)

    @contextmanager
    def _brokers(self) -> Iterator[str]:
        """Yield the addresses of the brokers of a cluster, or of our own broker, which runs until
        the block ends."""
        servers = self._options.bootstrap_servers
        if servers is None:
            self._workspace.check_own_broker()
            with barnabas.Broker(self._workspace.broker, config=self._listeners()) as broker:
                self._steps.show("broker", f"{broker.bootstrap_servers}, log in {broker.data_dir}")
                yield broker.bootstrap_servers
            return
        with SyncAdmin(servers, **self._client_options()) as admin:
            cluster = admin.describe_cluster()
        self._workspace.check_cluster(cluster.cluster_id)
        names = ", ".join(f"{broker.host}:{broker.port}" for broker in cluster.brokers)
        self._steps.show("cluster", f"{cluster.cluster_id}: {names}")
        yield servers

    def _listeners(self) -> dict[str, str]:
        # Executors on other machines must also reach the broker.
        host = "127.0.0.1" if self._options.master.startswith("local") else "0.0.0.0"
        return {"listeners": f"PLAINTEXT://{host}:{self._options.port}"}

    def _input(self) -> Path:
        given = self._options.input
        if given is not None:
            # Check the input first, so as not to start a broker and Spark for nothing.
            self._application.check_input(given)
            self._steps.show("input", str(given))
            return given
        lines, seed = self._options.lines, self._options.seed
        path = self._workspace.input_path(
            self._application.generated.format(lines=lines, seed=seed)
        )
        with self._steps.step("input", "generating") as results:
            if not path.exists():
                self._application.generate(path, lines, seed)
            results.append(f"{path}, generated: {counted(lines, 'line')}, seed {seed}")
        return path

    def _process(self, servers: str, collecting: Collecting, path: Path | None) -> None:
        with self._stop.patiently(), self._steps.step("spark", "starting") as results:
            spark = self._session()
            results.append(f"{spark.version} on {spark.sparkContext.master}")
        try:
            with self._stop.patiently():
                self._run_job(spark, servers, collecting, path)
        finally:
            spark.stop()

    def _session(self) -> SparkSession:
        spark = start_session(
            self._application.title,
            master=self._options.master,
            settings={} if self._options.is_service else SHORT_LIVED,
            log=self._workspace.spark_log,
            keep_open=(self._workspace.lock_fd,),
        )
        self._stop.listen()  # PySpark has replaced the handler
        return spark

    def _run_job(
        self, spark: SparkSession, servers: str, collecting: Collecting, path: Path | None
    ) -> None:
        if self._options.bootstrap_servers is None:
            servers = f"{_reachable_host(spark)}:{servers.rpartition(':')[2]}"
        job = Job(
            self._application.definition,
            bootstrap_servers=servers,
            topic=self._application.topic,
            dead_letter_topic=self._application.dead_letter_topic,
            tables=self._workspace.tables.resolve(),
            checkpoint=self._workspace.checkpoint.resolve(),
            max_records_per_batch=self._options.max_records_per_batch,
            client_options=self._options.client_options,
        )
        if self._options.is_service:
            self._serve(job.start(spark, every_seconds=_TRIGGER_S), collecting, path)
        else:
            with self._steps.step("processed", "filling the tables") as results:
                results.append(self._drain(job.start(spark)))

    def _drain(self, query: StreamingQuery) -> str:
        while not query.awaitTermination(_LOOK_S):
            if self._stop.requested.is_set():
                _end(query)
                raise KeyboardInterrupt
        batches = len([progress for progress in query.recentProgress if progress["numInputRows"]])
        return counted(batches, "batch", "batches")

    def _serve(self, query: StreamingQuery, collecting: Collecting, path: Path | None) -> None:
        what = path or f"what is sent to {self._application.topic}"
        self._steps.show("service", f"following {what}; press Ctrl-C to stop")
        report_at_s = 0.0
        reported = Accounts()
        is_complete = True
        while not self._stop.wait(_POLL_S):
            collecting.poll()
            if not query.isActive:
                query.awaitTermination()  # raises its error
                return
            accounts = self._accounts()
            # Incidents that a sink did not accept are sent again, even without new lines.
            if time.monotonic() < report_at_s or (accounts == reported and is_complete):
                continue
            is_complete = self._alert()
            if accounts == reported:
                report_at_s = time.monotonic() + _REPORT_EVERY_S
                continue
            began_s = time.monotonic()
            self._report(refresh_s=_REPORT_EVERY_S)
            reported = accounts
            # Rendering takes at most a fifth of the time.
            took_s = time.monotonic() - began_s
            report_at_s = time.monotonic() + max(_REPORT_EVERY_S, 4 * took_s)
            self._steps.show("report", f"{account(accounts)}  ({took_s:.1f} s)")
        _end(query)

    def _accounts(self) -> Accounts:
        return read_accounts(self._snapshot())[0]

    def _snapshot(self) -> Snapshot:
        return Snapshot(self._workspace.tables, self._application.definition.layout)

    def _report(self, refresh_s: int | None = None) -> Report:
        now = datetime.now().astimezone()
        options = PageOptions(now, refresh_s, self._options.show_addresses)
        return self._application.write_report(self._snapshot(), self._workspace.report, options)

    def _alert(self) -> bool:
        """Send the due alerts, and return whether all have been sent."""
        snapshot = self._snapshot()
        if self._watch is None or snapshot.control is None:
            return True
        found = self._watch.follow(snapshot, datetime.now(UTC))
        firing = sum(each.incident.end is None for each in found.known)
        if found.sent or found.failures:
            text = f"{counted(firing, 'incident')} firing, {counted(found.sent, 'notice')} sent"
            self._steps.show("alerts", "; ".join((text, *found.failures)))
        return found.is_complete

    def _conclude(self, before: Accounts, sent_lines: int | None) -> bool:
        with self._steps.meanwhile("report", "rendering"):
            total, summary, letters, failure, repeated = self._report()
        self._alert()
        self._steps.show("", "")
        if before.read:
            self._steps.show("this run", account(total.minus(before)))
        self._steps.show("in all" if before.read else self._application.counted, account(total))
        for label, text in summary:
            self._steps.show(label, text)
        self._steps.show("tables", str(self._workspace.tables))
        self._steps.show("report", str(self._workspace.report))
        what = self._application.counted.removesuffix("s")
        if (why := complaint(total, letters, what)) is not None:
            raise ConfigError(f"{why}; {self._application.expected}")
        if failure is not None:
            raise ConfigError(failure)
        # A service may be stopped while lines are in transit; other senders do not report the
        # number of their lines.
        if self._options.is_service or sent_lines is None:
            return total.balance
        # Exclude lines sent twice, because the collector counts each line once, even if it is
        # resent.
        arrived = total.valid + total.dead_letters + repeated
        if sent_lines > arrived:
            lost = counted(sent_lines - arrived, "line")
            self._steps.show("missing", f"{lost} sent, but not found in the tables")
        return total.balance and sent_lines <= arrived

    def _create_topics(self, bootstrap_servers: str) -> None:
        own = self._application
        with SyncAdmin(bootstrap_servers, **self._client_options()) as admin:
            for topic in (NewTopic(own.topic, own.partitions), NewTopic(own.dead_letter_topic, 1)):
                try:
                    admin.create_topics([topic])
                except TopicAlreadyExists:
                    continue  # an earlier run has created it


class _Others:
    """Implements `Collecting` for lines that are sent by other programs."""

    def collect(self) -> str:
        return ""

    def poll(self) -> None:
        return

    def sent_lines(self) -> None:
        return


def _end(query: StreamingQuery) -> None:
    """Stop the query, interrupting the current batch; the next run repeats it."""
    # Py4J would log the intended interruption as an error, with a stack trace.
    logging.getLogger("py4j").disabled = True
    query.stop()


def _reachable_host(spark: SparkSession) -> str:
    """Return the host at which Spark's executors can reach our own broker: the driver's host."""
    if (spark.sparkContext.master or LOCAL).startswith("local"):
        return "127.0.0.1"
    return str(spark.conf.get("spark.driver.host"))
