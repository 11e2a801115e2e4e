"""One run: faults for as long as was asked for, then quiet, then the account."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tests.integration.cluster_process import ClusterProcess, cluster_process
from tests.integration.soak.faults import Faults
from tests.integration.soak.verdict import Judged, judge
from tests.integration.soak.work import Work

OPTIONS = (
    "min.insync.replicas=2",
    "default.replication.factor=3",
    "replica.lag.time.max.ms=3000",
    "group.min.session.timeout.ms=500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
    "log.cleaner.enable=false",  # so that replicas of the internal topics are equal, too
)


class Report(NamedTuple):
    faults: dict[str, int]
    judged: list[Judged]

    @property
    def is_good(self) -> bool:
        """A rule that had nothing to judge says nothing."""
        return all(each.count and not each.wrong for each in self.judged)


def soak(directory: Path, seed: int, seconds: float, *, with_java: bool = True) -> Report:
    """AssertionError where something does not get on in time; what ran is ended in any case."""
    with (
        cluster_process(directory, 3, *OPTIONS) as cluster,
        Work(cluster.bootstrap_servers, seed, directory, with_java=with_java) as work,
    ):
        began_at = time.monotonic()
        faults = Faults(cluster, work, seed)
        work.goes_on()
        while time.monotonic() - began_at < seconds:
            _strike(faults, work, began_at)
        faults.wait_until_in_sync()
        work.goes_on()
        work.finish()
        judged = [*judge(cluster, work), _tracebacks(cluster)]
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
    lines = [
        (broker_id, number, line)
        for broker_id, broker in cluster.brokers.items()
        for number, line in enumerate(broker.log.read_text().splitlines(), 1)
    ]
    wrong = [
        f"broker {broker_id}, line {number} of its log"
        for broker_id, number, line in lines
        if line.startswith("Traceback")
    ]
    return Judged("lines of the brokers' logs are no stack traces", len(lines), wrong)
