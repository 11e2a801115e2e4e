"""The requests for a broker that does not answer: bounded, and none has lost its effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.controller.request_backlog import (
    MERGED_AT,
    PendingRequest,
    RequestBacklog,
    merge_requests,
)
from barnabas.broker.inter_broker.control_plane_wire import PARTITIONS_AT_ONCE
from barnabas.broker.inter_broker.update_metadata_wire import update_metadata_request
from barnabas.cluster.controller_requests import (
    WHILE_DELETING,
    ControlRequest,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.types import TopicPartition

EMPTY = ClusterImage.empty()
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def state(name: TopicPartition, leader_epoch: int = 1, *, is_new: bool = False) -> PartitionState:
    partition = PartitionImage(1, leader_epoch, (1, 2), (1, 2), leader_epoch, 1)
    return PartitionState(name, name.topic.encode().ljust(16), partition, {}, is_new)


def host(*states: PartitionState) -> LeaderAndIsr:
    return LeaderAndIsr(1, 1, states)


def stop(name: TopicPartition, leader_epoch: int, *, delete: bool = True) -> StopReplica:
    return StopReplica(1, 1, (name,), delete, {name: leader_epoch})


def topic(name: str, epoch: int = 1, topic_id: str = "") -> TopicImage:
    partition = PartitionImage(1, epoch, (1, 2), (1, 2), epoch, 1)
    return TopicImage(name, (topic_id or name).encode().ljust(16), {0: partition}, {})


def update(
    *topics: TopicImage, removed: Iterable[str] = (), brokers: Iterable[int] = (1, 2)
) -> UpdateMetadata:
    live = tuple(BrokerImage(each, (), None, each) for each in brokers)
    return UpdateMetadata(1, 1, "c", live, topics, tuple(removed))


def merge(*requests: ControlRequest) -> list[ControlRequest]:
    return [
        each.request
        for each in merge_requests([PendingRequest(request, EMPTY) for request in requests])
    ]


# --- what becomes of it --------------------------------------------------------------------------


def test_the_last_word_on_a_partition_replaces_those_before() -> None:
    assert merge(host(state(T0), state(T1)), host(state(T0, 2)), host(state(U0))) == [
        host(state(T0, 2), state(T1), state(U0))
    ]


def test_in_1_a_cause_belongs_to_its_leader_epoch() -> None:
    """IN-1: a resend has none, and an ISR within the epoch another one."""
    led, later = (state(T0, each)._replace(cause=f"because {each}") for each in (1, 2))
    resent = host(led._replace(cause=""))
    assert merge(host(led), resent) == [host(led)]
    assert merge(resent, host(led)) == [resent]
    assert merge(host(led), host(later)) == [host(later)]
    assert merge(host(led), host(state(T0, 2))) == [host(state(T0, 2))]


def test_a_partition_that_was_not_sent_yet_stays_new() -> None:
    assert merge(host(state(T0, is_new=True)), host(state(T0, 2))) == [
        host(state(T0, 2, is_new=True))
    ]
    again = (host(state(T0, is_new=True)), stop(T0, 1), host(state(T0, 2)))
    assert merge(*again) == [stop(T0, 1), host(state(T0, 2))], "a broker that stops it may have it"


def test_what_is_stopped_last_is_not_hosted_before() -> None:
    assert merge(host(state(T0), state(T1)), stop(T0, 2)) == [stop(T0, 2), host(state(T1))]


def test_who_stops_more_thoroughly_or_later_is_obeyed() -> None:
    both = (stop(T0, 2, delete=False), stop(T0, 4))
    assert merge(*both) == merge(*reversed(both)) == [stop(T0, 4)]
    going = (stop(T0, WHILE_DELETING), host(state(T0, 1)), stop(T0, 4))
    assert merge(*going) == merge(*reversed(going)) == [stop(T0, WHILE_DELETING)]
    unchecked = StopReplica(1, 1, (T0,), delete=True)
    assert merge(unchecked, stop(T0, 4)) == merge(stop(T0, 4), unchecked) == [stop(T0, -1)]


def test_of_two_topics_of_one_name_the_later_one_is_meant() -> None:
    first, second = (
        stop(T0, WHILE_DELETING)._replace(topic_ids={T0: bytes([each]) * 16}) for each in (1, 2)
    )
    assert merge(first, host(state(T0)), second) == [second]
    assert merge(first, host(state(T0))) == [first, host(state(T0))]


def test_one_update_of_metadata_for_all() -> None:
    (whole,) = merge(
        update(topic("t"), topic("u"), brokers=[1, 2, 3]),
        update(topic("t", 2)),
        update(removed=["u", "v"], brokers=[2]),
        update(topic("w"), brokers=[2, 4]),
    )
    assert whole == update(topic("t", 2), topic("w"), removed=["u", "v"], brokers=[2, 4])


def test_a_topic_that_came_back_under_its_name_is_another_one() -> None:
    (whole,) = merge(update(topic("t")), update(removed=["t"]), update(topic("t", 1, "other")))
    assert whole == update(topic("t", 1, "other"), removed=["t"])
    assert isinstance(whole, UpdateMetadata)
    image = EMPTY.apply(update(topic("t"), topic("u"))).apply(whole)
    assert image.topics["t"].topic_id == b"other".ljust(16)
    assert image.topic_names == {b"other".ljust(16): "t", b"u".ljust(16): "u"}


def test_a_removed_topic_is_sent_with_all_of_its_partitions() -> None:
    """As it was known when it was removed: the image of today has none of it."""
    two = topic("t")._replace(partitions=dict.fromkeys(range(2), topic("t").partitions[0]))
    then = EMPTY.apply(update(two))
    (whole,) = merge_requests(
        [
            PendingRequest(update(removed=["t"]), then),
            PendingRequest(update(topic("u")), EMPTY.apply(update(topic("u")))),
        ]
    )
    assert isinstance(whole.request, UpdateMetadata)
    message, _ = update_metadata_request(whole.request, 7, whole.image.topics)
    assert [
        (each.topic_name, [one.leader for one in each.partition_states])
        for each in message.topic_states
    ] == [("t", [-2, -2]), ("u", [1])]


def test_nothing_becomes_nothing() -> None:
    assert merge_requests([]) == []


# --- the same effect -----------------------------------------------------------------------------


class Receiver:
    """What a broker has and knows, and what becomes of it: hosted, on disk, in its image."""

    def __init__(self) -> None:
        self.hosted: dict[TopicPartition, PartitionImage] = {}
        self.on_disk: dict[TopicPartition, bool] = {}  # whether it is from before
        self.image = EMPTY

    def carry_out(self, requests: Iterable[ControlRequest]) -> None:
        for request in requests:
            if isinstance(request, UpdateMetadata):
                self.image = self.image.apply(request)
            elif isinstance(request, LeaderAndIsr):
                for each in request.partitions:
                    self.hosted[each.topic_partition] = each.partition
                    self.on_disk.setdefault(each.topic_partition, False)
            else:
                self._stop(request)

    def _stop(self, request: StopReplica) -> None:
        for name in request.partitions:
            has = self.hosted.get(name)
            epoch = request.leader_epoch(name)
            if has is not None and 0 <= epoch < has.leader_epoch:
                continue
            self.hosted.pop(name, None)
            if request.delete:
                self.on_disk.pop(name, None)

    def outcome(self) -> tuple[object, ...]:
        # A replica that was made and stopped without deletion differs: here it was never made.
        old = {name for name, is_old in self.on_disk.items() if is_old or name in self.hosted}
        return self.hosted, old, self.image


class Step(NamedTuple):
    kind: str
    name: TopicPartition
    delete: bool


NAMES = (T0, T1, U0)
STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(["host", "stop", "update", "remove"]),
        st.sampled_from(NAMES),
        st.booleans(),
    ),
    max_size=20,
)


@given(STEPS, st.sets(st.sampled_from(NAMES)))
def test_what_is_merged_has_the_effect_of_all_of_it(
    steps: Sequence[Step], before: set[TopicPartition]
) -> None:
    """Of a controller's words: a partition's leader epoch grows from one to the next."""
    requests: list[ControlRequest] = []
    for number, (kind, name, delete) in enumerate(steps, 2):
        if kind == "host":
            requests.append(host(state(name, number)))
        elif kind == "stop":
            requests.append(stop(name, number, delete=delete))
        elif kind == "update":
            requests.append(update(topic(name.topic, number), brokers=[number]))
        else:
            requests.append(update(removed=[name.topic], brokers=[number]))
    outcomes = []
    for words in (requests, merge(*requests)):
        receiver = Receiver()
        receiver.carry_out([host(*(state(name) for name in sorted(before))), update(topic("t"))])
        receiver.on_disk = dict.fromkeys(before, True)
        receiver.carry_out(words)
        outcomes.append(receiver.outcome())
    assert outcomes[0] == outcomes[1]
    assert len(merge(*requests)) <= 4


# --- the queue -----------------------------------------------------------------------------------


def test_requests_that_are_answered_in_time_are_sent_as_decided() -> None:
    backlog = RequestBacklog()
    words = [host(state(T0, number)) for number in range(MERGED_AT)]
    for each in words:
        backlog.add(each, EMPTY)
    sent = []
    while backlog:
        sent.append(backlog.first.request)
        backlog.remove_first()
    assert sent == words


def test_what_gathers_for_long_has_a_bound_and_the_first_is_left_alone() -> None:
    backlog = RequestBacklog()
    first = host(state(T1))
    backlog.add(first, EMPTY)
    longest = 0
    for number in range(10_000):
        backlog.add(host(state(T0, number)), EMPTY)
        backlog.add(update(topic("t", number)), EMPTY)
        longest = max(longest, len(backlog))
    assert longest <= MERGED_AT
    assert backlog.first.request == first
    receiver = Receiver()
    while backlog:
        receiver.carry_out([backlog.first.request])
        backlog.remove_first()
    assert receiver.hosted[T0].leader_epoch == 9_999
    assert receiver.image.topics["t"] == topic("t", 9_999)
    backlog.add(first, EMPTY)
    backlog.clear()
    assert not backlog


@pytest.mark.thorough
def test_a_large_cluster_is_merged_seldom_and_sent_in_pieces() -> None:
    """Each merge costs what the cluster has; between two of them as much comes again."""
    backlog = RequestBacklog()
    count = 17 * PARTITIONS_AT_ONCE
    names = [TopicPartition("t", number) for number in range(count)]
    everything = host(*(state(name) for name in names))
    for _ in range(4):
        backlog.add(everything, EMPTY)
    assert len(backlog) == 1 + 17
    hosted: set[TopicPartition] = set()
    while backlog:
        request = backlog.first.request
        assert isinstance(request, LeaderAndIsr)
        assert len(request.partitions) <= PARTITIONS_AT_ONCE
        hosted.update(each.topic_partition for each in request.partitions)
        backlog.remove_first()
    assert hosted == set(names)
