"""What a fetch that waits keeps, what it finds out once more, and how much code it enters."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from barnabas import Broker
from barnabas.errors import TopicAuthorizationFailed
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import FetchRequest
from tests.kit.broker.acl_brokers import rule
from tests.kit.broker.fetches import fetch_request, only
from tests.kit.broker.loops import inside, replicas_of
from tests.kit.broker.produces import fill
from tests.kit.broker.replicated import parts_of
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.raw_client import AN_HOUR_MS, RawClient, batch
from tests.kit.waiting import wait_until

MOST_FILES = 20
"""Of `src/barnabas`, entered by a long poll without news, from its frame to its answer."""

Calls = dict[str, Counter[str]]


@contextmanager
def traced_threads() -> Iterator[tuple[Calls, threading.Event]]:
    """The functions that threads which begin meanwhile call while the event is set, by file."""
    calls: Calls = {}
    is_on = threading.Event()

    def trace(frame: FrameType, event: str, argument: object) -> None:
        _, is_ours, path = frame.f_code.co_filename.partition("/src/barnabas/")
        if is_ours and is_on.is_set():
            calls.setdefault(path, Counter())[frame.f_code.co_qualname] += 1

    threading.settrace(trace)
    try:
        yield calls, is_on
    finally:
        threading.settrace(None)  # type: ignore[arg-type]


def test_a_long_poll_without_news_builds_once_and_enters_few_files() -> None:
    """With and without a session; what was built before the wait is kept."""
    with (
        traced_threads() as (calls, is_on),
        Broker() as node,
        RawClient(node.bootstrap_servers) as other,
        RawClient(node.bootstrap_servers) as client,
    ):
        create(other, "t")
        fill(other, "t", batch(b"a"))
        topic_id = topic_id_of(other, "t")
        opening = fetch_request(topic_id, 1)
        opening.session_epoch = 0
        session_id = client.call(FETCH, 13, opening).session_id
        wants = fetch_request(topic_id, 1, max_wait_ms=20)
        for round_ in range(3):  # in the first two what is used later is loaded
            polls = wants, _next_poll(session_id, round_ + 1)
            for poll in polls:
                calls.clear()
                is_on.set()
                client.call(FETCH, 13, poll)
                is_on.clear()
                entered = dict(calls)
                assert len(entered) <= MOST_FILES or round_ < 2, sorted(entered)
                built = sum(entered.values(), Counter())
                assert built["ParkedFetch.wait"] >= 1, "it has waited"
                for kind in ("FetchPass", "ConsumerReader", "ReadBudget", "Pace"):
                    assert built[f"{kind}.__init__"] == 1


def _next_poll(session_id: int, epoch: int) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=20,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
    )


def test_a_right_that_is_taken_away_during_the_wait_counts_after_it() -> None:
    """SE-1"""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(config=settings) as node, RawClient(node.bootstrap_servers) as client:
        create(client, "t")
        fill(client, "t", batch(b"a"))
        poll = client.send(FETCH, 11, fetch_request("t", 1, max_wait_ms=AN_HOUR_MS))
        replica = inside(node, lambda: replicas_of(node).leader_of(("t", 0)))
        (router,) = parts_of(node).network.routers
        wait_until(lambda: inside(node, lambda: router.waiting[FETCH.name]) == 1)
        granted = node.server.node.authorizer.grants
        with node.admin() as admin:
            admin.create_acls(rule("t"))  # for another user: from now on this one needs a rule
        wait_until(lambda: node.server.node.authorizer.grants is not granted)
        inside(node, replica.wake_watchers)
        got, answer = client.receive(FETCH, 11)
        assert got == poll
        assert only(answer).error_code == TopicAuthorizationFailed.code
