"""SE-6: what promises protection that is not there refuses to start, and names the way out."""

from __future__ import annotations

import re

import pytest

from barnabas.config import BROKER_KEYS, BrokerConfig
from barnabas.config.security_claims import CLAIMS
from barnabas.config.security_keys import SECURITY_KEYS
from barnabas.errors import ConfigError

SECURITY = re.compile(
    r"ssl|sasl|secur|authoriz|principal|acl|token|policy\.class|callback|super\.users|password"
    r"|credential|everyone|reauth|authentication"
)

HONOURED = """
    barnabas.delegation.tokens.per.user
    delegation.token.expiry.time.ms delegation.token.master.key delegation.token.max.lifetime.ms
    delegation.token.secret.key
    allow.everyone.if.no.acl.found authorizer.class.name super.users
    barnabas.ssl.crl.location
    password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
    password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
    barnabas.zookeeper.credentials barnabas.zookeeper.credentials.scheme
    listener.security.protocol.map security.inter.broker.protocol zookeeper.set.acl
    zookeeper.ssl.client.enable zookeeper.ssl.endpoint.identification.algorithm
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    connection.failed.authentication.delay.ms connections.max.reauth.ms
    barnabas.connections.end.with.user
    sasl.enabled.mechanisms sasl.jaas.config sasl.mechanism.inter.broker.protocol
    sasl.server.max.receive.size
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.oauthbearer.token.endpoint.url
    zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
    zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
    zookeeper.ssl.truststore.password zookeeper.ssl.cipher.suites zookeeper.ssl.enabled.protocols
    zookeeper.ssl.protocol
    ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.client.auth
    ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""
"""Obeyed, or refused with a message of their own where they cannot be."""

HARMLESS = """
    delegation.token.expiry.check.interval.ms
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm
"""
"""They refine TLS, log-ins, tokens or an authorizer, each of which is refused where it is asked."""


def promise_of(name: str) -> str:
    """A value by which the setting promises something."""
    return {
        "zookeeper.ssl.crl.enable": "true",
        "zookeeper.ssl.ocsp.enable": "TRUE",
    }.get(name, "com.example.Anything")


def test_of_every_security_setting_it_is_decided_what_it_means() -> None:
    """SE-6: honoured, harmless with a reason, or refused; a new one has to be decided."""
    about_security = {
        *SECURITY_KEYS,
        *(name for name in BROKER_KEYS if SECURITY.search(name)),
        "client.quota.callback.class",
    }
    honoured, harmless = set(HONOURED.split()), set(HARMLESS.split())
    assert honoured | harmless | set(CLAIMS) == about_security
    assert not (honoured & harmless or honoured & set(CLAIMS) or harmless & set(CLAIMS))


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_promise_that_is_not_kept_is_refused(name: str) -> None:
    """SE-6: naming the setting and the way out, never its value."""
    text = promise_of(name)
    with pytest.raises(
        ConfigError, match=rf"^{re.escape(name)} promises .*: leave it out"
    ) as error:
        BrokerConfig({"log.dirs": "/d", name: text})
    assert "Anything" not in str(error.value)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_what_promises_nothing_is_a_warning(name: str) -> None:
    """Unset in so many words, or with a value that Kafka has anyway."""
    key = BROKER_KEYS[name]
    for text in ({""} if key.type not in ("boolean",) and not key.valid else set()) | set(
        CLAIMS[name].harmless
    ):
        assert len(BrokerConfig({"log.dirs": "/d", name: text}).warnings) == 1, text


@pytest.mark.parametrize("name", HARMLESS.split())
def test_what_only_refines_is_a_warning_with_its_reason(name: str) -> None:
    """SE-6: no protection by itself; what it refines is refused."""
    key = BROKER_KEYS[name]
    text = str(key.text(key.default)) if key.default is not None else "1"
    config = BrokerConfig({"log.dirs": "/d", name: text})
    assert config.warnings == [f"{name} has no effect: {key.inert}"]


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.in.ssl.engine.factory.class",
        "listener.name.in.principal.builder.class",
        "listener.name.in.sasl.login.class",
        "listener.name.in.plain.sasl.server.callback.handler.class",
    ],
)
def test_a_promise_of_one_listener_is_one_too(name: str) -> None:
    """SE-6"""
    with pytest.raises(ConfigError, match=re.escape(name)):
        BrokerConfig({"log.dirs": "/d", name: "required"})
