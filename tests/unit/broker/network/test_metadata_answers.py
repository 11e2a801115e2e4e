"""Metadata is built once for all who ask the same, until the cluster or the rights change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.context import Context
from barnabas.broker.handlers import metadata
from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.network.metadata_answers import MetadataAnswers
from barnabas.broker.runtime.slices import Slices
from barnabas.errors import TopicAuthorizationFailed, UnknownTopicOrPartition
from barnabas.protocol.api import API_VERSIONS, METADATA
from barnabas.protocol.codec import decoder, encode
from barnabas.protocol.frame import RequestHeader
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.security.acl import ANONYMOUS
from tests.kit.broker.authorizers import authorized_by
from tests.kit.broker.loops import inside
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


def asked_for(*names: str) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def counted(monkeypatch: pytest.MonkeyPatch, wait: threading.Event | None = None) -> list[None]:
    """One entry for each answer that is built, which waits for the event."""
    built: list[None] = []
    plain = metadata.run_slices

    async def later(slices: Slices[Any]) -> Any:
        assert wait is not None
        while not wait.is_set():
            await asyncio.sleep(0.001)
        return plain(slices)

    def sliced(slices: Slices[Any]) -> Any:
        built.append(None)
        return plain(slices) if wait is None else later(slices)

    monkeypatch.setattr(metadata, "run_slices", sliced)
    return built


def test_all_who_ask_the_same_get_one_answer(
    node: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    built = counted(monkeypatch, may_go_on)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(node.bootstrap_servers)) for _ in range(20)]
        sent = [each.send(METADATA, 9, asked_for(topic)) for each in clients]
        wait_until(lambda: len(built) > 0)
        may_go_on.set()
        for client, correlation_id in zip(clients, sent, strict=True):
            got, answer = client.receive(METADATA, 9)
            assert got == correlation_id
            assert [len(each.partitions) for each in answer.topics] == [2]
        clients[0].call(METADATA, 9, asked_for(topic))
    assert len(built) == 1


def test_who_goes_leaves_the_others_their_answer(
    node: Broker, client: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()
    built = counted(monkeypatch, may_go_on)
    first = RawClient(node.bootstrap_servers)
    first.send(METADATA, 9, asked_for(topic))
    wait_until(lambda: len(built) == 1)
    with RawClient(node.bootstrap_servers) as second:
        second.send(METADATA, 9, asked_for(topic))
        client.call(API_VERSIONS, 0, ApiVersionsRequest())  # so the other one has come, too
        assert len(built) == 1
        first.close()
        wait_until(lambda: len(built) == 2)
        may_go_on.set()
        assert second.receive(METADATA, 9)[1].topics[0].error_code == 0


def test_a_change_is_in_the_next_answer(client: RawClient, topic: str) -> None:
    before = client.call(METADATA, 9, MetadataRequest(topics=None))
    assert client.call(METADATA, 9, MetadataRequest(topics=None)) == before
    create(client, f"{topic}-too")
    names = [each.name for each in client.call(METADATA, 9, MetadataRequest(topics=None)).topics]
    assert f"{topic}-too" in names


def test_an_error_is_found_each_time(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is missing may exist by now, or be created by this very request."""
    built = counted(monkeypatch)
    for _ in range(3):
        answer = client.call(METADATA, 9, asked_for("missing"))
        assert answer.topics[0].error_code == UnknownTopicOrPartition.code
    assert len(built) == 3


def test_what_was_granted_is_not_kept_longer(node: Broker, client: RawClient, topic: str) -> None:
    """SE-1"""
    assert client.call(METADATA, 9, asked_for(topic)).topics[0].error_code == 0

    class Nothing:
        def allows(self, *_: object) -> bool:
            return False

    with authorized_by(Nothing()):
        answer = client.call(METADATA, 9, asked_for(topic))
        assert answer.topics[0].error_code == TopicAuthorizationFailed.code
    assert client.call(METADATA, 9, asked_for(topic)).topics[0].error_code == 0


def test_what_is_kept_has_a_limit(node: Broker, topic: str) -> None:
    shell = node.server.node
    answers = MetadataAnswers(shell, 600)
    client = ClientConnection("PLAINTEXT", ANONYMOUS, "127.0.0.1", "127.0.0.1")
    context = Context(shell, client, METADATA, 9, None)
    request = decoder(MetadataRequest, 9)

    def ask(times: int) -> int:
        """The same topic, by other bytes; nothing in it has to wait."""
        body = b"".join(map(bytes, encode(asked_for(*[topic] * times), 9)))
        header = RequestHeader(METADATA.key, 9, 1, None, memoryview(body))
        answer = answers.answer(
            context, header, lambda body: metadata.handle(context, request(body)[0])
        )
        if isinstance(answer, Coroutine):
            with pytest.raises(StopIteration):
                answer.send(None)
        return answers.kept_bytes

    kept = [inside(node, lambda times=times: ask(times)) for times in range(1, 12)]
    assert 0 < max(kept) <= 600
    assert kept != sorted(kept), "all were dropped to keep another one"
