"""A broker of ours and a real Kafka's, with the same rules and the same topics, each by itself."""

from __future__ import annotations

import contextlib
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.protocol import api as apis
from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import decode_response, encode_request
from barnabas.security import acl_nodes
from barnabas.security.acl_binding import AclBinding, by_pattern
from tests.kit.acls.building import request
from tests.kit.acls.cells import OPEN_TRANSACTION, Cell, Known
from tests.kit.acls.findings import findings
from tests.kit.acls.rules import (
    ADMIN,
    EXISTING_KINDS,
    GROUP_SETS,
    ID_SETS,
    TOPIC_SETS,
    all_rules,
    name,
    unruled_rules,
)
from tests.kit.acls.user_cells import PASSWORD, ROOT, USER_TOPICS, USERS, user_rules
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.broker_process import BrokerProcess, free_port
from tests.kit.processes.zookeeper_process import ZooKeeperProcess, zookeeper_process
from tests.kit.raw_client import NO_TIDYING, PATIENCE_S, RawClient, once_not
from tests.kit.waiting import wait_until

AUTHORIZER = "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"
_DENIAL = re.compile(r"Principal = .* resourceRefCount = \d+")
_TOKEN_ID = re.compile(r"(?<=DelegationToken:LITERAL:)\S+")
CLOSED = "the connection is closed"
_COMING = {14, 15, 16}  # a coordinator that begins
_PASSING = {5, 14, 15, 51}  # no leader yet, loading, no coordinator yet, concurrent transactions


def broker(
    directory: Path, zookeeper: ZooKeeperProcess, chroot: str, *options: str
) -> BrokerProcess:
    """One that is not started, as the cluster's only one."""
    directory.mkdir(parents=True, exist_ok=True)
    return BrokerProcess(
        directory,
        f"zookeeper.connect={zookeeper.connect}{chroot}",
        "zookeeper.session.timeout.ms=6000",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "group.initial.rebalance.delay.ms=0",
        AUTHORIZER,
        *(f"{key}={value}" for key, value in NO_TIDYING.items()),
        "log.retention.ms=-1",  # Kafka looks for old records 30 s after its start, too
        *options,
    )


def write_rules(connect: str, chroot: str, rules: Iterable[AclBinding]) -> None:
    """The nodes of these rules, written by nobody's authorizer."""
    client = KazooClient(hosts=connect)
    client.start()
    try:
        for pattern, entries in by_pattern(rules).items():
            path = f"{chroot}{acl_nodes.pattern_path(pattern)}"
            client.create(path, acl_nodes.encode_entries(entries), makepath=True)
    finally:
        client.stop()
        client.close()


class Pair(NamedTuple):
    """A broker of ours and a real Kafka's, with the same settings and rules."""

    ours: AclBroker
    kafka: AclBroker


@contextlib.contextmanager
def both_pairs(directory: Path) -> Iterator[tuple[Pair, Pair]]:
    """Where what no rule is about is denied, and users log in; and where it is allowed."""
    kinds = {
        "ruled": ([*all_rules(), *user_rules()], with_users),
        "unruled": (list(unruled_rules()), _without_users),
    }
    with zookeeper_process(directory) as zookeeper, contextlib.ExitStack() as running:
        brokers = {}
        for kind, (rules, settings) in kinds.items():
            for name_of_one in ("kafka", "ours"):
                chroot = f"/{kind}-{name_of_one}"
                write_rules(zookeeper.connect, chroot, rules)
                one = broker(directory / chroot[1:], zookeeper, chroot, "broker.id=1")
                login_port = free_port()
                one.options += settings(one.port, login_port)
                brokers[kind, name_of_one] = one, login_port
        kafkas = {kind: KafkaProcess(brokers[kind, "kafka"][0]) for kind in kinds}
        for each in kafkas.values():
            running.callback(each.kill)
        pairs = []
        for kind, kafka in kafkas.items():
            (ours, our_login), (theirs, their_login) = (
                brokers[kind, each] for each in ("ours", "kafka")
            )
            ours.start()
            running.callback(ours.kill)
            kafka.wait_until_ready()
            pair = Pair(
                AclBroker(ours.port, our_login, ours.log),
                AclBroker(theirs.port, their_login, kafka.log),
            )
            running.callback(pair.ours.close)
            running.callback(pair.kafka.close)
            pairs.append(pair)
        yield pairs[0], pairs[1]


def with_users(port: int, login_port: int) -> tuple[str, ...]:
    """Settings of a second listener, for users that log in, and of their tokens."""
    users = " ".join(f'"user_{each}"="{PASSWORD}"' for each in USERS)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return (
        f"listeners=PLAINTEXT://127.0.0.1:{port},IN://127.0.0.1:{login_port}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,IN:SASL_PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.in.plain.sasl.jaas.config={module} required {users};",
        f"super.users=User:{ROOT}",
        "delegation.token.secret.key=planted-secret-of-tokens",
    )


def _without_users(port: int, login_port: int) -> tuple[str, ...]:
    return ("allow.everyone.if.no.acl.found=true",)


class AclBroker:
    """What the matrix is asked of: a port, and connections to it from many addresses."""

    def __init__(self, port: int, login_port: int, log: Path) -> None:
        self._port = port
        self._login_port = login_port
        self._log = log
        self._connections: dict[tuple[str, str], socket.socket] = {}
        self.admin = RawClient(f"127.0.0.1:{port}")

    def again(self) -> AclBroker:
        """The same after a new start."""
        return AclBroker(self._port, self._login_port, self._log)

    def close(self) -> None:
        self.admin.close()
        for connection in self._connections.values():
            connection.close()

    def denials(self) -> Counter[str]:
        """The lines of the authorizer's log, each with how often it is there."""
        lines = _DENIAL.findall(self._log.read_text(errors="replace"))
        return Counter(_TOKEN_ID.sub("a token", line) for line in lines)

    def ask(self, api: Api, version: int, values: dict[str, Any]) -> Any:
        """The answer to the admin."""
        return self.admin.call(api, version, request(api, values))

    def prepare(self, users: Iterable[str] = ()) -> Known:
        """Make the topics, groups, transactional ids and tokens that the matrix is about."""
        topics = [name(kind, each) for kind in EXISTING_KINDS for each in TOPIC_SETS]
        topics.append("w.one")
        if users:
            topics += USER_TOPICS
        new = [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in topics]
        made = once_not(  # until the controller has seen its own broker
            38,
            lambda: self.ask(apis.CREATE_TOPICS, 7, {"topics": new}),
            lambda answer: int(answer.topics[0].error_code),
        )
        assert {each.error_code for each in made.topics} == {0}, made
        for key_type in (0, 1):
            once_not(
                15,
                partial(self.ask, apis.FIND_COORDINATOR, 3, {"key": "any", "key_type": key_type}),
                lambda answer: int(answer.error_code),
            )
        wait_until(lambda: self._all_led(topics))
        self._commit_offsets()
        self._begin_transactions()
        found = self.ask(apis.METADATA, 12, {"topics": None})
        tokens = {each: self._make_token(each) for each in users}
        return Known({each.name: each.topic_id for each in found.topics}, 1, tokens)

    def _make_token(self, user: str) -> bytes:
        values = {"max_lifetime_ms": 1_000_000}
        cell = Cell(ADMIN, apis.CREATE_DELEGATION_TOKEN, 3, values, "token", user)
        made: Any = self._answer(cell)
        assert made is not None and made.error_code == 0, made
        return bytes(made.hmac)

    def _all_led(self, topics: list[str]) -> bool:
        found = self.ask(apis.METADATA, 12, {"topics": [{"name": each} for each in topics]})
        return all(
            each.error_code == 0 and each.partitions and not each.partitions[0].error_code
            for each in found.topics
        )

    def _commit_offsets(self) -> None:
        committed = [
            {
                "name": name("t", each),
                "partitions": [
                    {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
                ],
            }
            for each in TOPIC_SETS
        ]
        for rule_set in GROUP_SETS:
            values = {"group_id": name("g", rule_set), "topics": committed}
            answer = once_not(
                1,
                partial(self.ask, apis.OFFSET_COMMIT, 8, values),
                lambda answer: int(answer.topics[0].partitions[0].error_code in _COMING),
            )
            assert answer.topics[0].partitions[0].error_code == 0, answer

    def _begin_transactions(self) -> None:
        for transactional_id in (*(name("x", each) for each in ID_SETS), OPEN_TRANSACTION):
            values = {"transactional_id": transactional_id, "transaction_timeout_ms": 600_000}
            found = once_not(
                1,
                partial(self.ask, apis.INIT_PRODUCER_ID, 4, values),
                lambda answer: int(answer.error_code in _COMING),
            )
            assert found.error_code == 0, found
        begun = self.ask(
            apis.ADD_PARTITIONS_TO_TXN,
            3,
            {
                "v3_and_below_transactional_id": OPEN_TRANSACTION,
                "v3_and_below_producer_id": found.producer_id,
                "v3_and_below_producer_epoch": found.producer_epoch,
                "v3_and_below_topics": [
                    {"name": name("t", each), "partitions": [0]} for each in TOPIC_SETS
                ],
            },
        )
        assert (
            begun.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        )

    def decide(self, cell: Cell) -> Any:
        """What the answer to a cell shows; asked again while it fails for a moment."""
        return once_not(
            1,
            lambda: self._ask(cell),
            lambda found: int(_is_passing(cell, found)),
        )

    def _ask(self, cell: Cell) -> Any:
        answer = self._answer(cell)
        return CLOSED if answer is None else findings(answer)

    def _answer(self, cell: Cell) -> Message | None:
        """None: the connection was closed."""
        connection = self._connection(cell.host, cell.user)
        message = request(cell.api, cell.values)
        parts: list[Any] = encode_request(cell.api, cell.version, 7, "matrix", message)
        connection.sendall(b"".join(parts))
        frame = _frame(connection)
        if frame is None:
            del self._connections[cell.host, cell.user]
            connection.close()
            return None
        return decode_response(cell.api, cell.version, memoryview(frame))[1]

    def _connection(self, host: str, user: str) -> socket.socket:
        if (host, user) not in self._connections:
            port = self._login_port if user else self._port
            self._connections[host, user] = socket.create_connection(
                ("127.0.0.1", port), timeout=PATIENCE_S, source_address=(host, 0)
            )
            if user:
                self._log_in(host, user)
        return self._connections[host, user]

    def _log_in(self, host: str, user: str) -> None:
        for api, values in (
            (apis.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
            (apis.SASL_AUTHENTICATE, {"auth_bytes": f"\0{user}\0{PASSWORD}".encode()}),
        ):
            answer: Any = self._answer(Cell(host, api, 1, values, "log in", user))
            assert answer is not None and answer.error_code == 0, answer


def _frame(connection: socket.socket) -> bytes | None:
    data = bytearray()
    try:
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4]):
            more = connection.recv(65536)
            if not more:
                return None
            data += more
    except ConnectionResetError:
        return None
    return bytes(data[4:])


def _is_passing(cell: Cell, found: Any) -> bool:
    return cell.api is not apis.METADATA and any(
        f"error_code': {code}" in repr(found).replace("}", ",").replace(",", "")
        and f"error_code': {code}," in repr(found).replace("}", ",")
        for code in _PASSING
    )
