"""A listener's sessions, and what of them follows settings that change while it serves."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.network.listeners import Listener
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.security.sasl_listener import SaslListener
from barnabas.broker.security.sasl_session import SaslSession, Stage
from barnabas.broker.security.scram_credentials import ScramCredentials
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol
from tests.kit.set_clock import SetClock

SECRET, OTHER = "planted-secret-2", "planted-secret-3"
IN = "listener.name.in"
MECHANISMS = f"{IN}.sasl.enabled.mechanisms"
JAAS = f"{IN}.plain.sasl.jaas.config"
REAUTH = f"{IN}.connections.max.reauth.ms"


def users(password: str) -> str:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required user_alice="{password}";'


def configured(**settings: str) -> BrokerConfig:
    first = {MECHANISMS: "PLAIN", JAAS: users(SECRET), REAUTH: "7000"}
    return BrokerConfig({"log.dirs": "/d", **first, **settings})


@pytest.fixture
def listener() -> SaslListener:
    one = Listener("IN", "127.0.0.1", 9092, SecurityProtocol.SASL_PLAINTEXT)
    clock = WatchedClock(SetClock())
    return SaslListener(configured(), one, clock, ScramCredentials(EmbeddedStore()))


def log_in(session: SaslSession, password: str) -> Stage:
    session.handshake("PLAIN", 1)
    session.authenticate(f"\0alice\0{password}".encode())
    return session.stage


def test_se_3_a_session_lasts_as_long_as_is_set_at_its_log_in(listener: SaslListener) -> None:
    first, second = listener.session(), listener.session()
    first.handshake("PLAIN", 1)
    listener.configure(configured(**{REAUTH: "9000"}))
    first.authenticate(f"\0alice\0{SECRET}".encode())
    log_in(second, SECRET)
    now_ms = SetClock().monotonic_ms()
    assert first.expires_at_ms == now_ms + 7000
    assert second.expires_at_ms == now_ms + 9000


def test_se_3_a_new_password_is_for_who_logs_in_again_as_well(listener: SaslListener) -> None:
    open_one = listener.session()
    assert log_in(open_one, SECRET) is Stage.OPEN
    listener.configure(configured(**{JAAS: users(OTHER)}))
    assert log_in(listener.session(), SECRET) is Stage.REFUSED
    assert log_in(listener.session(), OTHER) is Stage.OPEN
    assert open_one.try_begin_again()
    assert log_in(open_one, SECRET) is Stage.REFUSED


def test_se_3_what_cannot_be_used_is_refused_and_the_old_stays(
    listener: SaslListener, caplog: pytest.LogCaptureFixture
) -> None:
    """Errors and logs are without secrets; what concerns others is not looked at."""
    caplog.set_level(logging.INFO)
    broken = configured(**{JAAS: users(OTHER)[:-1]})
    with pytest.raises(ConfigError, match=f"^{JAAS}: the semicolon") as said:
        listener.check(broken)
    listener.configure(broken)
    assert "keeping the previous SASL mechanisms at IN" in caplog.text
    assert OTHER not in caplog.text + str(said.value)
    assert log_in(listener.session(), SECRET) is Stage.OPEN
    caplog.clear()
    listener.configure(broken)  # as often as other settings change
    assert caplog.text == ""
    listener.configure(configured(**{MECHANISMS: "SCRAM-SHA-256", "log.retention.ms": "5"}))
    assert ": SCRAM-SHA-256" in caplog.text
    session = listener.session()
    session.handshake("PLAIN", 1)
    assert session.stage is Stage.REFUSED
