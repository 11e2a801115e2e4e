"""The follower's side of fetch sessions: what is sent, not sent again, and when a session restarts.

The leader's side is the real one: whatever is asked for goes through `FetchSessions`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.errors import (
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    KafkaError,
    UnknownServerError,
)
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.replication.fetch_requests import (
    NO_TOPIC_ID,
    Answered,
    FetchRequests,
    Limits,
    Requester,
)
from barnabas.replication.fetch_session import FetchSession, FetchSessions
from barnabas.replication.follower import FetchFrom
from barnabas.types import TopicPartition
from tests.kit.effort import examples

LIMITS = Limits(max_wait_ms=500, min_bytes=1, max_bytes=10_485_760, partition_max_bytes=1_048_576)
NEWEST = Requester(broker_id=3, broker_epoch=80, version=17)
IDS = {name: bytes(15) + bytes([index]) for index, name in enumerate("abcd", 1)}


def place(name: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(name, partition)


def start(offset: int = 0, leader_epoch: int = 0) -> FetchFrom:
    return FetchFrom(offset, -1, leader_epoch, 0)


def wanting(*names: TopicPartition) -> FetchRequests:
    requests = FetchRequests(LIMITS)
    for name in names:
        requests.want(name, IDS[name.topic], start())
    return requests


def sent(request: FetchRequest) -> dict[tuple[bytes, int], int]:
    """Offsets in a request."""
    return {
        (topic.topic_id, each.partition): each.fetch_offset
        for topic in request.topics
        for each in topic.partitions
    }


def forgotten(request: FetchRequest) -> set[tuple[bytes, int]]:
    return {
        (topic.topic_id, each)
        for topic in request.forgotten_topics_data
        for each in topic.partitions
    }


def answer(
    *names: TopicPartition, session_id: int = 7, error: type[KafkaError] | None = None
) -> FetchResponse:
    topics = [
        FetchableTopicResponse(
            topic=name.topic,
            topic_id=IDS[name.topic],
            partitions=[PartitionData(partition_index=name.partition)],
        )
        for name in names
    ]
    code = 0 if error is None else error.code
    return FetchResponse(error_code=code, session_id=session_id, responses=topics)


def rows(answered: Iterator[Answered]) -> list[tuple[TopicPartition, int]]:
    return [(each.topic_partition, each.sent.offset) for each in answered]


A, B, C = place("a"), place("b"), place("c", 4)


def test_the_first_request_says_everything_and_the_next_one_nothing() -> None:
    """RE-1: an idle session costs a request without partitions, however many there are."""
    names = [place("a", index) for index in range(1000)]
    requests = wanting(*names)
    first, version = requests.next(NEWEST)
    assert version == 17
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert len(sent(first)) == 1000
    assert list(requests.on_answer(answer(session_id=7))) == []
    for epoch in (1, 2):
        idle, version = requests.next(NEWEST)
        assert (idle.session_id, idle.session_epoch) == (7, epoch)
        assert sent(idle) == {}
        assert forgotten(idle) == set()
        assert sum(map(len, encode(idle, version))) < 100
        assert list(requests.on_answer(answer(session_id=7))) == []


def test_the_request_is_the_one_that_kafka_sends() -> None:
    """Recorded between Kafka 3.9 brokers: broker 3's first fetch of a new partition."""
    recorded = bytes.fromhex(
        "000001f40000000100a0000000000000000000000002b7776c6ce04b4f0697edcdebc0908575020000000100"
        "0000000000000000000000ffffffff0000000000000000001000000000010101010d00000003000000000000"
        "005000"
    )
    topic_id = bytes.fromhex("b7776c6ce04b4f0697edcdebc0908575")
    requests = FetchRequests(LIMITS)
    requests.want(TopicPartition("any", 1), topic_id, start())
    request, version = requests.next(NEWEST)
    expected = decode(FetchRequest, recorded, 17)
    assert request.topics[0].topic == "any"  # which this version does not carry
    assert decode(FetchRequest, b"".join(map(bytes, encode(request, version))), 17) == expected
    assert b"".join(map(bytes, encode(request, version))) == recorded


def test_a_moved_partition_is_sent_once() -> None:
    requests = wanting(A, B)
    requests.next(NEWEST)
    assert rows(requests.on_answer(answer(A, B))) == [(A, 0), (B, 0)]
    requests.want(A, IDS["a"], start(offset=5))
    requests.want(B, IDS["b"], start())  # where it was
    moved, _ = requests.next(NEWEST)
    assert sent(moved) == {(IDS["a"], 0): 5}
    assert rows(requests.on_answer(answer(A, B))) == [(A, 5), (B, 0)]
    assert sent(requests.next(NEWEST)[0]) == {}


def test_added_and_removed_partitions_are_sent() -> None:
    requests = wanting(A, B)
    requests.next(NEWEST)
    list(requests.on_answer(answer()))
    requests.forget(B)
    requests.want(C, IDS["c"], start(offset=9))
    request, _ = requests.next(NEWEST)
    assert sent(request) == {(IDS["c"], 4): 9}
    assert forgotten(request) == {(IDS["b"], 0)}
    assert rows(requests.on_answer(answer(A, B, C))) == [(A, 0), (C, 9)]
    assert forgotten(requests.next(NEWEST)[0]) == set()


def test_a_partition_that_was_never_sent_need_not_be_forgotten() -> None:
    requests = wanting(A, B)
    requests.next(NEWEST)
    list(requests.on_answer(answer()))
    requests.want(C, IDS["c"], start())
    requests.forget(C)
    request, _ = requests.next(NEWEST)
    assert (sent(request), forgotten(request), request.session_epoch) == ({}, set(), 1)


def test_who_comes_back_at_once_begins_a_new_session() -> None:
    """Its replica may be another one, that knows no bounds; the old session would not say them."""
    requests = wanting(A, B)
    requests.next(NEWEST)
    list(requests.on_answer(answer(session_id=7)))
    requests.forget(A)
    requests.want(A, IDS["a"], start())
    request, _ = requests.next(NEWEST)
    assert (request.session_id, request.session_epoch) == (7, 0)
    assert sent(request).keys() == {(IDS["a"], 0), (IDS["b"], 0)}


def test_an_answer_is_about_what_was_sent() -> None:
    """What is wanted while a request is on its way is no part of its answer."""
    requests = wanting(A, B)
    requests.next(NEWEST)
    requests.want(A, IDS["a"], start(offset=3, leader_epoch=1))
    requests.want(C, IDS["c"], start())
    requests.forget(B)
    requests.want(B, IDS["b"], start(offset=2))
    assert rows(requests.on_answer(answer(A, B, C))) == [(A, 0)]


@pytest.mark.parametrize("error", [FetchSessionIdNotFound, InvalidFetchSessionEpoch])
def test_a_lost_session_is_replaced(error: type[KafkaError]) -> None:
    """One that the leader may still have is closed by the same request."""
    requests = wanting(A)
    requests.next(NEWEST)
    list(requests.on_answer(answer(session_id=7)))
    requests.next(NEWEST)
    with pytest.raises(error):
        requests.on_answer(answer(session_id=0, error=error))
    request, _ = requests.next(NEWEST)
    known = 0 if error is FetchSessionIdNotFound else 7
    assert (request.session_id, request.session_epoch) == (known, 0)
    assert sent(request) == {(IDS["a"], 0): 0}


def test_an_unknown_error_is_raised_too() -> None:
    requests = wanting(A)
    requests.next(NEWEST)
    with pytest.raises(UnknownServerError):
        requests.on_answer(FetchResponse(error_code=9999))


def test_a_lost_connection_begins_a_new_session() -> None:
    requests = wanting(A)
    requests.next(NEWEST)
    list(requests.on_answer(answer(session_id=7)))
    requests.next(NEWEST)
    requests.reset_session()
    request, _ = requests.next(NEWEST)
    assert (request.session_id, request.session_epoch) == (7, 0)
    assert sent(request) == {(IDS["a"], 0): 0}


def test_a_leader_without_room_is_asked_for_everything() -> None:
    requests = wanting(A)
    for _ in range(3):
        request, _ = requests.next(NEWEST)
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert sent(request) == {(IDS["a"], 0): 0}
        assert rows(requests.on_answer(answer(A, session_id=0))) == [(A, 0)]


def test_a_session_reset_meanwhile_is_not_undone_by_an_answer() -> None:
    requests = wanting(A)
    requests.next(NEWEST)
    requests.limit(LIMITS._replace(partition_max_bytes=5))
    list(requests.on_answer(answer(session_id=7)))
    request, _ = requests.next(NEWEST)
    assert (request.session_id, request.session_epoch) == (7, 0)
    assert request.topics[0].partitions[0].partition_max_bytes == 5


def test_other_limits_hold_from_the_next_request_on() -> None:
    requests = wanting(A)
    requests.next(NEWEST)
    list(requests.on_answer(answer()))
    requests.limit(Limits(max_wait_ms=9, min_bytes=8, max_bytes=7, partition_max_bytes=1_048_576))
    request, _ = requests.next(NEWEST)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (9, 8, 7)
    assert request.session_epoch == 1


@pytest.mark.parametrize("version", [12, 14, 15, 17])
def test_older_leaders_get_what_they_know(version: int) -> None:
    """Names before ids (KIP-516), and the replica's id where its version has it (KIP-903)."""
    requests = wanting(A)
    request, sent = requests.next(NEWEST._replace(version=version))
    assert sent == version
    read = decode(FetchRequest, b"".join(map(bytes, encode(request, sent))), sent)
    id_of = read.replica_state.replica_id if version >= 15 else read.replica_id
    assert id_of == 3
    assert read.topics[0].topic == ("a" if version < 13 else "")
    assert rows(requests.on_answer(answer(A))) == [(A, 0)]


def test_a_topic_without_an_id_is_asked_for_by_name() -> None:
    """From a cluster before 2.8; and so are all others, until it is gone."""
    nameless = place("d")
    requests = wanting(A)
    assert requests.next(NEWEST)[1] == 17
    list(requests.on_answer(answer()))
    requests.want(nameless, NO_TOPIC_ID, start())
    for epoch in (0, 1):
        request, version = requests.next(NEWEST)
        assert (version, request.session_epoch) == (12, epoch)
        assert rows(requests.on_answer(answer(A))) == [(A, 0)]
    requests.forget(nameless)
    request, version = requests.next(NEWEST)
    assert (version, request.session_epoch) == (17, 0)
    assert rows(requests.on_answer(answer(A))) == [(A, 0)]


class Sessions(RuleBasedStateMachine):
    """Whatever is wanted, forgotten, lost and refused: what the leader's session asks for is what
    is wanted here, after each request that it has received."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = FetchRequests(LIMITS)
        self.wanted: dict[TopicPartition, FetchFrom] = {}
        self.received: dict[TopicPartition, FetchFrom] = {}
        ids = iter(range(1, 1_000_000))
        # Room for all that a walk may lose; whether there is room is an argument of `ask`.
        self.leader = FetchSessions(100, lambda: next(ids))
        self.session: FetchSession | None = None
        self.clock_ms = 0

    partitions = st.builds(place, st.sampled_from("abc"), st.integers(0, 2))

    @rule(name=partitions, offset=st.integers(0, 3), epoch=st.integers(0, 2))
    def want(self, name: TopicPartition, offset: int, epoch: int) -> None:
        self.wanted[name] = start(offset, epoch)
        self.requests.want(name, IDS[name.topic], self.wanted[name])

    @rule(name=partitions)
    def forget(self, name: TopicPartition) -> None:
        self.wanted.pop(name, None)
        self.requests.forget(name)

    @precondition(lambda self: self.wanted)
    @rule(lost=st.sampled_from(["nothing", "request", "answer"]), has_room=st.booleans())
    def ask(self, lost: str, has_room: bool) -> None:
        request, version = self.requests.next(NEWEST)
        received = decode(FetchRequest, b"".join(map(bytes, encode(request, version))), version)
        if lost == "request":
            self.requests.reset_session()
            return
        try:
            session_id = self._receive(received, has_room)
        except KafkaError as error:
            with pytest.raises(type(error)):
                self.requests.on_answer(FetchResponse(error_code=error.code))
            return
        assert self.received == self.wanted
        if lost == "answer":
            self.requests.reset_session()
            return
        response = answer(*self.wanted, session_id=session_id)
        answered = {each.topic_partition: each.sent for each in self.requests.on_answer(response)}
        assert answered == self.wanted

    def _receive(self, request: FetchRequest, has_room: bool) -> int:
        self.clock_ms += 1
        if request.session_epoch == 0:
            if request.session_id:
                self.leader.close(request.session_id)
            self.received = _asked(request.topics)
            if not has_room:
                return 0
            self.session = self.leader.open(request.topics, True, True, self.clock_ms)
            assert self.session is not None
            return self.session.session_id
        self.session = self.leader.resume(request, True, self.clock_ms)
        assert self.session is not None
        self.received = {}
        for each in self.session.partitions.values():
            self.received.update(
                _asked([FetchTopic(topic_id=each.topic_id, partitions=[each.wanted])])
            )
        return self.session.session_id

    @precondition(lambda self: self.session is not None)
    @rule()
    def evict(self) -> None:
        assert self.session is not None
        self.leader.close(self.session.session_id)

    @invariant()
    def everything_wanted_is_counted(self) -> None:
        assert len(self.requests) == len(self.wanted)


def _asked(topics: list[FetchTopic]) -> dict[TopicPartition, FetchFrom]:
    names = {topic_id: name for name, topic_id in IDS.items()}
    return {
        place(names[topic.topic_id], each.partition): _start_of(each)
        for topic in topics
        for each in topic.partitions
    }


def _start_of(wanted: FetchPartition) -> FetchFrom:
    return FetchFrom(
        wanted.fetch_offset,
        wanted.last_fetched_epoch,
        wanted.current_leader_epoch,
        wanted.log_start_offset,
    )


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=examples(100), stateful_step_count=40)
