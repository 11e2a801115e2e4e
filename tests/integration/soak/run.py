"""One run: faults for as long as was asked for, then quiet, then the account."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tests.integration.soak.faults import Faults
from tests.integration.soak.verdict import Judged, judge
from tests.integration.soak.work import Work
from tests.kit.processes.cluster_process import ClusterProcess, started
from tests.kit.processes.stepped_clock import SteppedClock

OPTIONS = (
    "min.insync.replicas=2",
    "default.replication.factor=3",
    "replica.lag.time.max.ms=3000",
    "group.min.session.timeout.ms=500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
    # Segments of the internal topics do not roll here, so their replicas stay equal all the same.
    "log.cleaner.backoff.ms=1000",
    "log.retention.check.interval.ms=1000",
)


class Report(NamedTuple):
    faults: dict[str, int]
    judged: list[Judged]

    @property
    def is_good(self) -> bool:
        """A rule that had nothing to judge says nothing."""
        return all(each.total and not each.wrong for each in self.judged)


# A slow machine needs all of a short run for one fault.
_FAULTS_AT_LEAST = 2


def soak(directory: Path, seed: int, seconds: float, *, with_java: bool = True) -> Report:
    """Cause faults for `seconds`, and at least two.

    Raises AssertionError if something does not make progress in time; all processes are stopped
    in any case.
    """
    cluster = ClusterProcess(directory, 3, *OPTIONS)
    clocks = {
        broker_id: SteppedClock(broker, broker.log.parent)
        for broker_id, broker in cluster.brokers.items()
    }
    with (
        started(cluster),
        Work(cluster.bootstrap_servers, seed, directory, with_java=with_java) as work,
    ):
        began_at = time.monotonic()
        faults = Faults(cluster, clocks, work, seed)
        work.goes_on()
        while (
            time.monotonic() - began_at < seconds or sum(faults.counts.values()) < _FAULTS_AT_LEAST
        ):
            _strike(faults, work, began_at)
        faults.wait_until_in_sync()
        work.goes_on()
        work.finish()
        judged = [*judge(cluster, work), _tracebacks(cluster), _offline(cluster)]
    print(f"{sum(faults.counts.values())} faults: {faults.counts}")
    for each in judged:
        print(each, flush=True)
    return Report(faults.counts, judged)


def _strike(faults: Faults, work: Work, began_at: float) -> None:
    at_s = time.monotonic() - began_at
    name = faults.strike()
    over_s = time.monotonic() - began_at
    work.goes_on()
    if faults.waits_for_all():
        faults.wait_until_in_sync()
    on_s = time.monotonic() - began_at
    print(f"{at_s:7.1f} s  {name}, {over_s - at_s:.1f} s; all go on after {on_s - over_s:.1f} s",
          flush=True)  # fmt: skip


def _tracebacks(cluster: ClusterProcess) -> Judged:
    """No broker may have met what it did not expect."""
    lines = _logged(cluster)
    wrong = [where for where, line in lines if line.startswith("Traceback")]
    return Judged("lines of the brokers' logs are no stack traces", len(lines), wrong)


def _offline(cluster: ClusterProcess) -> Judged:
    """Every disk is healthy here."""
    lines = _logged(cluster)
    wrong = [f"{where}: {line}" for where, line in lines if " is offline" in line]
    return Judged("lines of the brokers' logs take nothing offline", len(lines), wrong)


def _logged(cluster: ClusterProcess) -> list[tuple[str, str]]:
    """Where each line stands, and the line."""
    return [
        (f"broker {broker_id}, line {number} of its log", line)
        for broker_id, broker in cluster.brokers.items()
        for number, line in enumerate(broker.log.read_text().splitlines(), 1)
    ]
