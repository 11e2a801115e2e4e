"""Fetch sessions (KIP-227): what they keep, whom they leave out, and who loses a slot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from barnabas.replication.fetch_session import (
    FetchSession,
    FetchSessions,
    SessionPartition,
    next_epoch,
)

MINUTE_MS = 60_000


def counter() -> Callable[[], int]:
    numbers = iter(range(1, 1_000_000))
    return lambda: next(numbers)


def cache(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots, counter())


def topics(count: int, name: str = "t", offset: int = 0) -> list[FetchTopic]:
    wanted = [FetchPartition(partition=i, fetch_offset=offset) for i in range(count)]
    return [FetchTopic(topic=name, partitions=wanted)]


def begin(
    sessions: FetchSessions, count: int = 3, *, follower: bool = False, now_ms: int = 0
) -> FetchSession:
    session = sessions.open(topics(count), False, follower, now_ms)
    assert session is not None
    return session


def request(session: FetchSession, epoch: int | None = None, **fields: object) -> FetchRequest:
    return FetchRequest(
        session_id=session.session_id,
        session_epoch=session.epoch if epoch is None else epoch,
        **fields,  # type: ignore[arg-type]
    )


def drain(session: FetchSession) -> None:
    """Every partition has been answered and has nothing more."""
    session.changed.clear()


class Log:
    """The source of a partition's changes."""

    def __init__(self) -> None:
        self.watchers: list[SessionPartition] = []

    def park(self, watcher: SessionPartition) -> None:
        self.watchers.append(watcher)

    def unpark(self, watcher: SessionPartition) -> None:
        self.watchers.remove(watcher)


class Fetch:
    """A request that waits."""

    def __init__(self) -> None:
        self.notified: list[int | None] = []

    def notify(self, appended_bytes: int) -> None:
        self.notified.append(appended_bytes)

    def wake(self) -> None:
        self.notified.append(None)


def numbers(session: FetchSession) -> list[int]:
    return [partition.wanted.partition for partition in session.changed]


def test_a_new_session_has_all_partitions_changed_and_expects_epoch_1() -> None:
    session = begin(cache())
    assert numbers(session) == [0, 1, 2]
    assert session.epoch == 1


def test_epochs_count_up_and_wrap_to_1() -> None:
    sessions = cache()
    session = begin(sessions)
    for epoch in (1, 2, 3):
        assert sessions.resume(request(session, epoch), False, 0) is session
    assert next_epoch(0x7FFFFFFF) == 1


@pytest.mark.parametrize("epoch", [0, 2, 7, -5])
def test_another_epoch_than_the_next_is_refused(epoch: int) -> None:
    sessions = cache()
    session = begin(sessions)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.resume(request(session, epoch), False, 0)
    assert sessions.resume(request(session, 1), False, 0) is session, "the session goes on"


def test_unknown_sessions_and_a_change_between_names_and_ids_are_refused() -> None:
    sessions = cache()
    session = begin(sessions)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.resume(request(session), True, 0)
    sessions.close(session.session_id)
    with pytest.raises(FetchSessionIdNotFound):
        sessions.resume(request(session), False, 0)


def test_only_what_changed_is_looked_at() -> None:
    sessions = cache()
    session = begin(sessions)
    logs = [Log() for _ in range(3)]
    for partition, log in zip(session.partitions.values(), logs, strict=True):
        partition.watch(log)
    drain(session)
    sessions.resume(request(session), False, 0)
    assert numbers(session) == []
    logs[2].watchers[0].notify(100)
    logs[0].watchers[0].wake()
    assert numbers(session) == [2, 0]


def test_a_request_adds_moves_and_forgets_partitions() -> None:
    sessions = cache()
    session = begin(sessions, 3)
    log = Log()
    session.partitions["t", 1].watch(log)
    drain(session)
    moved = FetchPartition(partition=2, fetch_offset=77)
    added = FetchPartition(partition=8)
    changes = [FetchTopic(topic="t", partitions=[moved, added])]
    gone = [
        ForgottenTopic(topic="t", partitions=[1, 99]),
        ForgottenTopic(topic="no", partitions=[0]),
    ]
    sessions.resume(request(session, topics=changes, forgotten_topics_data=gone), False, 0)
    assert sorted(index for _, index in session.partitions) == [0, 2, 8]
    assert session.partitions["t", 2].wanted.fetch_offset == 77
    assert numbers(session) == [2, 8]
    assert log.watchers == []
    assert sessions.partition_count == 3


def test_topics_are_distinguished_by_id() -> None:
    sessions = cache()
    ids = [bytes([n]) * 16 for n in (1, 2)]
    wanted = [FetchTopic(topic_id=each, partitions=[FetchPartition(partition=0)]) for each in ids]
    session = sessions.open(wanted, True, False, 0)
    assert session is not None
    assert set(session.partitions) == {(ids[0], 0), (ids[1], 0)}
    gone = [ForgottenTopic(topic_id=ids[0], partitions=[0])]
    sessions.resume(request(session, forgotten_topics_data=gone), True, 0)
    assert set(session.partitions) == {(ids[1], 0)}


def test_a_session_without_partitions_ends() -> None:
    sessions = cache()
    session = begin(sessions, 1)
    gone = [ForgottenTopic(topic="t", partitions=[0])]
    assert sessions.resume(request(session, forgotten_topics_data=gone), False, 0) is None
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_what_gave_bytes_goes_to_the_end() -> None:
    session = begin(cache(), 4)
    partitions = session.partitions
    session.on_served(partitions["t", 0])
    session.on_served(partitions["t", 1])
    assert numbers(session) == [2, 3, 0, 1]


def test_another_isolation_level_makes_everything_worth_a_look() -> None:
    session = begin(cache())
    session.read_at(0, "rights")
    drain(session)
    session.read_at(0, "rights")
    assert numbers(session) == []
    session.read_at(1, "rights")
    assert numbers(session) == [0, 1, 2]


def test_se_4_other_rights_make_everything_worth_a_look() -> None:
    """And rights that may be others at any time do so with each request."""
    session = begin(cache())
    for grants in ("rights", "others", None, None):
        session.read_at(0, grants)
        assert numbers(session) == [0, 1, 2]
        drain(session)


def test_a_waiting_fetch_is_notified_and_the_next_request_wakes_it() -> None:
    sessions = cache()
    session = begin(sessions, 1)
    log = Log()
    session.partitions["t", 0].watch(log)
    waiting = session.waiter = Fetch()
    log.watchers[0].notify(5)
    log.watchers[0].wake()
    assert waiting.notified == [5, None]
    sessions.resume(request(session), False, 0)
    assert waiting.notified == [5, None, None]


def test_a_partition_listens_at_one_place() -> None:
    """A topic that was deleted and made again has another log."""
    session = begin(cache(), 1)
    partition = session.partitions["t", 0]
    old, new = Log(), Log()
    partition.watch(old)
    partition.watch(old)
    partition.watch(new)
    assert (old.watchers, new.watchers) == ([], [partition])


def test_a_closed_session_listens_no_more_and_wakes_who_waits() -> None:
    sessions = cache()
    session = begin(sessions, 2)
    log = Log()
    for partition in session.partitions.values():
        partition.watch(log)
    waiting = session.waiter = Fetch()
    sessions.close(session.session_id)
    assert session.is_closed
    assert (log.watchers, waiting.notified) == ([], [None])
    sessions.close(session.session_id)  # once more does nothing
    for partition in session.partitions.values():
        partition.watch(log)  # by a request that was parked at the end, and looks once more
    assert log.watchers == [], "they would never be removed"


# --- who gets a slot -----------------------------------------------------------------------------


def test_young_sessions_keep_their_slots() -> None:
    sessions = cache(2)
    begin(sessions, 1)
    begin(sessions, 1)
    assert sessions.open(topics(100), False, False, 2 * MINUTE_MS) is None
    assert len(sessions) == 2


def test_a_stale_session_gives_way_to_any() -> None:
    sessions = cache(2)
    first, second = begin(sessions, 5), begin(sessions, 5)
    sessions.resume(request(first), False, MINUTE_MS)  # so the second is the longest unused
    assert sessions.open(topics(1), False, False, 2 * MINUTE_MS + 1) is not None
    assert (first.is_closed, second.is_closed) == (False, True)


def test_a_larger_session_takes_the_slot_of_the_smallest_old_one() -> None:
    sessions = cache(3)
    kept = [begin(sessions, count) for count in (3, 2, 4)]
    later = 2 * MINUTE_MS + 1
    for session in kept:
        sessions.resume(request(session), False, later)  # used, so none is stale
    assert sessions.open(topics(2), False, False, later) is None, "not larger than the smallest"
    assert sessions.open(topics(3), False, False, later) is not None
    assert [session.is_closed for session in kept] == [False, True, False]


def test_a_follower_takes_a_consumer_s_slot_at_any_age() -> None:
    sessions = cache(2)
    consumer, follower = begin(sessions, 50), begin(sessions, 1, follower=True)
    assert sessions.open(topics(1), False, True, 0) is not None
    assert (consumer.is_closed, follower.is_closed) == (True, False)
    assert sessions.open(topics(9), False, True, 0) is None, "young followers keep theirs"


def test_without_slots_there_are_no_sessions() -> None:
    assert cache(0).open(topics(1), False, False, 0) is None


def test_partitions_are_limited_in_all() -> None:
    """UX-4: a reader of absurdly many is served without a session."""
    sessions = cache(2)
    assert sessions.open(topics(501), False, False, 0) is None
    session = begin(sessions, 400)
    assert sessions.open(topics(101), False, False, 0) is None
    with pytest.raises(FetchSessionIdNotFound):
        sessions.resume(request(session, topics=topics(101, "more")), False, 0)
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_ids_are_never_0_nor_used_twice() -> None:
    given = iter([0, 5, 5, 0, 6])
    sessions = FetchSessions(2, lambda: next(given))
    assert [begin(sessions).session_id, begin(sessions).session_id] == [5, 6]
