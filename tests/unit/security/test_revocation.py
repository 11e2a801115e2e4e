"""SE-2: lists of revoked certificates: who is refused with them, and which lists are."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.net.tls_failures import explain
from barnabas.security.pem import der_of, pem_blocks
from barnabas.security.revocation import load_revocation_lists, next_update
from barnabas.security.tls import client_context, server_context
from tests.kit.certificates import Authority
from tests.kit.tls_ends import shake_hands, tls_settings

SETTING = "ssl.crl.location"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path / "ca")


@pytest.mark.parametrize("is_der", [False, True])
def test_se_2_a_revoked_client_is_refused(authority: Authority, is_der: bool) -> None:
    """By a list in either form; the one that is not named in it comes in."""
    alice, bob = authority.client("alice"), authority.client("bob")
    lists = str(authority.revoke(alice, is_der=is_der))
    made = tls_settings(authority.server(), client_auth="required", enabled_protocols="TLSv1.2")
    server = server_context(made._replace(crl_location=lists))
    shake_hands(client_context(tls_settings(bob)), server, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked") as caught:
        shake_hands(client_context(tls_settings(alice)), server, "localhost")
    assert explain(caught.value, True, None) == (
        "its certificate has been revoked by its authority"
    )


def test_se_2_a_revoked_server_is_refused(authority: Authority) -> None:
    files = authority.server()
    client = client_context(tls_settings(files, crl_location=str(authority.revoke(files))))
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked") as caught:
        shake_hands(client, server_context(tls_settings(files)), "localhost")
    assert "the broker's certificate has been revoked" in explain(caught.value, False, "h")


def test_se_2_an_authority_without_a_list_vouches_for_nobody(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority.make(tmp_path / "other", "Other CA")
    files = authority.server()
    client = client_context(tls_settings(files, crl_location=str(other.revoke())))
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        shake_hands(client, server_context(tls_settings(files)), "localhost")
    said = explain(caught.value, False, "h")
    assert said.startswith("the certificate revocation list of an authority that issued the broker")
    assert SETTING in said


def test_se_2_a_list_of_a_directory_for_each_authority(
    authority: Authority, tmp_path: Path
) -> None:
    """What is hidden in it is left alone, and what is trusted is not enlarged by it."""
    lists = tmp_path / "lists"
    lists.mkdir()
    other = Authority.make(tmp_path / "other", "Other CA")
    files, stranger = authority.server(), other.server()
    for number, each in enumerate((authority, other)):
        text = each.revoke().read_text() + each.truststore.read_text()
        (lists / f"{number}.pem").write_text(text)
    (lists / ".half").write_text("-----BEGIN")
    client = client_context(tls_settings(files, crl_location=str(lists)))
    shake_hands(client, server_context(tls_settings(files)), "localhost")
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed certificate"):
        shake_hands(client, server_context(tls_settings(stranger)), "localhost")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file"),
        ("", "there is no PEM certificate revocation list"),
        (
            "-----BEGIN X509 CRL-----\n!\n-----END X509 CRL-----",
            "the PEM block X509 CRL is damaged",
        ),
        (
            "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----",
            "not a certificate revocation list",
        ),
        ("0", "this is not a certificate revocation list"),
    ],
)
def test_se_2_a_list_that_cannot_be_read_is_no_empty_list(
    tmp_path: Path, content: str | None, says: str
) -> None:
    path = tmp_path / "a.crl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=f"{SETTING}={path}.*{says}"):
        load_revocation_lists(SETTING, str(path))


def test_se_2_an_old_list_is_refused(authority: Authority) -> None:
    path = str(authority.revoke(expired=True))
    with pytest.raises(ConfigError, match=r"expired at .* get the authority's new list"):
        server_context(tls_settings(authority.server(), crl_location=path))


def test_se_2_a_list_says_how_long_it_holds(authority: Authority) -> None:
    (block,) = pem_blocks(authority.revoke().read_text())
    end = next_update(der_of(block))
    assert end is not None
    assert timedelta(days=59) < end - datetime.now(UTC) < timedelta(days=61)
