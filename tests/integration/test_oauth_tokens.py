"""SE-3: OAUTHBEARER by the tokens of a provider: our clients, and brokers among each other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from barnabas import Cluster
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.client.errors import Unreachable
from barnabas.errors import SaslAuthenticationFailed
from tests.kit.broker.secured import secured_broker
from tests.kit.signed_tokens import document, signer
from tests.kit.token_provider import SECRET, TokenProvider, token_provider

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LIFE_S = 3


def jaas(client: str, secret: str = SECRET) -> str:
    return f'{MODULE} clientId="{client}" clientSecret="{secret}" extension_traceId="7";'


def options(provider: TokenProvider, client: str, **others: Any) -> dict[str, Any]:
    """As a Java client has them."""
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": handler,
        "sasl.jaas.config": jaas(client),
        "sasl.oauthbearer.token.endpoint.url": provider.url,
        **others,
    }


def test_se_3_a_client_gets_its_tokens_and_new_ones_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it goes on for longer than one of them lives."""
    with token_provider() as provider, secured_broker(tmp_path) as secured:
        provider.life_s = LIFE_S
        with SyncAdmin(secured.servers, **options(provider, "alice")) as admin:
            ends_at = time.monotonic() + LIFE_S + 1.5
            while time.monotonic() < ends_at:
                admin.list_topics()
                time.sleep(0.05)
        assert len(provider.asked) >= 2
        assert SECRET not in caplog.text


def test_se_3_why_there_is_no_token_is_said(tmp_path: Path) -> None:
    """Final if the provider has refused; else it may come yet."""
    with token_provider() as provider, secured_broker(tmp_path) as secured:
        wrong = options(provider, "alice")
        wrong["sasl.jaas.config"] = jaas("alice", "planted-wrong")
        with pytest.raises(SaslAuthenticationFailed, match=r"HTTP 401 \(invalid_client\)") as said:
            SyncAdmin(secured.servers, **wrong).list_topics()
        assert "planted" not in str(said.value)
        provider.status, provider.body = 503, b""
        given = options(provider, "carol", **{"default.api.timeout.ms": 1000})
        with pytest.raises(Unreachable, match=r"there is no token: .*HTTP 503"):
            SyncAdmin(secured.servers, **given).list_topics()


def test_se_3_brokers_log_in_to_each_other_by_tokens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They replicate and coordinate for longer than a token lives."""
    keys = tmp_path / "jwks.json"
    keys.write_bytes(document(signer()))
    with token_provider() as provider:
        provider.life_s = LIFE_S
        settings = {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": jaas("broker"),
            "sasl.oauthbearer.token.endpoint.url": provider.url,
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker;User:alice",
        }
        given = {**options(provider, "alice"), "default.api.timeout.ms": 30_000}
        with Cluster(brokers=2, config=settings) as cluster:
            servers = cluster.bootstrap_servers
            with SyncAdmin(servers, **given) as admin:
                admin.create_topics([NewTopic("t", 2, 2)])
                ends_at = time.monotonic() + LIFE_S + 1.5
                with SyncProducer(servers, acks="all", **given) as producer:
                    count = 0
                    while time.monotonic() < ends_at:
                        producer.send("t", b"x").result(30)
                        count += 1
                        time.sleep(0.02)
                (described,) = admin.describe_topics(["t"])
                assert all(len(each.isr) == 2 for each in described.partitions)
            with SyncConsumer(
                servers, auto_offset_reset="earliest", group_id="g", **given
            ) as consumer:
                consumer.subscribe(["t"])
                seen = 0
                while seen < count:
                    seen += len(consumer.poll(timeout_ms=60_000))
        assert SECRET not in caplog.text
        assert len(provider.asked) >= 4  # of alice and of the brokers
