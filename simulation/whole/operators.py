"""Sends operators' requests to the cluster in a run: each once, with the answers in the story."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.client import Admin
from barnabas.client.admin.configs import TOPIC, ConfigOperation, ConfigResource
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.client.errors import Unreachable
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition
from simulation.options import Fault
from simulation.whole.environment import RETENTION_MS, SHIFTING
from simulation.whole.history import OK
from simulation.whole.plan import ADD_PARTITIONS, DELETE_RECORDS, MOVE_LOG_DIR, TOPIC_CONFIG
from simulation.whole.seams import client_seams

if TYPE_CHECKING:
    from simulation.whole.brokers import Brokers, MachineRoom
    from simulation.whole.environment import Environment
    from simulation.whole.plan import Plan

_REQUEST_TIMEOUT_MS = 2_000
_MOST_PARTITIONS = 3
_SETTINGS = (
    ("retention.ms", str(2 * RETENTION_MS)),
    ("min.insync.replicas", "1"),
    ("retention.ms", str(RETENTION_MS)),
    ("flush.messages", "1"),
    ("segment.bytes", "1024"),
    ("min.insync.replicas", "2"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "delete"),
)


class Operators:
    """All operators. They share a process on a separate machine."""

    def __init__(
        self, room: MachineRoom, brokers: Brokers, plan: Plan, around: Environment
    ) -> None:
        self._loop = room.loop
        self._brokers = brokers
        self._plan = plan
        self._around = around
        self._life = room.network.process("operator")
        self._operations: Mapping[str, Callable[[Admin, Fault], Awaitable[object]]] = {
            "preferred": self._elect,
            "reassign": self._reassign,
            DELETE_RECORDS: self._delete_records,
            ADD_PARTITIONS: self._add_partitions,
            TOPIC_CONFIG: self._configure,
            MOVE_LOG_DIR: self._move,
        }

    async def operate(self, fault: Fault) -> None:
        await self._life.call(self._operate(fault))

    async def _operate(self, fault: Fault) -> None:
        seams = client_seams(self._loop, fault.at_ms, "operator")
        try:
            async with Admin(
                self._brokers.bootstrap_servers,
                seams=seams,
                request_timeout_ms=_REQUEST_TIMEOUT_MS,
            ) as admin:
                await self._operations[fault.kind](admin, fault)
        except (Unreachable, BarnabasError) as error:
            self._around.history.tell("the operator hears: {}", error)

    async def _elect(self, admin: Admin, fault: Fault) -> None:
        await admin.elect_leaders(PREFERRED)

    async def _reassign(self, admin: Admin, fault: Fault) -> None:
        name = TopicPartition("sure", fault.for_ms % self._plan.partitions)
        others = [each for each in self._brokers.by_id if each != fault.first]
        replicas = [fault.first, *others[fault.at_ms % 2 :]][:3]
        await admin.alter_partition_reassignments({name: replicas})

    async def _delete_records(self, admin: Admin, fault: Fault) -> None:
        """Delete the records before some acknowledged record."""
        history = self._around.history
        offsets = [
            each.offset
            for each in history.writings.values()
            if each.outcome == OK and each.name == (SHIFTING, 0) and each.offset >= 0
        ]
        if offsets:
            offset = offsets[fault.at_ms % len(offsets)]
            name = TopicPartition(SHIFTING, 0)
            history.deleted_to[name] = max(history.deleted_to.get(name, 0), offset)
            await admin.delete_records({name: offset})

    async def _add_partitions(self, admin: Admin, fault: Fault) -> None:
        count = self._around.grown.get(SHIFTING, 1) + 1
        if count <= _MOST_PARTITIONS:
            await admin.create_partitions(SHIFTING, count)
            self._around.grown[SHIFTING] = count

    async def _configure(self, admin: Admin, fault: Fault) -> None:
        setting, value = _SETTINGS[fault.for_ms % len(_SETTINGS)]
        await admin.alter_configs(
            ConfigResource(TOPIC, SHIFTING), [ConfigOperation(setting, value=value)]
        )

    async def _move(self, admin: Admin, fault: Fault) -> None:
        """Move a replica of a broker from one log directory to the other, or back if it is
        already moving."""
        directories = (await admin.describe_log_dirs()).get(fault.first, ())
        there = [
            (name, each.path)
            for each in directories
            for name, replica in sorted(each.replicas.items())
            if not replica.is_future
        ]
        if there and len(directories) > 1:
            name, path = there[fault.for_ms % len(there)]
            (other, *_) = (each.path for each in directories if each.path != path)
            await admin.alter_replica_log_dirs(fault.first, {name: other})
