"""What a broker's settings say of ZooKeeper is checked before anything is tried (ZK-6)."""

from __future__ import annotations

import pytest

from barnabas.cluster.zookeeper_settings import Settings, settings_from
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.tls_settings import TlsSettings


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


def test_se_6_tls() -> None:
    """Kafka's settings, whose types go by the files' endings where none is given."""
    ssl = "zookeeper_ssl_"
    on = {f"{ssl}client_enable": "true"}
    assert _settings(**on).tls == TlsSettings(keystore_type="PEM", truststore_type="PEM")
    everything = {
        f"{ssl}truststore_location": "/ca.crt",
        f"{ssl}truststore_type": "pem",
        f"{ssl}keystore_location": "/own.pem",
        f"{ssl}keystore_password": "secret",
        f"{ssl}endpoint_identification_algorithm": "",
        f"{ssl}enabled_protocols": "TLSv1.3",
        f"{ssl}cipher_suites": "TLS_AES_128_GCM_SHA256",
    }
    tls = _settings(**on, **everything).tls
    assert tls == TlsSettings(
        keystore_type="PEM",
        keystore_location="/own.pem",
        key_password="secret",
        truststore_type="PEM",
        truststore_location="/ca.crt",
        enabled_protocols="TLSv1.3",
        cipher_suites="TLS_AES_128_GCM_SHA256",
        endpoint_identification_algorithm="",
    )
    assert "secret" not in repr(tls)
    assert _settings(**everything).tls is None, "only if it is enabled"


@pytest.mark.parametrize(
    ("path", "kind", "expected"),
    [
        ("/own.jks", "", "JKS"),
        ("/own.P12", "", "PKCS12"),
        ("/own", "pkcs12", "PKCS12"),
        ("/own.jks", "PEM", "PEM"),
    ],
)
def test_se_6_the_type_of_a_store(path: str, kind: str, expected: str) -> None:
    given = {"zookeeper_ssl_keystore_location": path, "zookeeper_ssl_keystore_password": "p"}
    tls = _settings(zookeeper_ssl_client_enable="true", zookeeper_ssl_keystore_type=kind, **given)
    assert tls.tls is not None and tls.tls.keystore_type == expected
    is_pem = expected == "PEM"
    passwords = (tls.tls.keystore_password, tls.tls.key_password)
    assert passwords == (("", "p") if is_pem else ("p", ""))


def test_a_store_of_an_unknown_type_is_refused() -> None:
    """UX-3: with the words that help."""
    on = {"zookeeper_ssl_client_enable": "true"}
    for store in ("keystore", "truststore"):
        with pytest.raises(ConfigError, match=rf"{store}\.location=/own: .*{store}\.type to JKS"):
            _settings(**on, **{f"zookeeper_ssl_{store}_location": "/own"})
