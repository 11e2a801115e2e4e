"""What real clients asked a real Kafka 3.9.1, asked of ours: groups, offsets, transactions (CO-3,
CO-6, PR-7). Our answers are compared with the recorded ones.

The recordings have one exchange of each kind, not whole conversations, so they are put into an
order in which a client would have them. Ids that the broker hands out (members, generations,
producers) are replaced by those that ours handed out; everything else is what the client said.

"Alike" means: the same error codes, states, names and bytes, the same fields null or empty, lists
of the same length. Numbers and times may differ; so may the order of what Kafka keeps in a hash
table.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import barnabas
from barnabas.client import NewTopic, SyncAdmin, SyncProducer
from barnabas.protocol.api import APIS, Api
from barnabas.protocol.frame import (
    decode_request_header,
    decode_response,
    encode_request,
)
from barnabas.protocol.message import Message
from tests.kit.raw_client import RawClient
from tests.kit.request import decode_request
from tests.kit.waiting import wait_until

FILES = (
    "java-console-producer",
    "java-console-consumer",
    "java-consumer-groups",
    "java-transactional",
    "java-tools",
    "confluent",
    "kafka-python",
    "aiokafka",
    "interbroker",
)
"""In the order in which they were recorded, for the lists of groups include those before. What the
broker said to itself (`interbroker-self`) belongs to the transactions that are named in it."""

ORDER = (
    *("FindCoordinator", "InitProducerId", "JoinGroup", "SyncGroup", "OffsetFetch"),
    *("AddPartitionsToTxn", "AddOffsetsToTxn", "verify", "TxnOffsetCommit", "EndTxn"),
    *("Heartbeat", "OffsetCommit", "LeaveGroup", "fetch all", "DescribeGroups", "ListGroups"),
    *("OffsetDelete", "DeleteGroups", "DescribeProducers", "DescribeTransactions"),
    *("ListTransactions", "DeleteRecords", "WriteTxnMarkers"),
)
"""In which order one client would ask; OffsetFetch without names, and AddPartitionsToTxn that only
verifies, have places of their own."""

NOT_YET = {14, 15, 16}  # what a coordinator answers while it comes to be; a client asks again
SAME = {
    *("group_state", "group_type", "protocol_type", "protocol_name", "protocol_data", "name"),
    *("key", "group_id", "group_instance_id", "transactional_id", "partition_index"),
    *("error_message", "authorized_operations", "low_watermark"),
}
TOPICS = {"w": 2, "c": 1, "rdk": 1, "kp": 1, "aio": 1, "r3": 1}
LEAST_ALIKE = 90

pytestmark = pytest.mark.foreign


class Exchange(NamedTuple):
    """One of the recorded ones."""

    client_id: str
    api: Api
    version: int
    correlation_id: int
    request: Any
    response: Any

    @property
    def place(self) -> tuple[int, int]:
        name = self.api.name
        if name == "AddPartitionsToTxn" and self.request.transactions:
            name = "verify"
        elif name == "OffsetFetch" and _asks_for_all(self.request):
            name = "fetch all"
        return ORDER.index(name), self.correlation_id


def _asks_for_all(request: Any) -> bool:
    return request.topics is None or any(group.topics is None for group in request.groups)


def recorded(path: Path) -> Iterator[Exchange]:
    """Those of the APIs above."""
    for line in path.read_text().splitlines():
        columns = json.loads(line)
        if columns["api"] not in ORDER:
            continue
        api, version = APIS[columns["api_key"]], columns["version"]
        header = decode_request_header(memoryview(bytes.fromhex(columns["request_hex"])))
        answer = memoryview(bytes.fromhex(columns["response_hex"]))
        _, response = decode_response(api, version, answer)
        client_id, correlation_id = columns["client_id"], columns["correlation_id"]
        request = decode_request(header)
        yield Exchange(client_id, api, version, correlation_id, request, response)


class Replaced:
    """What the real broker handed out, and what ours did instead."""

    def __init__(self) -> None:
        self.members: dict[str, str] = {}
        self.producers: dict[int, tuple[int, int]] = {}
        self.generations: dict[str, tuple[int, int]] = {}  # by group

    def learn(self, exchange: Exchange, ours: Any) -> None:
        request, theirs = exchange.request, exchange.response
        if exchange.api.name == "JoinGroup":
            self.members[theirs.member_id] = ours.member_id
            self.generations[request.group_id] = theirs.generation_id, ours.generation_id
        elif exchange.api.name == "InitProducerId" and ours.error_code == 0:
            # A recorded refusal names no producer: the client asked again, and had the first.
            self.producers[max(theirs.producer_id, 0)] = ours.producer_id, ours.producer_epoch

    def is_followed(self, exchange: Exchange) -> bool:
        """Whether the JoinGroup before it has been recorded, too."""
        request = exchange.request
        names = [value for key, value in _leaves(request) if key == "member_id" and value]
        if any(name not in self.members for name in names):
            return False
        if exchange.api.name == "SyncGroup":
            return bool(request.generation_id == self.generations[request.group_id][0])
        return True

    def apply(self, message: Any, version: int, group_id: str | None = None) -> None:
        """Changes the message; `group_id` is that of the message around it."""
        group_id = getattr(message, "group_id", group_id)
        for each in type(message).fields:
            value = getattr(message, each.name)
            if version not in each.versions:
                continue
            if isinstance(value, list):
                for one in value:
                    if isinstance(one, Message):
                        self.apply(one, version, group_id)
            elif each.name == "member_id":
                setattr(message, each.name, self.members.get(value, value))
            elif each.name.startswith("generation_id") and value > 0 and group_id is not None:
                setattr(message, each.name, self.generations[group_id][1])
            elif each.name.endswith("producer_id") and value >= 0:
                setattr(message, each.name, self.producers.get(value, (value, 0))[0])


def _leaves(message: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(message, Message):
        for each in type(message).fields:
            yield from _leaves(getattr(message, each.name), each.name)
    elif isinstance(message, list):
        for one in message:
            yield from _leaves(one, name)
    else:
        yield name, message


def likeness(message: Any, name: str = "") -> Any:
    """What has to be equal in two answers that are alike."""
    if isinstance(message, Message):
        return {
            each.name: likeness(getattr(message, each.name), each.name)
            for each in type(message).fields
        }
    if isinstance(message, list):
        return sorted((likeness(one, name) for one in message), key=repr)
    if message is None or isinstance(message, bool | bytes):
        return message
    if name.endswith("error_code") or name in SAME:
        return message
    if isinstance(message, memoryview):
        return bytes(message)
    return "some" if isinstance(message, int) else ("text" if message else "")


class Dialogue:
    """With our broker: asks what was asked, in the name of the client that did."""

    def __init__(self, servers: str) -> None:
        self._client = RawClient(servers)
        self.replaced = Replaced()
        self.alike: Counter[str] = Counter()
        self.differing: list[str] = []
        self.left_out: Counter[str] = Counter()

    def close(self) -> None:
        self._client.close()

    def replay(self, exchange: Exchange) -> None:
        name = exchange.api.name
        if not self.replaced.is_followed(exchange):
            self.left_out[f"{name} after a JoinGroup that was not recorded"] += 1
            return
        self.replaced.apply(exchange.request, exchange.version)
        answers: list[Any] = []

        def is_answered() -> bool:
            answers[:] = [self._ask(exchange)]
            return not NOT_YET & set(_errors(answers[0]))

        wait_until(is_answered)
        [ours] = answers
        self.replaced.learn(exchange, ours)
        if NOT_YET & set(_errors(exchange.response)):
            self.left_out[f"{name} while the coordinator came to be"] += 1
            return
        theirs = _of_the_dialogue(exchange.response, exchange.client_id)
        ours = _of_the_dialogue(ours, exchange.client_id)
        if likeness(theirs) == likeness(ours):
            self.alike[name] += 1
        else:
            self.differing.append(f"{exchange.client_id} {name}\n  Kafka {theirs}\n  ours  {ours}")

    def _ask(self, exchange: Exchange) -> Any:
        api, version = exchange.api, exchange.version
        numbers = exchange.correlation_id, exchange.client_id
        frame = b"".join(encode_request(api, version, *numbers, exchange.request))
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        self._client.send_bytes(frame)
        got, response = self._client.receive(api, version)
        assert got == exchange.correlation_id
        return response


def _errors(response: Any) -> list[int]:
    return [value for name, value in _leaves(response) if name.endswith("error_code")]


def _of_the_dialogue(response: Any, client_id: str) -> Any:
    """Lists of everything that there is show what others did: only the client's own remains."""
    for name in ("groups", "transaction_states"):
        listed = getattr(response, name, None)
        if listed and type(response).__name__.startswith("List"):
            own = [each for each in listed if _prefix(each) == client_id.split("-")[0]]
            setattr(response, name, own)
    return response


def _prefix(listed: Any) -> str:
    name: str = getattr(listed, "group_id", None) or listed.transactional_id
    return "adminclient" if name in ("cg", "wire-tx") else name.split("-")[0]


def dialogues(wire: Path) -> list[list[Exchange]]:
    """One for each recording."""
    to_itself = list(recorded(wire / "interbroker-self.jsonl"))
    found = []
    for file in FILES:
        exchanges = list(recorded(wire / f"{file}.jsonl"))
        ended = [each.request for each in exchanges if each.api.name == "EndTxn"]
        exchanges += [each for each in to_itself if any(_is_about(each, end) for end in ended)]
        found.append(sorted(exchanges, key=lambda each: each.place))
    return found


def _is_about(own: Exchange, ended: Any) -> bool:
    """Whether what the broker said to itself is about that transaction."""
    if own.api.name == "WriteTxnMarkers":
        return any(one.producer_id == ended.producer_id for one in own.request.markers)
    named = own.request.transactions
    return any(one.transactional_id == ended.transactional_id for one in named)


def test_recorded_requests_are_answered_as_kafka_answered_them(shared: Path) -> None:
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "3",  # as the recorded broker had
    }
    with barnabas.Broker(config=config) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, count) for name, count in TOPICS.items()])
        with SyncProducer(broker.bootstrap_servers) as producer:
            for _ in range(5):
                producer.send("rdk", b"to be deleted", partition=0)
        dialogue = Dialogue(broker.bootstrap_servers)
        try:
            for exchanges in dialogues(shared / "fixtures" / "kafka-3.9" / "wire"):
                for exchange in exchanges:
                    dialogue.replay(exchange)
        finally:
            dialogue.close()
    count = dialogue.alike.total()
    print(f"{count} recorded requests answered alike: {dict(dialogue.alike.most_common())}")
    print(f"{dialogue.left_out.total()} recorded requests left out: {dict(dialogue.left_out)}")
    assert not dialogue.differing, "\n".join(dialogue.differing)
    assert count >= LEAST_ALIKE
