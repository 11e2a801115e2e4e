"""SE-2: contexts by Kafka's settings: versions, suites, who is asked for a certificate."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.security.tls import allowed_suites, client_context, openssl_name, server_context
from barnabas.security.tls_settings import TlsSettings
from tests.kit.certificates import Authority, PemFiles
from tests.kit.tls_ends import shake_hands, tls_settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> PemFiles:
    return Authority.make(tmp_path_factory.mktemp("ca")).server()


def test_se_2_the_newest_version_is_taken(broker: PemFiles) -> None:
    made = tls_settings(broker)
    assert shake_hands(client_context(made), server_context(made), "localhost").version() == (
        "TLSv1.3"
    )
    older = tls_settings(broker, enabled_protocols="TLSv1.2")
    assert shake_hands(client_context(made), server_context(older), "127.0.0.1").version() == (
        "TLSv1.2"
    )


@pytest.mark.parametrize("name", ["TLSv1.1", "TLSv1", "SSLv3"])
def test_se_2_versions_below_1_2_are_refused(broker: PemFiles, name: str) -> None:
    with pytest.raises(ConfigError, match=f"ssl.enabled.protocols: '{name}' is no longer secure"):
        server_context(tls_settings(broker, enabled_protocols=f"TLSv1.2,{name}"))
    with pytest.raises(ConfigError, match="is not one of TLS"):
        server_context(tls_settings(broker, protocol=name))


def test_se_2_the_host_name_is_checked_unless_that_is_switched_off(broker: PemFiles) -> None:
    server = server_context(tls_settings(broker))
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for 'elsewhere'"):
        shake_hands(client_context(tls_settings(broker)), server, "elsewhere")
    lenient = tls_settings(broker, endpoint_identification_algorithm="")
    shake_hands(client_context(lenient), server, "elsewhere")
    with pytest.raises(ConfigError, match="must be https"):
        client_context(tls_settings(broker, endpoint_identification_algorithm="ldap"))


def test_se_2_each_certificate_of_a_truststore_is_trusted_by_itself(broker: PemFiles) -> None:
    """As in Java: a broker's own certificate in it is enough."""
    own = tls_settings(broker)._replace(truststore_location=str(broker.chain))
    shake_hands(client_context(own), server_context(tls_settings(broker)), "localhost")


def test_se_2_a_server_needs_a_key_and_whom_to_trust(broker: PemFiles) -> None:
    with pytest.raises(ConfigError, match="needs a private key and its certificate"):
        server_context(TlsSettings())
    alone = tls_settings(broker, client_auth="required")._replace(truststore_location="")
    with pytest.raises(ConfigError, match="requires the CA certificates of the clients"):
        server_context(alone)
    with pytest.raises(ConfigError, match="'always' is not one of none, requested, required"):
        server_context(tls_settings(broker, client_auth="always"))


def test_se_2_key_and_certificate_belong_together(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path)
    one, other = authority.server(), authority.server()
    mixed = PemFiles(one.key, other.chain, one.truststore)
    with pytest.raises(ConfigError, match="does not match the first certificate"):
        server_context(tls_settings(mixed))


def test_se_2_renegotiation_is_off(broker: PemFiles) -> None:
    assert server_context(tls_settings(broker)).options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize(
    ("iana", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_se_2_suites_have_ianas_names(iana: str, openssl: str) -> None:
    assert openssl_name(iana) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl)  # which OpenSSL knows


def test_se_2_only_the_suites_that_are_named_are_used(broker: PemFiles) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    own = tls_settings(broker, cipher_suites=suite)
    end = shake_hands(client_context(tls_settings(broker)), server_context(own), "localhost")
    assert end.version() == "TLSv1.2"  # of 1.3 there is none in the list
    assert end.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)


@pytest.mark.parametrize(
    ("suites", "protocols", "says"),
    [
        ("TLS_UNHEARD_OF", "TLSv1.2,TLSv1.3", "TLS_UNHEARD_OF is unknown"),
        ("TLS_AES_128_GCM_SHA256", "TLSv1.3", "add TLS_AES_256_GCM_SHA384"),
        ("TLS_AES_256_GCM_SHA384", "TLSv1.2", "no suite for the versions"),
    ],
)
def test_se_2_suites_that_cannot_be_are_refused(
    broker: PemFiles, suites: str, protocols: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        server_context(tls_settings(broker, cipher_suites=suites, enabled_protocols=protocols))


def test_se_2_suites_of_1_3_are_those_of_the_list(broker: PemFiles) -> None:
    named = tls_settings(broker, cipher_suites="TLS_AES_256_GCM_SHA384")
    assert allowed_suites(named) == {"TLS_AES_256_GCM_SHA384"}
    assert len(allowed_suites(tls_settings(broker))) == 3


def test_se_2_no_key_stays_on_disk(
    broker: PemFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where the system has no files in memory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server_context(tls_settings(broker))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    server_context(tls_settings(broker))
    assert list(tmp_path.iterdir()) == []


def test_se_2_settings_hide_their_secrets() -> None:
    secret = TlsSettings(keystore_password="geheim", key_password="geheim", keystore_key="geheim")
    assert "geheim" not in repr(secret)
    assert "keystore_password=[hidden]" in repr(secret)
