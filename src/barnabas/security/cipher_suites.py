"""Names of cipher suites: IANA's, which Kafka's settings have, as OpenSSL's.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256

Suites of TLS 1.3 (`TLS_AES_256_GCM_SHA384`) have one name everywhere.
"""

from __future__ import annotations

import re

_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_\w+_SHA\d+$")
_SIZED = re.compile(r"(AES|ARIA|CAMELLIA)_(\d+)_")


def is_of_tls_1_3(name: str) -> bool:
    """Whether a suite is of TLS 1.3, in which a suite says nothing of keys' exchange."""
    return _TLS_1_3.match(name) is not None


def openssl_name(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2; a name that is not IANA's is returned as it is."""
    exchange, has_both, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not name.startswith("TLS_") or not has_both:
        return name
    cipher = _SIZED.sub(r"\1\2-", cipher).replace("_", "-")
    cipher = cipher.replace("-CBC-", "-").replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305")
    if cipher.endswith("-CCM") is False and "-CCM-8" in cipher:
        cipher = cipher.replace("-CCM-8", "-CCM8")
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    return "-".join((*parts, cipher))
