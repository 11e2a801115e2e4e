"""The end of a certificate, read without a library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from barnabas.security.der import end_of


@pytest.mark.parametrize(
    "end",
    [
        datetime(1999, 12, 31, 23, 59, 58, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),  # from here on with four digits
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_se_2_the_end_of_a_certificate(end: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    found = end_of(certificate)
    assert found.at_s == end.timestamp() and found.text == f"{end:%Y-%m-%d %H:%M} UTC"
    for size in range(0, len(certificate), 7):
        with pytest.raises(ValueError, match=r"certificate|element|time|data"):
            end_of(certificate[:size])
