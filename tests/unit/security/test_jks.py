"""SE-2: a store that keytool wrote, whole, damaged and with wrong passwords."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from barnabas.security.jks import read_jks
from tests.kit.keytool_store import KEY_PASSWORD, STORE, STORE_PASSWORD


def test_se_2_the_key_fits_its_certificate() -> None:
    store = read_jks(STORE, STORE_PASSWORD)
    [key] = store.keys
    [own] = key.chain
    [trusted] = store.trusted
    private = serialization.load_der_private_key(key.plain(KEY_PASSWORD), None)
    certificate = x509.load_der_x509_certificate(own)
    assert private.public_key() == certificate.public_key()
    assert certificate.subject.rfc4514_string() == "CN=broker"
    assert x509.load_der_x509_certificate(trusted).subject.rfc4514_string() == "CN=ca"


def test_se_2_certificates_are_read_without_a_password_as_in_java() -> None:
    assert read_jks(STORE, "").trusted == read_jks(STORE, STORE_PASSWORD).trusted


def test_se_2_a_wrong_password_is_refused_for_the_store_and_for_the_key() -> None:
    with pytest.raises(ValueError, match="the store's password is wrong"):
        read_jks(STORE, "falsch")
    [key] = read_jks(STORE, STORE_PASSWORD).keys
    with pytest.raises(ValueError, match=r"the key's password is wrong \(ssl\.key\.password\)"):
        key.plain(STORE_PASSWORD)


def test_se_2_a_store_cut_anywhere_is_refused() -> None:
    for size in range(4, len(STORE)):
        for password in ("", STORE_PASSWORD):
            with pytest.raises(ValueError, match=r"damaged|not supported"):
                read_jks(STORE[:size], password)


def test_se_2_a_flipped_byte_is_seen_and_never_more_than_refused() -> None:
    """With the password each one is seen; without it, a damaged store gives entries or an error."""
    for position in range(4, len(STORE)):
        damaged = bytearray(STORE)
        damaged[position] ^= 0xFF
        with pytest.raises(ValueError, match=r"damaged|not supported"):
            read_jks(bytes(damaged), STORE_PASSWORD)
        try:
            keys = read_jks(bytes(damaged), "").keys
        except ValueError:
            continue
        for key in keys:
            try:
                key.plain(KEY_PASSWORD)
            except ValueError:
                continue
