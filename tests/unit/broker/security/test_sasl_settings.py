"""The log-in settings of a listener: whatever it cannot honour ends the start, by its name."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.broker.network.listeners import Listener
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.sasl_settings import SaslSettings
from barnabas.broker.security.scram_credentials import ScramCredentials
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol
from tests.kit.set_clock import SetClock

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SECRET = "planted-secret-2"
USERS = f'{PLAIN} username="broker" password="{SECRET}" user_alice="{SECRET}";'
IN = "listener.name.in"


def settings_of(host: str = "127.0.0.1", **settings: Any) -> SaslSettings:
    one = Listener("IN", host, 9092, SecurityProtocol.SASL_PLAINTEXT)
    config = BrokerConfig({"log.dirs": "/d", **settings})
    return SaslSettings(config, one, WatchedClock(SetClock()), ScramCredentials(EmbeddedStore()))


def test_se_3_a_listener_has_mechanisms_and_limits_of_its_own() -> None:
    one = settings_of(
        **{
            "sasl.enabled.mechanisms": "GSSAPI",  # of other listeners
            f"{IN}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            f"{IN}.plain.sasl.jaas.config": USERS,
            f"{IN}.plain.connections.max.reauth.ms": "7000",
            f"{IN}.sasl.server.max.receive.size": "9999",
            "connection.failed.authentication.delay.ms": "50",
        }
    )
    assert (one.max_message_bytes, one.failure_delay_ms) == (9999, 50)
    lifetimes = {name: each.max_reauth_ms for name, each in one.mechanisms.items()}
    assert lifetimes == {"PLAIN": 7000, "SCRAM-SHA-512": 0}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, r"sasl.enabled.mechanisms=GSSAPI: Kerberos is not supported on IN.*PLAIN, SCRAM"),
        ({"sasl.enabled.mechanisms": ""}, "is empty"),
        ({"sasl.enabled.mechanisms": "PLAIN,CRAM-MD5"}, "PLAIN,CRAM-MD5: it is not supported"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "^sasl.jaas.config is missing: PLAIN on IN"),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{IN}.plain.sasl.jaas.config": f'{PLAIN} username="b" password="{SECRET}";',
            },
            f"^{IN}.plain.sasl.jaas.config defines no user",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{IN}.plain.sasl.jaas.config": f'{SCRAM} username="b" password="{SECRET}";',
            },
            f"^{IN}.plain.sasl.jaas.config: .*ScramLoginModule is for SCRAM",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                f"{IN}.scram-sha-256.sasl.jaas.config": f"com.example.Mine required p={SECRET};",
            },
            f"^{IN}.scram-sha-256.sasl.jaas.config: login module com.example.Mine is not",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "inter.broker.listener.name": "IN"},
            r"^sasl.mechanism.inter.broker.protocol=GSSAPI, which brokers use to authenticate",
        ),
        (
            {
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            },
            "SCRAM-SHA-256 needs a user and a password",
        ),
    ],
)
def test_se_3_what_it_cannot_honour_ends_the_start(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        settings_of(**settings)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("host", "mechanism", "is_warned"),
    [("0.0.0.0", "PLAIN", True), ("127.0.0.1", "PLAIN", False), ("", "SCRAM-SHA-256", False)],
)
def test_se_3_passwords_that_anybody_could_read_are_warned_of(
    host: str, mechanism: str, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        settings = {"sasl.enabled.mechanisms": mechanism}
        if mechanism == "PLAIN":
            settings["sasl.jaas.config"] = USERS
        settings_of(host, **settings)
    assert ("anyone on the network can read" in caplog.text) == is_warned
