"""A real Kafka 3.9.1 and a broker of ours in one cluster whose brokers and clients log in.

Both run with the same settings. What one of them says to a client that it lets in or refuses, the
other says as well; credentials that one has written count at the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from barnabas.client import (
    NewTopic,
    SyncAdmin,
    SyncConsumer,
    SyncProducer,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.errors import (
    DelegationTokenNotFound,
    DelegationTokenRequestNotAllowed,
    KafkaError,
    NotController,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from barnabas.protocol.api import (
    ALTER_USER_SCRAM_CREDENTIALS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.types import TopicPartition
from tests.kit.broker.secured import MECHANISMS, SECRET, USER, options, secured_broker
from tests.kit.certificates import Authority, PemFiles
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.ready_brokers import wait_for_members
from tests.kit.raw_client import RawClient
from tests.kit.signed_tokens import claims, document, signer, unsigned
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

PACKAGE = "org.apache.kafka.common.security"
BETWEEN = "planted-secret-between"
KAFKAS, OURS = 1, 2
REAUTH_MS = 3_000


class Mixed(NamedTuple):
    """Where the two brokers are reached by clients that log in."""

    kafka: str
    ours: str
    tls: tuple[str, ...]
    """Where they do so through TLS."""
    files: PemFiles

    @property
    def both(self) -> tuple[str, str]:
        return self.kafka, self.ours


def settings(keys: Path, files: PemFiles) -> tuple[str, ...]:
    """Of either broker."""
    return (
        "listener.security.protocol.map=OPEN:PLAINTEXT,IN:SASL_PLAINTEXT,TLS:SASL_SSL",
        "inter.broker.listener.name=TLS",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
        f"connections.max.reauth.ms={REAUTH_MS}",
        *log_ins("listener.name.in"),
        *log_ins("listener.name.tls"),
        *(f"{name}={value}" for name, value in files.settings().items()),
        f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}",
        "sasl.oauthbearer.expected.audience=kafka",
        f"delegation.token.secret.key={BETWEEN}",
        "zookeeper.session.timeout.ms=6000",
    )


def log_ins(listener: str) -> tuple[str, ...]:
    """How clients, and the other broker, log in at a listener."""
    oauth = f"{PACKAGE}.oauthbearer"
    return (
        f"{listener}.plain.sasl.jaas.config={PACKAGE}.plain.PlainLoginModule required "
        f'username="broker" password="{BETWEEN}" user_broker="{BETWEEN}" user_{USER}="{SECRET}";',
        f"{listener}.scram-sha-256.sasl.jaas.config={PACKAGE}.scram.ScramLoginModule required;",
        f"{listener}.scram-sha-512.sasl.jaas.config={PACKAGE}.scram.ScramLoginModule required;",
        f"{listener}.oauthbearer.sasl.jaas.config={oauth}.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class={oauth}."
        "OAuthBearerValidatorCallbackHandler",
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    directory = tmp_path_factory.mktemp("mixed")
    keys = directory / "jwks.json"
    keys.write_bytes(document(signer()))
    files = Authority.make(directory / "ca").server()
    cluster = ClusterProcess(directory, 2, *settings(keys, files))
    addresses, tls = {}, {}
    for broker_id, broker in cluster.brokers.items():
        addresses[broker_id] = f"127.0.0.1:{free_port()}"
        tls[broker_id] = f"127.0.0.1:{free_port()}"
        listeners = (
            f"OPEN://{broker.bootstrap_servers},IN://{addresses[broker_id]},TLS://{tls[broker_id]}"
        )
        broker.options = (*broker.options, f"listeners={listeners}")
    kafka: KafkaProcess | None = None
    with pytest.MonkeyPatch.context() as patch:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
        patch.setenv("JDK_JAVA_OPTIONS", allowed)
        try:
            cluster.zookeeper.start()
            kafka = KafkaProcess(cluster.brokers[KAFKAS])
            kafka.wait_until_ready()  # so that it is the controller
            cluster.brokers[OURS].start()
            wait_for_members([each.bootstrap_servers for each in cluster.brokers.values()])
            log = cluster.brokers[OURS].log
            yield Mixed(addresses[KAFKAS], addresses[OURS], tuple(tls.values()), files)
            said = log.read_text()
            assert "Traceback" not in said, said
            assert BETWEEN not in said and SECRET not in said
        finally:
            if kafka is not None and kafka.process.poll() is None:
                kafka.kill()
            cluster.kill_all()


@pytest.fixture(scope="module")
def topic(mixed: Mixed) -> str:
    """A topic with a replica at either broker, made by a client that has logged in."""
    with SyncAdmin(mixed.kafka, **options("PLAIN")) as admin:
        admin.create_topics(NewTopic("mixed", assignment={0: [KAFKAS, OURS], 1: [OURS, KAFKAS]}))
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(USER, SECRET, mechanism)
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            ]
        )
    for servers in mixed.both:
        for mechanism in MECHANISMS:
            wait_until(partial(is_let_in, servers, mechanism))
    return "mixed"


def refusal(servers: str, mechanism: str, **changes: Any) -> KafkaError | None:
    """Why our client is not let in; None if it is."""
    try:
        with SyncAdmin(servers, **{**options(mechanism), **changes}) as admin:
            admin.list_topics()
    except KafkaError as error:
        return error
    return None


def is_let_in(servers: str, mechanism: str, **changes: Any) -> bool:
    return refusal(servers, mechanism, **changes) is None


def is_refused(servers: str, mechanism: str, **changes: Any) -> bool:
    return refusal(servers, mechanism, **changes) is not None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_se_3_records_cross_between_brokers_that_log_in(
    mixed: Mixed, topic: str, mechanism: str
) -> None:
    """ZK-6: each broker leads a partition and follows the other, over PLAIN."""
    for servers in mixed.both:
        value = f"{mechanism} at {servers}".encode()
        with SyncProducer(servers, acks="all", **options(mechanism)) as producer:
            for partition in (0, 1):
                producer.send(topic, value, partition=partition).result(60)
        with SyncConsumer(mixed.ours, auto_offset_reset="earliest", **options("PLAIN")) as reader:
            reader.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            ends_at, seen = time.monotonic() + 60, 0
            while seen < 2 and time.monotonic() < ends_at:
                seen += sum(record.value == value for record in reader.poll(500))
            assert seen == 2


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_se_3_clients_log_in_through_tls_at_both(mixed: Mixed, topic: str, mechanism: str) -> None:
    """SE-2: as the brokers themselves do."""
    secured = {"security.protocol": "SASL_SSL", **mixed.files.trust()}
    given = {**options(mechanism), **{name.replace(".", "_"): v for name, v in secured.items()}}
    for servers in mixed.tls:
        with SyncProducer(servers, acks="all", **given) as producer:
            for partition in (0, 1):
                producer.send(topic, b"through TLS", partition=partition).result(60)
        theirs = Producer(
            {
                "bootstrap.servers": servers,
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(mixed.files.truststore),
                "sasl.mechanism": mechanism,
                "sasl.username": USER,
                "sasl.password": SECRET,
            }
        )
        theirs.produce(topic, b"through TLS")
        assert theirs.flush(60) == 0
        wrong = {**given, "sasl_plain_password": "wrong"}
        assert is_refused(servers, mechanism, **wrong)


def test_se_3_sessions_are_renewed_at_both(mixed: Mixed, topic: str) -> None:
    ends_at = time.monotonic() + 2.2 * REAUTH_MS / 1000
    scram = options("SCRAM-SHA-256")
    with SyncProducer(mixed.kafka, acks="all", linger_ms=0, **scram) as own:
        theirs = Producer(
            {
                "bootstrap.servers": mixed.ours,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": USER,
                "sasl.password": SECRET,
            }
        )
        failed: list[Any] = []
        while time.monotonic() < ends_at:
            for partition in (0, 1):
                own.send(topic, b"renewed", partition=partition).result(60)
                theirs.produce(
                    topic,
                    b"renewed",
                    partition=partition,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            theirs.poll(0.05)
        assert theirs.flush(60) == 0
        assert failed == []


REFUSED: dict[str, tuple[str, dict[str, Any], type[KafkaError]]] = {
    "a wrong password by PLAIN": (
        "PLAIN",
        {"sasl_plain_password": "wrong"},
        SaslAuthenticationFailed,
    ),
    "nobody by PLAIN": ("PLAIN", {"sasl_plain_username": "mallory"}, SaslAuthenticationFailed),
    "a wrong password by SCRAM": (
        "SCRAM-SHA-256",
        {"sasl_plain_password": "wrong"},
        SaslAuthenticationFailed,
    ),
    "nobody by SCRAM": (
        "SCRAM-SHA-512",
        {"sasl_plain_username": "mallory"},
        SaslAuthenticationFailed,
    ),
    "an unsigned token": (
        "OAUTHBEARER",
        {"sasl_oauth_token_provider": lambda: unsigned(claims(int(time.time())), signature="AA")},
        SaslAuthenticationFailed,
    ),
    "a token for another audience": (
        "OAUTHBEARER",
        {"sasl_oauth_token_provider": lambda: signer().sign(claims(int(time.time()), aud="x"))},
        SaslAuthenticationFailed,
    ),
    "an expired token": (
        "OAUTHBEARER",
        {"sasl_oauth_token_provider": lambda: signer().sign(claims(int(time.time()) - 3600))},
        SaslAuthenticationFailed,
    ),
    "a token of another key": (
        "OAUTHBEARER",
        {"sasl_oauth_token_provider": lambda: signer("k2").sign(claims(int(time.time())))},
        SaslAuthenticationFailed,
    ),
}


@pytest.mark.parametrize("attempt", REFUSED)
def test_se_3_both_refuse_with_the_same_words(mixed: Mixed, topic: str, attempt: str) -> None:
    mechanism, changes, error = REFUSED[attempt]
    texts = set()
    for servers in mixed.both:
        refused = refusal(servers, mechanism, **changes)
        assert isinstance(refused, error), refused
        texts.add(str(refused).removeprefix(f"{servers}: "))
    assert len(texts) == 1, texts


def test_se_3_both_answer_a_handshake_alike(mixed: Mixed) -> None:
    for mechanism in ("GSSAPI", "PLAIN", ""):
        answers = []
        for servers in mixed.both:
            with RawClient(servers) as raw:
                hello = SaslHandshakeRequest(mechanism=mechanism)
                answer = raw.call(SASL_HANDSHAKE, 1, hello)
                answers.append((answer.error_code, sorted(answer.mechanisms)))
                if answer.error_code:
                    assert raw.is_closed_by_peer()
        assert answers[0] == answers[1]
    assert answers[0][0] == UnsupportedSaslMechanism.code


def test_se_3_both_let_nothing_pass_before_the_log_in(mixed: Mixed) -> None:
    for servers in mixed.both:
        with RawClient(servers) as raw:
            raw.send(METADATA, 1, MetadataRequest(topics=[]))
            assert raw.is_closed_by_peer(), servers


def logged_in(servers: str) -> RawClient:
    raw = RawClient(servers)
    raw.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    message = f"\0{USER}\0{SECRET}".encode()
    answer = raw.call(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=message))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, REAUTH_MS)
    return raw


def test_se_3_both_end_a_session_that_is_not_renewed(mixed: Mixed) -> None:
    for servers in mixed.both:
        with logged_in(servers) as raw:
            assert raw.call(METADATA, 1, MetadataRequest(topics=[])).brokers
            time.sleep(REAUTH_MS / 1000 + 0.3)
            raw.send(METADATA, 1, MetadataRequest(topics=[]))
            assert raw.is_closed_by_peer(), servers


def test_se_3_both_allow_another_log_in_and_no_other_user(mixed: Mixed) -> None:
    answers = []
    for servers in mixed.both:
        with logged_in(servers) as raw:
            raw.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
            other = SaslAuthenticateRequest(auth_bytes=f"\0broker\0{BETWEEN}".encode())
            answer = raw.call(SASL_AUTHENTICATE, 2, other)
            answers.append((answer.error_code, answer.error_message))
            assert raw.is_closed_by_peer(), servers
    assert answers[0] == answers[1]


def test_se_3_credentials_of_either_count_at_the_other(mixed: Mixed, topic: str) -> None:
    """ZK-6: whoever is controller writes them to ZooKeeper, and the other notices."""
    with SyncAdmin(mixed.ours, **options("PLAIN")) as admin:
        admin.alter_user_scram_credentials(
            UserScramCredentialUpsertion("erin", "e", iterations=4097)
        )
    erin = {"sasl_plain_username": "erin", "sasl_plain_password": "e"}
    for servers in mixed.both:
        wait_until(partial(is_let_in, servers, "SCRAM-SHA-256", **erin))
        with SyncAdmin(servers, **options("PLAIN")) as admin:
            assert admin.describe_user_scram_credentials("erin") == {
                "erin": {"SCRAM-SHA-256": 4097}
            }
    with SyncAdmin(mixed.kafka, **options("PLAIN")) as admin:
        admin.alter_user_scram_credentials(UserScramCredentialDeletion("erin"))
    for servers in mixed.both:
        wait_until(partial(is_refused, servers, "SCRAM-SHA-256", **erin))


def alterations() -> list[AlterUserScramCredentialsRequest]:
    """Requests with every mistake; none that succeeds."""

    def upsertion(**changes: Any) -> AlterUserScramCredentialsRequest:
        fields = {
            "name": "frank",
            "mechanism": 1,
            "iterations": 4096,
            "salt": b"salt",
            "salted_password": bytes(32),
            **changes,
        }
        return AlterUserScramCredentialsRequest(upsertions=[ScramCredentialUpsertion(**fields)])

    twice = upsertion()
    twice.upsertions *= 2
    return [
        upsertion(iterations=4095),
        upsertion(iterations=16385),
        upsertion(mechanism=0),
        upsertion(name=""),
        twice,
        *(
            AlterUserScramCredentialsRequest(
                deletions=[ScramCredentialDeletion(name=name, mechanism=mechanism)]
            )
            for name, mechanism in (("frank", 1), ("frank", 7), ("", 1))
        ),
    ]


def answers_of(raw: RawClient) -> tuple[list[Any], list[Any]]:
    """Those to the requests above, and to questions about users."""
    altered: list[Any] = []
    for wanted in alterations():
        answer = raw.call(ALTER_USER_SCRAM_CREDENTIALS, 0, wanted)
        altered.append(
            [(each.user, each.error_code, each.error_message) for each in answer.results]
        )
    described: list[Any] = []
    for names in (["frank"], [USER], [USER, USER, "frank", ""]):
        asked = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
        answer = raw.call(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, asked)
        rows = [
            (each.user, each.error_code, each.error_message, len(each.credential_infos))
            for each in answer.results
        ]
        described.append((answer.error_code, answer.error_message, sorted(rows)))
    return altered, described


def test_se_3_requests_about_credentials_are_judged_alike(
    mixed: Mixed, topic: str, tmp_path: Path
) -> None:
    """By Kafka as the controller, and by a broker of ours that is one."""
    with logged_in(mixed.kafka) as raw:
        altered, described = answers_of(raw)
    with logged_in(mixed.ours) as raw:
        refused, same = answers_of(raw)
    assert same == described
    assert {code for rows in refused for _, code, _ in rows} == {NotController.code}
    with secured_broker(tmp_path) as alone, RawClient(alone.open_servers) as raw:
        assert answers_of(raw) == (altered, described)


def test_se_3_a_token_of_either_counts_at_the_other(mixed: Mixed, topic: str) -> None:
    """ZK-6, KIP-48: its secret, its owner, its renewal and its end."""
    for maker, other in (mixed.both, mixed.both[::-1]):
        with (
            SyncAdmin(maker, **options("PLAIN")) as here,
            SyncAdmin(other, **options("SCRAM-SHA-512")) as there,
        ):
            token = here.create_delegation_token(renewers="erin", max_lifetime_ms=3_600_000)
            assert token.owner == f"User:{USER}"
            wait_until(lambda at=there, made=token: made in at.describe_delegation_tokens())  # type: ignore[misc]
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                by = {
                    "security_protocol": "SASL_PLAINTEXT",
                    "sasl_mechanism": mechanism,
                    "sasl_jaas_config": token.jaas_config,
                }
                for servers in mixed.both:
                    with SyncAdmin(servers, **by) as admin:
                        admin.list_topics()
                        with pytest.raises(DelegationTokenRequestNotAllowed):
                            admin.create_delegation_token()
            expires_at_ms = there.renew_delegation_token(token.hmac, 60_000)
            assert expires_at_ms < token.expiry_timestamp_ms
            wait_until(
                lambda at=here, until=expires_at_ms: (  # type: ignore[misc]
                    until in [each.expiry_timestamp_ms for each in at.describe_delegation_tokens()]
                )
            )
            here.expire_delegation_token(token.hmac)
            for admin in (here, there):
                wait_until(lambda at=admin: at.describe_delegation_tokens() == [])  # type: ignore[misc]
                with pytest.raises(DelegationTokenNotFound):
                    admin.renew_delegation_token(token.hmac)
