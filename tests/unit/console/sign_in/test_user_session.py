"""IN-6: which client options let users sign in."""

from __future__ import annotations

import pytest

from barnabas.console.sign_in.user_session import check_sign_in, options_of_user
from barnabas.errors import ConfigError

OPTIONS = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_these_mechanisms_have_passwords(mechanism: str) -> None:
    check_sign_in(OPTIONS | {"sasl_mechanism": mechanism})


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "security.protocol is PLAINTEXT, which has no users"),
        ({"security_protocol": "SSL"}, "security.protocol is SSL, which has no users"),
        (OPTIONS | {"sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER, which has no passwords"),
    ],
)
def test_others_are_named(options: dict[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        check_sign_in(options)


def test_nothing_is_left_of_the_user_in_the_file() -> None:
    files = OPTIONS | {"sasl_jaas_config": "the admin's", "client_id": "c"}
    assert options_of_user(files, "alice", "secret") == {
        **OPTIONS,
        "client_id": "c",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }
