"""What a real Kafka 3.9.1 wrote into ZooKeeper while brokers were killed, stopped and moved.

Each timeline is what a watcher saw. Brokers that come and go, new controllers and topics are passed
to the machine as they were seen; what people did (the timelines' marks) is scripted here by its
time. Every state that was seen must be one that the machine writes, byte for byte and at the same
version. A watcher does not see every state, but versions show how many there were.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrMember, IsrProposal, StopReplica
from barnabas.cluster.image import NO_LEADER, BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.store import Check, Create, Set
from barnabas.controller.controller import Controller, Decision
from barnabas.types import TopicPartition

TOPICS = ("r3", "move", "gone", "u")
CLUSTER_ID = "XCO8KmIuT62m_iTEJQMzvg"

Action = Callable[["Stage"], None]


class Stage:
    """A controller, or none for the moment, and what has been written so far."""

    def __init__(self) -> None:
        self.image = ClusterImage(CLUSTER_ID, -1, 0, {}, {}, {})
        self.controller: Controller | None = None
        self.live: dict[int, BrokerImage] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.written: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.topics: dict[str, list[bytes]] = defaultdict(list)
        self.stops: list[StopReplica] = []
        self.notes: list[str] = []
        self._czxids = count(100)

    @property
    def elected(self) -> Controller:
        assert self.controller is not None
        return self.controller

    def carry_out(self, decision: Decision) -> None:
        for operation in decision.operations:
            if isinstance(operation, Set) and operation.path.endswith("/state"):
                versions = self.written[operation.path]
                assert operation.version == max(versions), operation
                versions[operation.version + 1] = operation.data or b""
            elif isinstance(operation, Create) and operation.path.endswith("/state"):
                self.written[operation.path] = {0: operation.data or b""}
            elif isinstance(operation, Set):
                self.topics[operation.path].append(operation.data or b"")
            else:
                assert isinstance(operation, Create | Check) or self.stops
        self.stops += [send.request for send in decision.requests
                       if isinstance(send.request, StopReplica)]  # fmt: skip
        self.notes += decision.notes
        self.elected.apply(decision)
        self.image = self.elected.image
        for broker_id, request in decision.requests:
            if isinstance(request, StopReplica) and request.delete:
                moved = [
                    each for each in request.partitions if self.elected.awaits(broker_id, each)
                ]
                self.carry_out(self.elected.logs_deleted(broker_id, moved))

    # --- what a watcher sees ---------------------------------------------------------------------

    def broker(self, broker_id: int, data: str | None) -> None:
        self.live.pop(broker_id, None)
        if data is not None:
            czxid = next(self._czxids)
            self.live[broker_id] = layout.decode_broker(broker_id, data.encode(), czxid)
        if self.controller is not None:
            self.carry_out(self.controller.brokers_changed(dict(self.live)))

    def new_controller(self, epoch: int) -> None:
        image = self.image._replace(controller_epoch=epoch, brokers=dict(self.live))
        self.controller = Controller(epoch, image)
        self.carry_out(self.controller.on_elected([]))

    def topic(self, name: str, data: str) -> None:
        """A topic that is new, or has grown; what the controller wrote itself is compared."""
        path = layout.topic_path(name)
        if data.encode() in self.topics[path]:
            self.topics[path].remove(data.encode())
            return
        node = layout.decode_topic(name, data.encode())
        known = self.image.topics.get(name)
        partitions = {n: PartitionImage.never_led(ids) for n, ids in node.replicas.items()}
        partitions.update({} if known is None else known.partitions)
        topic = TopicImage(name, node.topic_id or b"", partitions, self.configs.get(name, {}))
        self.topics[path].clear()
        if self.controller is None:
            self.image = self.image._replace(topics={**self.image.topics, name: topic})
        elif known is None:
            self.carry_out(self.controller.topics_added([topic]))
        else:
            self.carry_out(self.controller.partitions_added([topic]))

    def config(self, name: str, data: str) -> None:
        self.configs[name] = layout.decode_config(name, data.encode())
        if name in self.image.topics and self.controller is not None:
            self.carry_out(self.controller.configs_changed({name: self.configs[name]}))

    def first_state(self, name: TopicPartition, data: str, version: int) -> None:
        """A state from before the timeline."""
        state = layout.decode_state(*name, data.encode())
        topic = self.image.topics[name.topic]
        partition = PartitionImage(
            state.leader, state.leader_epoch, state.isr, topic.partitions[name.partition].replicas,
            version, state.controller_epoch,
        )  # fmt: skip
        partitions = {**topic.partitions, name.partition: partition}
        topics = {**self.image.topics, name.topic: topic._replace(partitions=partitions)}
        self.image = self.image._replace(topics=topics)
        self.written[layout.state_path(*name)][version] = data.encode()

    def state(self, name: TopicPartition, data: str, version: int) -> None:
        """The machine wrote that; or it does, when the leader proposes that ISR."""
        versions = self.written[layout.state_path(*name)]
        if version not in versions:
            seen = layout.decode_state(*name, data.encode())
            before = self.image.topics[name.topic].partitions[name.partition]
            assert (seen.leader, seen.leader_epoch) == (before.leader, before.leader_epoch), data
            self.propose(name, seen.isr)
        assert versions[version].decode() == data

    def propose(self, name: TopicPartition, isr: tuple[int, ...]) -> None:
        topic = self.image.topics[name.topic]
        before = topic.partitions[name.partition]
        members = tuple(IsrMember(each, self.live[each].epoch) for each in isr)
        proposal = IsrProposal(
            name, topic.topic_id, before.leader_epoch, members, before.partition_epoch
        )
        leader = before.leader
        decision, answers = self.elected.isr_proposed(leader, self.live[leader].epoch, [proposal])
        assert answers[name].error_code in (0, 108), answers
        self.carry_out(decision)

    # --- what people did -------------------------------------------------------------------------

    def shut_down(self, broker_id: int) -> None:
        decision, _ = self.elected.shutdown_requested(broker_id, self.live[broker_id].epoch)
        self.carry_out(decision)

    def prefer(self) -> None:
        decision, _ = self.elected.elect_leaders(None, unclean=False)
        self.carry_out(decision)

    def reassign(self, name: TopicPartition, *replicas: int) -> None:
        decision, errors = self.elected.reassign({name: replicas})
        assert errors == {name: None}
        self.carry_out(decision)

    def delete(self, name: str) -> None:
        self.carry_out(self.elected.deletions_requested([name]))

    def deleted(self, name: str) -> None:
        self.carry_out(self.elected.replicas_deleted([name], [layout.topic_path(name)]))


MOVE = TopicPartition("move", 0)
CLUSTER: list[tuple[float, Action]] = [
    (155.4, lambda stage: stage.shut_down(2)),
    (193.1, lambda stage: stage.prefer()),
    (197.7, lambda stage: stage.reassign(MOVE, 2, 3)),
    (205.9, lambda stage: stage.reassign(MOVE, 3, 1)),
    (209.1, lambda stage: stage.prefer()),
    (278.1, lambda stage: stage.delete("gone")),
    (281.9, lambda stage: stage.deleted("gone")),
    (314.5, lambda stage: stage.shut_down(2)),
    (315.3, lambda stage: stage.shut_down(3)),
    (365.8, lambda stage: stage.shut_down(3)),
    (372.5, lambda stage: stage.shut_down(2)),
]
DIVERGE: list[tuple[float, Action]] = [
    (16.8, lambda stage: stage.shut_down(2)),
    (72.3, lambda stage: stage.shut_down(1)),
]


def _play(shared: Path, name: str, actions: list[tuple[float, Action]]) -> Stage:
    text = (shared / "fixtures" / "kafka-3.9" / "zookeeper" / name).read_text()
    stage, waiting = Stage(), list(actions)
    seen = [json.loads(line) for line in text.splitlines()]
    # What was there when the watcher began it saw in no order.
    first = sorted(filter(_is_first, seen), key=_rank)
    for event in [*first, *(each for each in seen if not _is_first(each))]:
        while waiting and event.get("t", 0.0) >= waiting[0][0]:
            waiting.pop(0)[1](stage)
        if "path" in event:
            _see(stage, event)
    assert not waiting
    return stage


def _is_first(event: dict[str, Any]) -> bool:
    return "path" in event and event["t"] < 4


def _rank(event: dict[str, Any]) -> int:
    path: str = event["path"]
    return 0 if path.startswith("/config") else 2 if path.endswith("/state") else 1


def _see(stage: Stage, event: dict[str, Any]) -> None:
    path: str = event["path"]
    data: Any = event.get("data")
    parts = path.split("/")[1:]
    if path == "/controller_epoch":
        if event["op"] == "changed":
            stage.new_controller(int(data))
    elif path == "/controller":
        if event["op"] == "deleted":
            stage.controller = None
    elif parts[:2] == ["brokers", "ids"]:
        stage.broker(int(parts[2]), data)
    elif data is None or len(parts) < 3 or parts[2] not in TOPICS:
        pass
    elif parts[0] == "config":
        stage.config(parts[2], data)
    elif len(parts) == 3:
        stage.topic(parts[2], data)
    elif parts[-1] == "state":
        name = TopicPartition(parts[2], int(parts[4]))
        if _is_first(event):
            stage.first_state(name, data, event["version"])
        else:
            stage.state(name, data, event["version"])


def _last_versions(shared: Path, name: str) -> dict[str, int]:
    text = (shared / "fixtures" / "kafka-3.9" / "zookeeper" / name).read_text()
    last: dict[str, int] = {}
    for event in map(json.loads, text.splitlines()):
        path = event.get("path", "")
        if path.endswith("/state") and path.split("/")[3] in TOPICS and "version" in event:
            last[path] = event["version"]
    return last


@pytest.mark.parametrize(
    ("name", "actions"),
    [("cluster-timeline.jsonl", CLUSTER), ("cluster-diverge-timeline.jsonl", DIVERGE)],
    ids=["cluster", "diverge"],
)
def test_what_kafkas_controller_writes_is_what_ours_writes(
    shared: Path, name: str, actions: list[tuple[float, Action]]
) -> None:
    """ZK-3, RE-10, RE-11, RE-13: leader, ISR and epochs after each kill, return and move."""
    stage = _play(shared, name, actions)
    last = {path: max(versions) for path, versions in stage.written.items()}
    assert last == _last_versions(shared, name), "not one write more than Kafka's"
    assert any("was not in sync" in note for note in stage.notes)


def test_topics_are_moved_in_kafkas_bytes_and_left_behind_by_who_goes(shared: Path) -> None:
    """RE-13"""
    stage = _play(shared, "cluster-timeline.jsonl", CLUSTER)
    assert not stage.topics[layout.topic_path("move")], "each was seen in the timeline"
    stops = [(stop.partitions, stop.delete) for stop in stage.stops if MOVE in stop.partitions]
    assert stops.count(((MOVE,), True)) == 2
    gone = [stop for stop in stage.stops if stop.partitions == (TopicPartition("gone", 0),)]
    assert len(gone) == 3, "two that lived, and the one that came back"
    assert "gone" not in stage.image.topics
    assert stage.image.topics["move"].partitions[1].leader == NO_LEADER
