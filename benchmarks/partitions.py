"""How long many partitions take to be made, led in a new epoch and deleted; how long others wait.

    python -m benchmarks.partitions [--partitions N]

What the controller's LeaderAndIsr and StopReplica cost a broker: directories, logs and roles. The
new leader epoch is given to logs that were flushed before. The longest turn of the loop is what
clients wait for.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from pathlib import Path

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.broker.partitions.directory_failure import DirectoryFailures
from barnabas.broker.partitions.replica_removal import ReplicaRemoval
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.partitions.role_changes import RoleChanges
from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.broker.runtime.steps import in_turns
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig, LogConfig
from barnabas.metrics import Registry
from barnabas.records.record import BatchBuilder
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show
from benchmarks.truncation import longest_turn

PARTITIONS = 1_000
_TOPIC_ID = bytes(range(16))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    show(f"{options.partitions} partitions", measure(options.partitions), options.json)


def measure(partitions: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory:
        files = OsFiles()
        store = LogStore.open(files, [Path(directory)], config=LogConfig(), broker_id=0, now_ms=0)
        roles = _role_changes(store)
        names = tuple(TopicPartition("t", number) for number in range(partitions))

        def leading(epoch: int, *, is_new: bool) -> LeaderAndIsr:
            led = PartitionImage(0, epoch, (0,), (0,), epoch, 1)
            states = (PartitionState(name, _TOPIC_ID, led, {}, is_new) for name in names)
            return LeaderAndIsr(1, 1, tuple(states))

        made = asyncio.run(longest_turn(in_turns(roles.leader_and_isr(leading(0, is_new=True)))))
        for log in store.logs.values():
            builder = BatchBuilder(0, -1, -1, -1)
            builder.append(0, None, b"x")
            log.append(memoryview(bytearray(builder.build())), 0, 0)
            log.flush()
        led = asyncio.run(longest_turn(in_turns(roles.leader_and_isr(leading(1, is_new=False)))))
        stop = StopReplica(1, 1, names, delete=True)
        deleted = asyncio.run(longest_turn(in_turns(roles.stop_replica(stop))))
        store.close()
    figures = []
    for what, (took_s, longest_s) in (
        ("made", made),
        ("led in a new epoch", led),
        ("deleted", deleted),
    ):
        figures += [
            Figure(what, "s", took_s, partitions / 1_000),
            Figure(f"{what}: longest turn", "s", longest_s, 0.02),
        ]
    return figures


def _role_changes(store: LogStore) -> RoleChanges:
    """Those of a broker's process: see `barnabas.broker.parts`."""
    config = CurrentConfig(BrokerConfig({}))
    metrics = Registry()
    replicas = Replicas(ClusterView(0), store, config, SystemClock(), metrics)
    failures = DirectoryFailures(ReplicaRemoval(replicas, ()))
    queue = AlterPartitionQueue(metrics)
    return RoleChanges(replicas, failures, queue, (), UnplacedLogs(), gc.freeze)


if __name__ == "__main__":
    main()
