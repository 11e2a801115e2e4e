"""The options of a log-in: which belong together, and errors that show no secret."""

from __future__ import annotations

import pytest

from barnabas.client.config import ProducerConfig, configure
from barnabas.client.security.config import SecurityConfig
from barnabas.errors import ConfigError

SECRET = "planted-secret-3"
JAAS = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="alice" password="{SECRET}";'
)
USER = {"sasl.plain.username": "alice", "sasl.plain.password": SECRET}
SASL = {"security.protocol": "SASL_PLAINTEXT"}


def configured(**options: object) -> SecurityConfig:
    dotted = {name.replace("_", "."): value for name, value in options.items()}
    common, _ = configure(ProducerConfig, dotted)
    return common.security


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_se_3_a_java_clients_file_goes_in_as_it_is(mechanism: str) -> None:
    config = configured(**SASL, **{"sasl.mechanism": mechanism, "sasl.jaas.config": JAAS})
    assert config.protocol.uses_sasl
    assert SECRET not in repr(config)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (SASL, r"sasl.mechanism: 'GSSAPI' \(Kerberos\) is not supported; set one of PLAIN"),
        ({**SASL, "sasl.mechanism": "NONE"}, "'NONE' is not supported"),
        ({**SASL, "sasl.mechanism": "PLAIN"}, "PLAIN needs a user and a password"),
        (
            {**SASL, "sasl.mechanism": "PLAIN", "sasl.plain.username": "alice"},
            "needs a user and a password",
        ),
        ({**SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}, "mechanism is PLAIN"),
        (
            {**SASL, **USER, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS},
            "set only one of them",
        ),
        (
            {
                **SASL,
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": JAAS.replace("username", "user"),
            },
            "the option 'username' is missing",
        ),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "provider is missing"),
        (USER, "sasl.plain.username is set, but security.protocol is PLAINTEXT"),
        ({"sasl.mechanism": "PLAIN"}, "has no authentication"),
        ({**SASL, **USER, "sasl.plain.password": 3}, "password: its value is not text"),
        ({**SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": SECRET * 80_000}, "longer than"),
    ],
)
def test_se_3_options_that_do_not_fit_are_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        configured(**options)
    assert SECRET not in str(error.value)


def test_se_3_a_token_of_nobody_is_not_supported() -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    jaas = f'{module} required unsecuredLoginStringClaim_sub="alice";'
    with pytest.raises(ConfigError, match="unsigned tokens"):
        configured(**SASL, **{"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": jaas})
