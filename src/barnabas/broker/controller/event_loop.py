"""Runs a single term of a controller, from its election to its end.

    watch fires, request comes -> read what is new -> decide -> commit -> apply -> send

Only one round runs at a time, and a watch only schedules the next round. Requests for a new ISR or
a new leader are also decided in a round. They are answered once the decision has been committed and
delivered.

If leaders have written ISRs themselves since the decision was made (RE-9), the controller reads
those ISRs and decides again. If a commit fails for any other reason, either another broker is the
controller or the state of the store is unknown. In that case, `serve` raises the error, and all
callers get NotController. The term makes no further decisions, and the next term, on this broker or
another one, begins by reading the whole state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller import tool_requests
from barnabas.broker.controller.broker_channels import BrokerChannels
from barnabas.broker.controller.controller_settings import ControllerContext, ControllerSettings
from barnabas.broker.controller.event_queue import EventQueue, Request
from barnabas.broker.controller.registration import Elected, elected_term
from barnabas.broker.controller.state_change_log import (
    log_brokers,
    log_changes,
    log_election,
    log_topics,
)
from barnabas.broker.controller.tool_requests import ToolRequests
from barnabas.broker.controller.topic_deletion import TopicDeletions
from barnabas.broker.controller.topic_nodes import TopicNodes
from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.broker.inter_broker import log_dir_event_notifications as log_dir_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.loading import (
    children,
    load_brokers,
)
from barnabas.cluster.store import BadVersion
from barnabas.controller.broker_versions import why_left_out
from barnabas.controller.controller import Controller, Decision
from barnabas.controller.counts import Counts
from barnabas.controller.decision import Send, split
from barnabas.errors import NONE, KafkaError, KafkaStorageError, NotController
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.controller.log_ends import LogEndQuery
    from barnabas.broker.controller.peer_connection import Codes


_log = logging.getLogger(__name__)

_WATCHED = (
    layout.CONTROLLER,
    layout.BROKER_IDS,
    layout.TOPICS,
    layout.DELETE_TOPICS,
    layout.ISR_CHANGES,
    log_dir_notifications.PATH,
    tool_requests.ELECTION,
    tool_requests.MOVES,
)

_MAX_ATTEMPTS = 5
"""How many times a decision is attempted. If more attempts than this conflict with another writer,
that writer cannot be a leader that is changing its ISR.
"""

_Outcome = tuple[object, KafkaError | None]


class ControllerTerm:
    """A term in which this broker is the controller. Call `begin` and `serve` once each, in this
    order.
    """

    __slots__ = (
        "_channels",
        "_context",
        "_controller",
        "_deletions",
        "_log_end_query",
        "_on_change",
        "_settings",
        "_timer",
        "_tool_requests",
        "_topics",
        "elected",
        "events",
    )

    def __init__(
        self,
        context: ControllerContext,
        settings: ControllerSettings,
        elected: Elected,
        channels: BrokerChannels,
    ) -> None:
        self.elected = elected
        self.events = EventQueue()
        """Receives all events and requests for this controller."""
        self._context = context
        self._settings = settings
        self._channels = channels
        self._controller: Controller | None = None
        self._log_end_query: LogEndQuery | None = None
        self._deletions = TopicDeletions()
        self._topics = TopicNodes(
            context.store,
            context.random,
            context.latest_epoch_of,
            elected.version,
            self.events.topic_changed,
        )
        self._tool_requests = ToolRequests(context.store, elected.version, self._carry_out)
        self._on_change = {path: partial(self.events.path_changed, path) for path in _WATCHED}
        self._timer = self._next_rebalance()

    @property
    def image(self) -> ClusterImage:
        """The cluster as it is after all committed decisions."""
        return self._machine.image

    @property
    def counts(self) -> Counts:
        """The partition counts for monitoring."""
        return self._machine.counts

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why registered brokers are excluded, by broker."""
        return self._machine.left_out

    @property
    def _machine(self) -> Controller:
        if self._controller is None:
            raise NotController(
                "this broker has been elected controller but is still loading the cluster's state"
            )
        return self._controller

    def configure(self, settings: ControllerSettings) -> None:
        """Apply broker settings that have changed."""
        if settings.machine != self._settings.machine and self._controller is not None:
            self.events.defaults_changed = True
            self.events.wake()
        self._settings = settings
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._next_rebalance()

    def _next_rebalance(self) -> asyncio.TimerHandle | None:
        every_s = self._settings.rebalance_every_s
        if not every_s or self.events.ended is not None:
            return None
        return asyncio.get_running_loop().call_later(every_s, self._rebalance_is_due)

    # --- lifecycle -------------------------------------------------------------------------------

    async def begin(self, cluster_id: str, cause: str) -> None:
        """Read the whole state from the store, and return once this broker has applied it.

        `cause` is the reason for the election.
        """
        store = self._context.store
        # Set the watches before reading, so that any change made meanwhile triggers another round.
        for path, callback in self._on_change.items():
            store.watch(path, callback)
        # Use the topic ids that an earlier controller announced, because an old Kafka tool may have
        # removed them from the nodes (KIP-516).
        known = self._context.view.image.topics
        ids = {name: topic.topic_id for name, topic in known.items()}
        topics = await self._topics.unknown((), ids)
        image = ClusterImage(
            cluster_id,
            self._context.view.broker_id,
            self.elected.epoch,
            await load_brokers(store),
            topics,
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._controller = self._new_machine(image)
        known_live = self._context.view.image.brokers
        deleting = await children(store, layout.DELETE_TOPICS)
        await self._carry_out(lambda machine: machine.on_elected(deleting))
        log_election(self._context.events, cause, image, self.image, known_live)
        await self._channels.send(self._removed_topics(), self.image)
        self._query_log_ends()
        # The first round processes the notifications that were written before this term.
        self.events.path_changed(layout.DELETE_TOPICS)
        self.events.path_changed(log_dir_notifications.PATH)
        self.events.path_changed(layout.ISR_CHANGES)
        self.events.path_changed(tool_requests.ELECTION)
        self.events.path_changed(tool_requests.MOVES)
        await self._round()

    def _removed_topics(self) -> list[Send]:
        """Build the removal of topics that only this broker still knows. Other brokers detect
        deletions themselves.
        """
        gone = self._context.view.image.topics.keys() - self.image.topics.keys()
        if not gone:
            return []
        removal = UpdateMetadata.removing(sorted(gone), self.image)
        return [Send(self._context.view.broker_id, removal)]

    def _new_machine(self, image: ClusterImage) -> Controller:
        machine = self._context.new_machine(self.elected.version, image, self._settings.machine)
        machine.topic_nodes_read(self._topics.take_versions())
        return machine

    async def serve(self) -> None:
        """Process events until an error ends the term, and raise that error."""
        while True:
            await self.events.round_due()
            await self._round()

    def close(self, error: Exception) -> None:
        """End the term. All callers that are still waiting get NotController."""
        self.events.end(error)
        if self._timer is not None:
            self._timer.cancel()
        if self._log_end_query is not None:
            self._log_end_query.close()
        resigned = NotController(f"the controller resigned: {error}")
        self.events.close(resigned)
        self._deletions.close(resigned)

    # --- notifications and requests --------------------------------------------------------------

    def _rebalance_is_due(self) -> None:
        self.events.rebalance_is_due = True
        self.events.wake()
        self._timer = self._next_rebalance()

    def is_deletion_blocked(self, topic: str) -> bool:
        """Return whether the deletion of a topic must wait for a failed broker or log directory."""
        return self._deletions.is_blocked(topic, self.image)

    async def until_deleted(self, topic: str) -> None:
        """Wait until the topic has been deleted completely. Raises NotController."""
        await self._deletions.until_removed(topic)

    def on_answer(self, broker_id: int, request: ControlRequest, codes: Codes) -> None:
        """Process a broker's response to a request that was sent in this controller epoch."""
        if self._controller is None:
            # The request was sent in an earlier term, and this term sends everything again.
            return
        if isinstance(request, LeaderAndIsr):
            self._note_reports(broker_id, codes)
        # Nothing waits for a replica that is stopped without being deleted.
        elif isinstance(request, StopReplica) and request.delete:
            self._deletions.on_answer(broker_id, request, codes)
            if self._deletions.without_replicas():
                self.events.wake()
            moved = [name for name in codes if self._machine.awaits(broker_id, name)]
            if moved:
                self.events.logs_deleted(broker_id, moved)

    def _note_reports(self, broker_id: int, codes: Codes) -> None:
        """Record which replicas the broker has lost or hosts again, according to its response."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return
        # Record the broker epoch as well. Before the next round, the broker may leave, or register
        # again with a repaired disk.
        epoch = broker.epoch
        lost, hosted = [], []
        for name, code in codes.items():
            if code == KafkaStorageError.code:
                if self._is_known_lost(broker_id, epoch, name) is False:
                    lost.append(name)
            elif code == NONE and self._is_known_lost(broker_id, epoch, name):
                hosted.append(name)
        if lost:
            self.events.replicas_lost(broker_id, lost, epoch)
        if hosted:
            self.events.replicas_hosted(broker_id, hosted, epoch)

    def _is_known_lost(
        self, broker_id: int, broker_epoch: int, name: TopicPartition
    ) -> bool | None:
        """Return whether the broker's last report describes the replica as lost, or None if the
        partition does not exist.
        """
        topic = self.image.topics.get(name.topic)
        partition = None if topic is None else topic.partitions.get(name.partition)
        if partition is None:
            return None
        reported = self.events.replica_reports.last(broker_id, broker_epoch, name)
        return broker_id in partition.offline_replicas if reported is None else reported

    # --- rounds ----------------------------------------------------------------------------------

    async def _round(self) -> None:
        """Process all events that have occurred since the last round."""
        events = self.events
        events.begin_round()
        changed, events.changed_paths = events.changed_paths, {}
        # A watch fires only once, so set it again before reading.
        for path in changed:
            self._context.store.watch(path, self._on_change[path])
        # Check first whether there is another controller, because a deposed controller must not
        # decide anything.
        if layout.CONTROLLER in changed:
            await self._check_still_elected()
        if events.defaults_changed:
            await self._apply_defaults()
        # Process brokers before topics, because the leader of a new partition must be a live
        # broker.
        if layout.BROKER_IDS in changed:
            await self._process_brokers()
        if events.versions_changed:
            await self._process_versions()
        if layout.TOPICS in changed:
            await self._process_new_topics()
        await self._process_changed_topics()
        await self._process_configs()
        if log_dir_notifications.PATH in changed:
            await self._process_log_dir_events()
        if layout.ISR_CHANGES in changed:
            await self._process_isr_changes()
        await self._process_replica_reports()
        await self._process_deleted_logs()
        await self._process_log_ends()
        # Process requests after the changes in the store, because the changes affect the responses.
        await self._process_requests()
        await self._tool_requests.process(changed, lambda: self.image)
        if events.rebalance_is_due:
            events.rebalance_is_due = False
            percent = self._settings.max_imbalance_percent
            await self._carry_out(lambda machine: machine.rebalance_leaders(percent))
        # Process deletions last, when the topics that can be deleted are known.
        if layout.DELETE_TOPICS in changed:
            await self._process_deletions()
        await self._complete_deletions()
        events.end_round()

    async def _check_still_elected(self) -> None:
        context = self._context
        if await elected_term(context.store, context.view.broker_id) != self.elected:
            raise NotController("another broker has been elected")

    async def _apply_defaults(self) -> None:
        """Apply changed defaults to all topics, and elect leaders as at the start of a term."""
        self.events.defaults_changed = False
        self._machine.configure(self._settings.machine)
        await self._carry_out(lambda machine: machine.on_elected(self._deletions))
        await self._carry_out(lambda machine: machine.deletions_requested(self._deletions))
        self._query_log_ends()

    async def _process_brokers(self) -> None:
        before = self.image
        live = await load_brokers(self._context.store)
        await self._read_isrs_without(
            {
                broker_id
                for broker_id, broker in before.brokers.items()
                if broker_id not in live or live[broker_id].epoch != broker.epoch
            }
        )
        decision = await self._carry_out(lambda machine: machine.brokers_changed(live))
        log_brokers(self._context.events, before, self.image, decision.losses)
        self._query_log_ends()

    async def _process_versions(self) -> None:
        """Exclude brokers that do not support this controller's requests."""
        self.events.versions_changed = False
        for broker_id, (broker_epoch, versions) in sorted(self._channels.versions.items()):
            if broker_id in self.image.brokers and why_left_out(broker_id, versions):
                await self._read_isrs_without({broker_id})
                await self._carry_out(
                    partial(
                        Controller.versions_known,
                        broker_id=broker_id,
                        broker_epoch=broker_epoch,
                        versions=versions,
                    )
                )

    async def _read_isrs_without(self, gone: Set[int]) -> None:
        """Read the ISRs to which a leader may have added a replica on one of these brokers without
        the image showing it.

        A leader announces such a change only after making it (RE-9). Without this step, the replica
        would remain in the ISR even if it had lost records.
        """
        names = [
            TopicPartition(topic.name, number)
            for topic in self.image.topics.values()
            for number, partition in topic.partitions.items()
            if any(each in gone and each not in partition.isr for each in partition.replicas)
        ]
        if names:
            states = await isr_notifications.read_states(self._context.store, names)
            self._machine.states_read(states)

    def _query_log_ends(self) -> None:
        """Start a query if some leaders cannot be elected until log ends are known."""
        peers = self._context.peers
        if peers is None or not self._machine.ends_wanted:
            return
        if self._log_end_query is None or self._log_end_query.is_over:
            from barnabas.broker.controller.log_ends import LogEndQuery  # rarely needed

            self._log_end_query = LogEndQuery(
                peers, self._settings.timeout_ms, self._unknown_ends, self.events.log_ends_read
            )

    def _unknown_ends(self) -> tuple[ClusterImage, frozenset[TopicPartition]]:
        return self.image, self._machine.ends_wanted

    async def _process_new_topics(self) -> None:
        added = await self._topics.unknown(self.image.topics)
        self._machine.topic_nodes_read(self._topics.take_versions())
        if added:
            await self._carry_out(lambda machine: machine.topics_added(list(added.values())))
            log_topics(self._context, self.image, "topic-created", added)

    async def _process_changed_topics(self) -> None:
        """Read the new partitions of topics whose nodes have changed."""
        changed, self.events.changed_topics = self.events.changed_topics, {}
        topics = [
            self.image.topics[name]
            for name in sorted(changed)
            if name in self.image.topics and name not in self._deletions
        ]
        grown = await self._topics.grown(topics)
        self._machine.topic_nodes_read(self._topics.take_versions())
        if grown:
            await self._carry_out(lambda machine: machine.partitions_added(grown))
            names = [each.name for each in grown]
            log_topics(self._context, self.image, "partitions-added", names)

    async def _process_configs(self) -> None:
        names, self.events.changed_configs = self.events.changed_configs, {}
        known = [name for name in sorted(names) if name in self.image.topics]
        if known:
            configs = await self._topics.configs(known)
            await self._carry_out(lambda machine: machine.configs_changed(configs))

    async def _process_log_dir_events(self) -> None:
        """Send all hosted partitions again to each broker that has reported a disk failure.

        The broker's response contains the partitions that it has lost.
        """
        store = self._context.store
        for broker_id in await log_dir_notifications.take(store, self.elected.version):
            # A broker that has left will get all its partitions when it registers again.
            if broker_id in self.image.brokers:
                hosted = log_dir_notifications.everything_hosted(
                    self.image, broker_id, {*self._deletions}
                )
                await self._channels.send([hosted], self.image)

    async def _process_isr_changes(self) -> None:
        """Send all brokers the ISRs that leaders have written themselves (RE-9)."""
        store = self._context.store
        found = await isr_notifications.read_announced(store)
        self._machine.states_read(await isr_notifications.read_states(store, found.partitions))
        await self._carry_out(lambda machine: machine.isrs_announced(found.partitions))
        # Remove the notifications last. If another controller takes over before that, it must
        # process them again.
        await isr_notifications.remove(store, found.paths, self.elected.version)

    async def _process_deleted_logs(self) -> None:
        """Confirm that logs have been deleted.

        As in Kafka, logs that could not be deleted are confirmed too, and become stray logs.
        """
        deleted, self.events.deleted_logs = self.events.deleted_logs, {}
        for broker_id, names in deleted.items():
            await self._carry_out(
                partial(Controller.logs_deleted, broker_id=broker_id, names=names)
            )

    async def _process_replica_reports(self) -> None:
        reports = self.events.replica_reports
        for (broker_id, broker_epoch), reported in reports.take().items():
            lost = [name for name, is_lost in reported.items() if is_lost]
            hosted = [name for name, is_lost in reported.items() if not is_lost]
            for decide, names in (
                (Controller.replicas_offline, lost),
                (Controller.replicas_online, hosted),
            ):
                if names:
                    await self._carry_out(
                        partial(decide, broker_id=broker_id, names=names, broker_epoch=broker_epoch)
                    )
        reports.on_processed()

    async def _process_log_ends(self) -> None:
        read, self.events.log_ends = self.events.log_ends, []
        for ends in read:
            await self._carry_out(partial(Controller.ends_known, ends=ends))

    async def _process_requests(self) -> None:
        events = self.events
        # Requests that arrive during this round wait for the next one. Otherwise, a client that
        # keeps sending requests would delay all other work, such as the handling of a failed
        # broker.
        for _ in range(len(events.requests)):
            # The request stays in the queue until it is answered, if necessary by `close`.
            outcomes: list[_Outcome] = []
            await self._carry_out(partial(_decide, events.requests[0], outcomes))
            events.settle_first(*outcomes[-1])

    async def _process_deletions(self) -> None:
        requested = [
            name
            for name in await children(self._context.store, layout.DELETE_TOPICS)
            if name not in self._deletions
        ]
        if requested:
            for name in requested:
                self._deletions.begin(name, self._machine.with_departing(name))
            await self._carry_out(lambda machine: machine.deletions_requested(requested))

    async def _complete_deletions(self) -> None:
        """Remove the nodes of topics that have no replicas left."""
        names = self._deletions.without_replicas()
        if not names:
            return
        paths = await self._topics.paths_of(names)
        if paths:
            await self._carry_out(lambda machine: machine.replicas_deleted(names, paths))
        self._deletions.on_removed(names)
        log_topics(self._context, self.image, "topic-deleted", names)

    async def _carry_out(self, decide: Callable[[Controller], Decision]) -> Decision:
        """Decide, commit, apply and send, in this order. If the commit fails, nothing changes.

        Return the decision.
        """
        # RE-9: if a leader has written its ISR since the state was read, make the decision again.
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            decision = decide(self._machine)
            overtaken = await self._commit(decision)
            if overtaken is None:
                break
            if attempt == _MAX_ATTEMPTS or not await self._caught_up(decision):
                raise overtaken
        # Apply a decision only once it is committed, and send it only once it is applied.
        self._machine.apply(decision)
        log_changes(self._context.events, self.image.controller_id, decision)
        self._context.unclean_elections.increment(decision.unclean_elections)
        for note in decision.notes:
            _log.warning("%s", note)
        await self._channels.send(decision.requests, self.image)
        return decision

    async def _commit(self, decision: Decision) -> BadVersion | None:
        """Commit the decision.

        Return the error if nothing was committed, possibly because a leader wrote first.
        """
        for number, operations in enumerate(split(decision.operations)):
            # If the term ended between two of the commits, write nothing more.
            if self.events.ended is not None:
                raise self.events.ended
            try:
                await self._context.store.commit(operations)
            except BadVersion as error:
                # The decision can be made again only if the first commit fails. After the first
                # commit, part of the decision has been committed.
                if number == 0 and layout.partition_of_state(error.path) is not None:
                    return error
                raise
        return None

    async def _caught_up(self, decision: Decision) -> bool:
        """Read the state nodes of the failed commit again, and return whether any had changed."""
        names = isr_notifications.states_written(decision.operations)
        states = await isr_notifications.read_states(self._context.store, names)
        return self._machine.states_read(states)


def _decide(request: Request, outcomes: list[_Outcome], machine: Controller) -> Decision:
    """Decide on the request, and append either the response or the raised error to `outcomes`."""
    try:
        decision, answer = request.decide(machine)
    except KafkaError as error:
        outcomes.append((None, error))
        return Decision((), machine.image, ())
    outcomes.append((answer, None))
    return decision
