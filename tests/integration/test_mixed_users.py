"""MX-1: users, rules and quotas that one kind of broker writes are in force at the other.

Clients log in at both kinds with SCRAM. All three are in ZooKeeper, in Kafka's formats, and each
broker is notified of their changes through it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest

from barnabas.client import (
    SyncAdmin,
    SyncProducer,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.errors import KafkaError, SaslAuthenticationFailed, TopicAuthorizationFailed
from barnabas.protocol.api import PRODUCE
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)
from tests.kit import foreign
from tests.kit.broker.produces import produce_request
from tests.kit.broker.quota_calls import RAW, Parts, set_quotas
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.mixed_cluster import (
    KINDS,
    OPTIONS,
    PATIENCE_S,
    Kind,
    MixedCluster,
    restore_leaders,
)
from tests.kit.processes.mixed_load import make_topic
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(600)]

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SETTINGS = (
    *OPTIONS,
    "min.insync.replicas=1",
    "listener.security.protocol.map=OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
    "inter.broker.listener.name=OPEN",
    "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512",
    f"listener.name.in.scram-sha-256.sasl.jaas.config={LOGIN}",
    f"listener.name.in.scram-sha-512.sasl.jaas.config={LOGIN}",
    "connection.failed.authentication.delay.ms=0",
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    "super.users=User:ANONYMOUS",
)
ENTITIES: tuple[Parts, ...] = (RAW, {"user": "ANONYMOUS"})
MEMBERS: dict[int, Kind] = {1: "kafka", 2: "ours"}


class Users(NamedTuple):
    """The cluster, and where users log in at its brokers."""

    mixed: MixedCluster
    logins: dict[int, str]

    def admin_at(self, kind: Kind) -> SyncAdmin:
        [broker_id] = self.mixed.of_kind(kind)
        return SyncAdmin(self.mixed.ours.brokers[broker_id].bootstrap_servers)


VERSIONS = (foreign.KAFKA_VERSION, *foreign.OTHER_BROKERS_VERSIONS)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=pytest.mark.soak if each == VERSIONS[0] else pytest.mark.slow)
        for each in VERSIONS
    ],
)
def users(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Users]:
    version = request.param
    others = {} if version == foreign.KAFKA_VERSION else {1: version}
    protocol = "inter.broker.protocol.version=" + ".".join(version.split(".")[:2])
    directory = tmp_path_factory.mktemp("users")
    mixed = MixedCluster(directory, MEMBERS, *SETTINGS, protocol, versions=others)
    logins = {}
    for broker_id, broker in mixed.ours.brokers.items():
        logins[broker_id] = f"127.0.0.1:{free_port()}"
        listeners = f"listeners=OPEN://{broker.bootstrap_servers},IN://{logins[broker_id]}"
        broker.options = (*broker.options, listeners)
    try:
        mixed.start()
        yield Users(mixed, logins)
    finally:
        mixed.kill_all()


def login(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def is_let_in(servers: str, given: dict[str, Any]) -> bool:
    try:
        with SyncAdmin(servers, **given) as admin:
            admin.list_topics()
    except SaslAuthenticationFailed:
        return False
    return True


def is_refused(servers: str, given: dict[str, Any]) -> bool:
    return not is_let_in(servers, given)


@pytest.mark.parametrize("writer", KINDS)
def test_mx_1_users_of_either_kind_log_in_at_both(users: Users, writer: Kind) -> None:
    """MX-1: created, given another password and deleted by the controller, of either kind."""
    users.mixed.give_control_to(writer)
    name, mechanism = f"user-of-{writer}", "SCRAM-SHA-512"
    old, new = login(name, "old", mechanism), login(name, "new", mechanism)
    with users.admin_at(writer) as admin:
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion(name, "old", mechanism))
        for servers in users.logins.values():
            wait_until(partial(is_let_in, servers, old), PATIENCE_S)
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion(name, "new", mechanism))
        for servers in users.logins.values():
            wait_until(partial(is_let_in, servers, new), PATIENCE_S)
            assert is_refused(servers, old)
    for kind in KINDS:
        with users.admin_at(kind) as admin:
            assert list(admin.describe_user_scram_credentials(name)[name]) == [mechanism]
    with users.admin_at(writer) as admin:
        admin.alter_user_scram_credentials(UserScramCredentialDeletion(name, mechanism))
    for servers in users.logins.values():
        wait_until(partial(is_refused, servers, new), PATIENCE_S)


def write(servers: str, given: dict[str, Any], topic: str, partition: int) -> KafkaError | None:
    """Why a record is refused; None if it is not."""
    with SyncProducer(servers, acks=1, enable_idempotence=False, **given) as producer:
        try:
            producer.send(topic, b"value", partition=partition).result(PATIENCE_S)
        except KafkaError as error:
            return error
    return None


@pytest.mark.parametrize("writer", KINDS)
def test_mx_1_rules_of_either_kind_are_enforced_by_both(users: Users, writer: Kind) -> None:
    """MX-1: a prefixed rule that allows, and a literal one that denies; the other kind deletes."""
    [other] = set(KINDS) - {writer}
    users.mixed.give_control_to("ours")
    name = f"writer-at-{writer}"
    principal, given = f"User:{name}", login(name, "pass")
    with users.admin_at("ours") as admin:
        restore_leaders(admin)
        topic = make_topic(admin, f"rules-{writer}", {0: [1, 2], 1: [2, 1]})
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion(name, "pass"))
    servers = ",".join(users.logins.values())
    for each in users.logins.values():
        wait_until(partial(is_let_in, each, given), PATIENCE_S)

    def binding(kind: PatternType, resource: str, says: PermissionType) -> AclBinding:
        entry = AclEntry(principal, "*", Operation.WRITE, says)
        return AclBinding(Pattern(ResourceType.TOPIC, resource, kind), entry)

    def is_allowed() -> bool:
        return [write(servers, given, topic, each) for each in (0, 1)] == [None, None]

    def is_denied() -> bool:
        found = [write(servers, given, topic, each) for each in (0, 1)]
        return all(isinstance(each, TopicAuthorizationFailed) for each in found)

    assert is_denied()
    with users.admin_at(writer) as admin:
        admin.create_acls(binding(PatternType.PREFIXED, "rules-", PermissionType.ALLOW))
        wait_until(is_allowed, PATIENCE_S)
        admin.create_acls(binding(PatternType.LITERAL, topic, PermissionType.DENY))
        wait_until(is_denied, PATIENCE_S)
    with users.admin_at(other) as admin:
        assert len(admin.describe_acls(AclFilter(principal=principal))) == 2
        admin.delete_acls(AclFilter(ResourceType.TOPIC, topic, principal=principal))
        wait_until(is_allowed, PATIENCE_S)
        admin.delete_acls(AclFilter(principal=principal))
        wait_until(is_denied, PATIENCE_S)


@pytest.mark.parametrize("writer", KINDS)
def test_mx_1_quotas_of_either_kind_throttle_at_both(users: Users, writer: Kind) -> None:
    """MX-1: of a client id and of a user; what they are not any more, no broker throttles."""
    brokers = users.mixed.ours.brokers
    with users.admin_at("ours") as admin:
        restore_leaders(admin)
        topic = make_topic(admin, f"quota-{writer}", {0: [1, 2], 1: [2, 1]})
    [writing] = users.mixed.of_kind(writer)

    def throttle_ms(partition: int) -> int | None:
        with RawClient(brokers[partition + 1].bootstrap_servers) as client:
            request = produce_request(topic, {partition: batch(b"a" * 1_000)}, acks=1)
            answer = client.call(PRODUCE, 7, request)
            [row] = answer.responses[0].partition_responses
            return None if row.error_code else answer.throttle_time_ms

    def is_throttled(partition: int) -> bool:
        return bool(throttle_ms(partition))

    def is_free(partition: int) -> bool:
        return throttle_ms(partition) == 0

    for entity, partition in itertools.product(ENTITIES, (0, 1)):
        wait_until(partial(is_free, partition), PATIENCE_S)
        with RawClient(brokers[writing].bootstrap_servers) as client:
            set_quotas(client, entity, producer_byte_rate=100.0)
        wait_until(partial(is_throttled, partition), PATIENCE_S)
        for kind in KINDS:
            with users.admin_at(kind) as admin:
                found = admin.describe_client_quotas(entity)
                assert list(found.values()) == [{"producer_byte_rate": 100.0}]
        with RawClient(brokers[writing].bootstrap_servers) as client:
            set_quotas(client, entity, producer_byte_rate=None)
        wait_until(partial(is_free, partition), PATIENCE_S)
