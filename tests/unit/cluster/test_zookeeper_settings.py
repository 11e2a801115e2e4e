"""What a broker's settings say of ZooKeeper is checked before anything is tried (ZK-6)."""

from __future__ import annotations

import re

import pytest

from barnabas.cluster.zookeeper_settings import Settings, Tls, settings_from
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError


def _settings(**more: str) -> Settings:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return settings_from(
        BrokerConfig({"log.dirs": "/d", "zookeeper.connect": "zk:2181/k", **named})
    )


def test_kafkas_defaults() -> None:
    """ZK-6: a session of 18 s, and as long for the first connection."""
    assert _settings() == Settings("zk:2181/k", 18_000)
    assert _settings().first_timeout_ms == 18_000
    timeouts = _settings(zookeeper_session_timeout_ms="6000", zookeeper_connection_timeout_ms="100")
    assert (timeouts.session_timeout_ms, timeouts.first_timeout_ms) == (6000, 100)


def test_credentials_and_protection() -> None:
    """SE-6"""
    given = _settings(barnabas_zookeeper_credentials="u:p:q", zookeeper_set_acl="true")
    assert (given.credentials, given.uses_sasl, given.is_protected) == ("u:p:q", False, True)
    assert "u:p:q" not in repr(given)
    scheme = {"barnabas_zookeeper_credentials_scheme": "sasl"}
    assert _settings(barnabas_zookeeper_credentials="u:p", **scheme).uses_sasl
    with pytest.raises(ConfigError, match=r"scheme=sasl needs .*credentials=user:password"):
        _settings(**scheme)
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true needs .*credentials"):
        _settings(zookeeper_set_acl="true")
    for wrong in ("geheim", ":geheim", "geheim:"):
        with pytest.raises(ConfigError, match="form user:password") as refused:
            _settings(barnabas_zookeeper_credentials=wrong)
        assert "geheim" not in str(refused.value)


def test_tls() -> None:
    ssl = "zookeeper_ssl_"
    on = {f"{ssl}client_enable": "true"}
    assert _settings(**on).tls == Tls("", "", "", True)
    everything = {
        f"{ssl}truststore_location": "/ca.crt",
        f"{ssl}truststore_type": "pem",
        f"{ssl}keystore_location": "/own.pem",
        f"{ssl}keystore_password": "secret",
        f"{ssl}endpoint_identification_algorithm": "",
    }
    assert _settings(**on, **everything).tls == Tls("/ca.crt", "/own.pem", "secret", False)
    assert _settings(**everything).tls is None, "only if it is enabled"


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_files_of_java_are_refused(store: str) -> None:
    """UX-3: with the words that help."""
    location = f"zookeeper.ssl.{store}.location"
    jks = {location: "/etc/kafka.jks", "zookeeper.ssl.client.enable": "true"}
    for kind in ({}, {f"zookeeper.ssl.{store}.type": "JKS"}):
        with pytest.raises(ConfigError, match=re.escape(f"{location}=/etc/kafka.jks") + ".*=PEM"):
            _settings(**{**jks, **kind})
