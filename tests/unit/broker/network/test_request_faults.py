"""What stands between a router and its handlers sees every request, and may change each outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.context import Context
from barnabas.broker.network.request_faults import ConnectionCut, RequestFaults
from barnabas.broker.outcome import Outcome
from barnabas.protocol.api import METADATA, PRODUCE
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import ProduceRequest
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient, batch


class Seen:
    """Counts requests, and cuts those of one API."""

    def __init__(self, cut: str = "") -> None:
        self.apis: list[str] = []
        self.cut = cut

    def handle(
        self, context: Context, request: Message, handler: Callable[[Context, Any], Outcome]
    ) -> Outcome:
        self.apis.append(context.api.name)
        if context.api.name == self.cut:
            raise ConnectionCut("as the test wants it")
        return handler(context, request)


def inject(node: Broker, faults: RequestFaults | None) -> None:
    node.thread.call(lambda: node.server.parts.network.inject(faults))


def one(topic: str) -> ProduceRequest:
    return produce_request(topic, {0: batch(b"value")})


def test_tk_4_repetitions_on_an_open_connection_are_seen_while_there_are_faults(
    node: Broker, client: RawClient, topic: str
) -> None:
    seen = Seen()
    for faults in (None, seen, None):
        inject(node, faults)
        for _ in range(3):
            client.call(PRODUCE, 9, one(topic))
    assert seen.apis == ["Produce"] * 3


def test_tk_4_a_long_request_is_seen_once_it_is_decoded(node: Broker, client: RawClient) -> None:
    seen = Seen()
    inject(node, seen)
    topics = [MetadataRequestTopic(name=f"{number:0200}") for number in range(400)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    assert len(client.call(METADATA, 8, request).topics) == 400
    inject(node, None)
    assert seen.apis == ["Metadata"]


def test_tk_4_a_cut_connection_is_not_warned_of(
    node: Broker, client: RawClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    inject(node, Seen(cut="Produce"))
    client.send(PRODUCE, 9, one(topic))
    assert client.is_closed_by_peer()
    inject(node, None)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


def test_tk_4_connections_are_closed_by_their_client_id(node: Broker, client: RawClient) -> None:
    client.call(METADATA, 8, MetadataRequest(topics=[]))
    network = node.server.parts.network
    node.thread.call(lambda: network.abort(lambda client_id: client_id == "nobody"))
    client.call(METADATA, 8, MetadataRequest(topics=[]))
    node.thread.call(lambda: network.abort(lambda client_id: True))
    assert client.is_closed_by_peer()
