"""Applies the controller's decisions about which partitions this broker hosts and in which roles.

LeaderAndIsr, UpdateMetadata and StopReplica requests arrive as values. Log directories and roles
are changed only by this module, both on a standalone broker and in a cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.broker.partitions.directory_failure import DirectoryFailures
from barnabas.broker.partitions.log_changes import LogChanges
from barnabas.broker.partitions.replica_removal import follows
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.broker.runtime.steps import Steps, at_once, in_turns
from barnabas.broker.state_changes import RoleChange
from barnabas.broker.state_events import report_roles
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import NO_LEADER, PartitionImage, TopicImage
from barnabas.errors import (
    NONE,
    InconsistentTopicId,
    InvalidTopic,
    KafkaStorageError,
    is_out_of_descriptors,
)
from barnabas.storage.directory import DirectoryError
from barnabas.types import NO_TOPIC_ID, TopicPartition, may_be_same_topic

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica, ReplicaClasses, ReplicaHost
    from barnabas.broker.partitions.replica_listener import ReplicaListener

_log = logging.getLogger(__name__)

Codes = dict[TopicPartition, int]

_AGAIN_AFTER_S = 1.0  # retry interval when no descriptor is free
_PARTITIONS_PER_TURN = 16  # each may need file operations; other tasks run in between


class _Unhosted(Exception):
    """Raised if no file descriptor is left for creating or changing a replica's files."""


class DeferredStates:
    """The partition states that could not be applied because no file descriptors were left.

    This is not a disk failure, so nothing goes offline. The controller gets a success response, and
    applying each state is tried again every second. Until it succeeds, clients get
    NOT_LEADER_OR_FOLLOWER. For each partition, only the latest state is kept.
    """

    __slots__ = ("_is_closed", "_requests", "_retry", "_task", "_timer")

    def __init__(self, retry: Callable[[TopicPartition], Awaitable[None]]) -> None:
        """`retry` applies a partition's state if it is still deferred.

        It may defer the state again.
        """
        self._retry = retry
        self._requests: dict[TopicPartition, LeaderAndIsr] = {}  # of one partition each
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._requests)

    def get(self, name: TopicPartition) -> LeaderAndIsr | None:
        """Return the deferred state of the partition, as a request from the controller that sent
        it.
        """
        return self._requests.get(name)

    def put_off(self, request: LeaderAndIsr, state: PartitionState) -> None:
        self._requests[state.topic_partition] = request._replace(partitions=(state,))
        self._wait()

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """Stop retrying these partitions, because they have been stopped or have a newer state."""
        for name in names:
            self._requests.pop(name, None)

    async def close(self) -> None:
        """Stop all retries."""
        self._is_closed = True
        self._requests.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wait(self) -> None:
        if self._timer is None and self._task is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_AGAIN_AFTER_S, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._try_again())

    async def _try_again(self) -> None:
        try:
            for name in list(self._requests):
                await self._retry(name)
        finally:
            self._task = None
            if self._requests:
                self._wait()


class RoleChanges:
    """Applies LeaderAndIsr and StopReplica in steps, one request at a time."""

    __slots__ = (
        "_changes",
        "_classes",
        "_failures",
        "_has_unread",
        "_host_parts",
        "_listeners",
        "_proposals",
        "_removal",
        "_replicas",
        "_unplaced",
        "deferred",
        "line",
    )

    def __init__(  # noqa: PLR0913  (the last one is an option)
        self,
        replicas: Replicas,
        failures: DirectoryFailures,
        proposals: AlterPartitionQueue,
        listeners: Sequence[ReplicaListener],
        unplaced: UnplacedLogs,
        keep_objects: Callable[[], None],
        classes: ReplicaClasses | None = None,
    ) -> None:
        self._replicas = replicas
        self._classes = classes
        self._failures = failures
        self._removal = failures.removal
        self._proposals = proposals
        self._host_parts: ReplicaHost | None = None
        self._listeners = listeners
        self._unplaced = unplaced
        self._changes = LogChanges(replicas, failures, keep_objects)
        # The contents of a directory that failed before it was read are unknown.
        self._has_unread = bool(replicas.store.directories.failed)
        self.deferred = DeferredStates(self._retry)
        """The states that are waiting for file descriptors.

        When a partition is stopped, its state is dropped.
        """
        self.line = asyncio.Lock()
        """The lock that is held while roles are changed over several turns of the loop.

        The next change waits for this lock.
        """

    # --- LeaderAndIsr ----------------------------------------------------------------------------

    def apply_leader_and_isr(self, request: LeaderAndIsr) -> Codes:
        """Run `leader_and_isr` without letting other tasks run in between."""
        return at_once(self.leader_and_isr(request))

    def leader_and_isr(self, request: LeaderAndIsr) -> Steps[Codes]:
        """Host, lead or follow partitions as the controller decides, and return an error code for
        each.

        If the leader epoch or partition epoch in the request is older than the known one, nothing
        is changed.
        """
        codes: Codes = {}
        role_changes: list[RoleChange] = []
        view = self._replicas.view
        # If there is a log of another topic with the same name, set it aside before creating a log
        # for this topic.
        yield from self._changes.set_strays_aside(request, view.broker_epoch)
        yield from self._changes.set_damaged_aside(request)
        yield from self._make_logs(request)
        for done, state in enumerate(request.partitions, 1):
            codes[state.topic_partition] = self._apply(request, state, role_changes)
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
        report_roles(self._replicas.events, _log, request, role_changes)
        # A directory may have failed after its partitions were given their roles.
        gone = self._replicas.offline & codes.keys()
        codes.update(dict.fromkeys(gone, KafkaStorageError.code))
        return codes

    def _make_logs(self, request: LeaderAndIsr) -> Steps[None]:
        """Create all missing logs before writing to any of them, so that there is only one wait for
        the disk.

        The logs are hosted without a leader at first. If a log cannot be created, another attempt
        is made when the role is assigned.
        """
        replicas, logs = self._replicas, self._replicas.store.logs
        places = ((each, each.topic_partition) for each in request.partitions)
        missing = [each for each, name in places if replicas.get(name) is None and name not in logs]
        yield from self._changes.lay_out(missing)
        for done, state in enumerate(missing, 1):
            with suppress(_Unhosted, InvalidTopic):
                self._try_to_host(state)
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
            self._changes.keep(done)
        if missing:
            yield from self._changes.note_made()

    async def _retry(self, name: TopicPartition) -> None:
        """Apply the deferred state of the partition, if there still is one."""
        async with self.line:
            request = self.deferred.get(name)
            if request is None:
                return
            try:
                steps = self.leader_and_isr(request)
                await in_turns(steps, self._replicas.threads.background)
            except OSError as error:
                _log.warning("cannot host %s yet: %s", name, error)

    def _apply(
        self, request: LeaderAndIsr, state: PartitionState, role_changes: list[RoleChange]
    ) -> int:
        """Apply the state of one partition, and return its error code."""
        name = state.topic_partition
        self.deferred.forget([name])
        replica = self._replicas.get(name)
        try:
            if replica is None:
                replica = self._try_to_host(state)
        except _Unhosted:
            self.deferred.put_off(request, state)
            return NONE
        except InvalidTopic as error:
            _log.error("rejecting a partition in the controller's request: %s", error)
            return InvalidTopic.code
        if replica is None:
            return KafkaStorageError.code
        # The request is meant for another topic with the same name (KIP-516; see
        # `set_strays_aside`).
        if not may_be_same_topic(replica.partition.topic_id, state.topic_id):
            return InconsistentTopicId.code
        if not self._give_topic_id(replica, state.topic_id):
            return KafkaStorageError.code
        if state.partition.leader != NO_LEADER:
            self._unplaced.on_placed([name])
        partition, image = replica.partition, state.partition
        # A controller sends unanswered requests again, so the state may be outdated or the same as
        # before.
        if (image.leader_epoch, image.partition_epoch) <= (
            partition.leader_epoch,
            partition.partition_epoch,
        ):
            return NONE
        before = partition.leader, partition.leader_epoch
        try:
            self._take_role(replica, image)
        except OSError as error:
            replica.fail(error)
            if not is_out_of_descriptors(error):
                return KafkaStorageError.code
            self.deferred.put_off(request, state)
            return NONE
        if image.leader_epoch > before[1]:
            end = replica.log.log_end_offset
            role_changes.append(RoleChange(partition, image, end, *before, state.cause))
        return NONE

    def _take_role(self, replica: Replica, image: PartitionImage) -> None:
        """Become leader or follower in a new leader epoch, or apply a new ISR in the current leader
        epoch.
        """
        if image.leader == self._replicas.view.broker_id:
            self._lead(replica, image)
        else:
            self._follow(replica, image)

    def _follow(self, replica: Replica, image: PartitionImage) -> None:
        partition = replica.partition
        is_new = image.leader_epoch > partition.leader_epoch
        was_following = follows(replica)
        partition.become_follower(image)
        self._replicas.role_changed(replica)
        # Within a leader epoch, the ISR or the replicas may change, but the leader does not.
        if not is_new:
            return
        for listener in self._listeners:
            listener.on_left(replica)
        # Waiting producers and readers must find the new leader.
        replica.on_stopped()
        for listener in self._listeners:
            if image.leader != NO_LEADER:
                listener.on_following(replica, image.leader)
            elif was_following:
                listener.on_unfollowing(replica)

    def _lead(self, replica: Replica, image: PartitionImage) -> None:
        log, partition = replica.log, replica.partition
        is_new = image.leader_epoch > partition.leader_epoch
        if follows(replica):
            # Stop the fetcher before assigning the leader epoch, so that no more records from the
            # old leader are appended after that.
            for listener in self._listeners:
                listener.on_unfollowing(replica)
        if is_new:
            # Assign the epoch before anything is appended, because an epoch starts at the log end
            # that its leader found.
            log.assign_leader_epoch(image.leader_epoch)
        replica.adding = image.adding
        now_ms = self._replicas.clock.monotonic_ms()
        # The high watermark can advance immediately, for example with an ISR of one (RE-5).
        effects = partition.become_leader(image, log.log_end_offset, now_ms)
        self._replicas.role_changed(replica)
        if is_new:
            replica.leads()
        replica.carry_out(effects)
        # If the ISR has become too small, waiting requests with acks=all fail.
        replica.isr_changed()
        if is_new:
            for listener in self._listeners:
                listener.on_leading(replica)

    # --- hosting ---------------------------------------------------------------------------------

    def _try_to_host(self, state: PartitionState) -> Replica | None:
        """Host a replica, or return None if the disk fails.

        Raises _Unhosted if no descriptor is left.
        """
        name = state.topic_partition
        if self._replicas.is_offline(name):
            return None
        try:
            return self._host(state)
        except DirectoryError as error:
            self._replicas.mark_offline(name)
            self._failures.on_error(error.directory, error)
        except OSError as error:
            _log.error("cannot host %s: %s", name, error)
            self._replicas.mark_offline(name)
        return None

    def _give_topic_id(self, replica: Replica, topic_id: bytes) -> bool:
        """Store the id of a topic that had none when the replica was hosted. Return whether the
        disk allowed it.
        """
        partition = replica.partition
        if partition.topic_id != NO_TOPIC_ID or topic_id == NO_TOPIC_ID:
            return True
        try:
            if replica.log.topic_id is None:
                self._replicas.store.topic_ids.give(replica.topic_partition, topic_id)
        except OSError as error:
            replica.fail(error)
            return False
        partition.topic_id = topic_id
        return True

    def _host(self, state: PartitionState) -> Replica:
        name = state.topic_partition
        replicas, store = self._replicas, self._replicas.store
        config = replicas.log_config(name.topic, self._overrides(state))
        log = store.logs.get(name)
        try:
            # Imported with the first partition, which also needs a file descriptor.
            from barnabas.broker.partitions.replica import OWN_CLASSES, ReplicaHost

            if log is None:
                log = store.make(name, state.topic_id, config, is_new=state.is_new)
                self._changes.made[name] = replicas.view.broker_epoch
            elif log.topic_id is None and state.topic_id != NO_TOPIC_ID:
                store.topic_ids.give(name, state.topic_id)
        except OSError as error:
            if replicas.is_short_of_descriptors(error):
                raise _Unhosted from error
            raise
        else:
            log.config = config  # it was opened before its settings were known
        # The checkpoint may be below the log start after a deletion, and above the log end after a
        # crash. Clamp the high watermark between the two (RE-12).
        checkpointed = store.high_watermarks.get(name, 0)
        classes = self._classes or OWN_CLASSES
        partition = classes.partition(
            name,
            replicas.view.broker_id,
            min_insync_replicas=config.min_insync_replicas,
            high_watermark=max(log.log_start_offset, min(checkpointed, log.log_end_offset)),
            lag_time_max_ms=replicas.config.int("replica.lag.time.max.ms"),
            topic_id=state.topic_id,
        )
        if self._host_parts is None:
            self._host_parts = ReplicaHost(
                replicas.dirty, replicas.clock, self._proposals, self._failures, replicas.traffic
            )
        replica = classes.replica(log, partition, self._host_parts)
        replicas.add(replica)
        return replica

    def _overrides(self, state: PartitionState) -> Mapping[str, str]:
        """Return the topic's settings, which may be newer than the settings in the request."""
        topic = self._replicas.view.image.topics.get(state.topic_partition.topic)
        if topic is None or topic.topic_id != state.topic_id:
            return state.topic_config
        return topic.config

    # --- StopReplica and UpdateMetadata ----------------------------------------------------------

    def apply_stop_replica(self, request: StopReplica) -> Codes:
        """Run `stop_replica` without letting other tasks run in between."""
        return at_once(self.stop_replica(request))

    def stop_replica(self, request: StopReplica) -> Steps[Codes]:
        """Stop hosting partitions, delete their data if requested, and return an error code for
        each.

        A log in an offline directory is reported as not deleted, because it would be there again
        once the disk is back. A deletion is not reported until it is durable. Otherwise, the old
        log could be back after a power failure, at a time when its name may already belong to
        another topic.
        """
        codes: Codes = {}
        deleted: dict[TopicPartition, Path] = {}
        replicas, store = self._replicas, self._replicas.store
        for done, name in enumerate(request.partitions, 1):
            # Do not report the log as deleted. It would be there again once its disk is back, at a
            # time when its name may belong to another topic.
            if self._is_out_of_reach(name, request.delete):
                codes[name] = KafkaStorageError.code
                continue
            codes[name] = NONE
            replicas.forget_offline(name)
            replica = replicas.get(name)
            if replica is not None:
                self._removal.remove(replica)
            if request.delete and (name in store.logs or name in store.damaged):
                home = self._changes.delete(name)
                if home is None:
                    codes[name] = KafkaStorageError.code
                else:
                    deleted[name] = home
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
        yield from self._changes.sync_names(dict.fromkeys(deleted.values()))
        for name, home in deleted.items():
            # The sync failed, so a power failure could undo the deletion.
            if home not in store.directories.online:
                replicas.mark_offline(name)
                codes[name] = KafkaStorageError.code
        if request.delete:
            self._unplaced.on_placed(name for name, code in codes.items() if code == NONE)
        return codes

    def stop_what_moved(self, topics: Iterable[TopicImage]) -> None:
        """Stop hosting any partitions of these topics that have been moved to other brokers.

        A broker that could not be reached when they were moved never receives the StopReplica. It
        would continue to serve the partitions that it led, and would acknowledge records that no
        other replica receives. The log is kept.
        """
        broker_id = self._replicas.view.broker_id
        for topic in topics:
            for number, partition in topic.partitions.items():
                if broker_id in partition.replicas:
                    continue
                if self.deferred:
                    self.deferred.forget([TopicPartition(topic.name, number)])
                replica = self._replicas.get((topic.name, number))
                if replica is None:
                    continue
                known = replica.partition
                # Keep the partition if a newer LeaderAndIsr has assigned it to this broker, because
                # images and roles arrive in separate requests.
                is_other = not may_be_same_topic(known.topic_id, topic.topic_id)
                if is_other or known.leader_epoch < partition.leader_epoch:
                    _log.warning(
                        "%s was reassigned to other brokers; removing its replica",
                        replica.topic_partition,
                    )
                    self._removal.remove(replica)

    def _is_out_of_reach(self, name: TopicPartition, delete: bool) -> bool:
        """Return whether a replica that is to be stopped may be in an offline directory."""
        if delete and name in self._replicas.store.damaged:
            return False
        may_be_unread = delete and self._has_unread
        is_offline = self._replicas.is_offline(name)
        return name not in self._replicas.store.logs and (is_offline or may_be_unread)
