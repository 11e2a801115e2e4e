"""How a broker logs in to the others."""

from __future__ import annotations

import pytest

from barnabas.broker.security.own_login import is_between_brokers, own_login
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

SECRET = "planted-secret-6"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SASL = SecurityProtocol.SASL_PLAINTEXT


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig({"log.dirs": "/d", **settings})


def test_se_3_without_sasl_a_broker_does_not_log_in() -> None:
    assert own_login(config(), "IN", SecurityProtocol.PLAINTEXT).protocol.value == "PLAINTEXT"


def test_se_3_a_broker_logs_in_by_the_line_of_listener_and_mechanism() -> None:
    jaas = f'{SCRAM} username="broker" password="{SECRET}";'
    login = own_login(
        config(
            **{
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.in.scram-sha-512.sasl.jaas.config": jaas,
                "listener.name.out.scram-sha-512.sasl.jaas.config": "of another",
            }
        ),
        "IN",
        SASL,
    )
    assert (login.security_protocol, login.sasl_mechanism) == ("SASL_PLAINTEXT", "SCRAM-SHA-512")
    assert login.sasl_jaas_config == jaas
    assert SECRET not in repr(login)


def test_se_3_a_broker_logs_in_by_tokens_of_a_provider() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    login = own_login(
        config(
            **{
                "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
                "listener.name.in.oauthbearer.sasl.jaas.config": (
                    f'{module} clientId="broker" clientSecret="{SECRET}";'
                ),
                "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
                "sasl.login.refresh.window.factor": "0.5",
            }
        ),
        "IN",
        SASL,
    )
    assert login.sasl_oauthbearer_token_endpoint_url == "https://id.example/token"
    assert login.sasl_login_refresh_window_factor == 0.5
    assert login.sasl_login_refresh_min_period_seconds == 60
    assert SECRET not in repr(login)


@pytest.mark.parametrize(
    ("mechanism", "problem"),
    [
        ("OAUTHBEARER", "or sasl.oauthbearer.token.endpoint.url"),
        ("PLAIN", "brokers use to authenticate at listener IN: sasl"),
    ],
)
def test_se_3_what_is_missing_is_named(mechanism: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        own_login(config(**{"sasl.mechanism.inter.broker.protocol": mechanism}), "IN", SASL)


def test_se_3_the_listener_between_brokers_is_found_by_name_or_protocol() -> None:
    by_name = config(**{"inter.broker.listener.name": "in"})
    assert is_between_brokers(by_name, "IN", SASL)
    assert not is_between_brokers(by_name, "OUT", SecurityProtocol.PLAINTEXT)
    assert is_between_brokers(config(**{"control.plane.listener.name": "ctl"}), "CTL", SASL)
    by_protocol = config(**{"security.inter.broker.protocol": "SASL_PLAINTEXT"})
    assert is_between_brokers(by_protocol, "OUT", SASL)
    assert not is_between_brokers(by_protocol, "IN", SecurityProtocol.PLAINTEXT)
