"""The tests that the secured suites leave out, each with its reason."""

from __future__ import annotations

_OWN = "makes certificates, users and rules of its own"

REASONS = {
    "tests/conformance/test_acl_matrix.py": _OWN,
    "tests/conformance/test_sasl_clients.py": _OWN,
    "tests/conformance/test_sasl_with_kafka.py": _OWN,
    "tests/conformance/test_secure_acls.py": _OWN,
    "tests/conformance/test_secure_broker.py": _OWN,
    "tests/conformance/test_tls_clients.py": _OWN,
}
"""By the beginning of a test's name."""


def reason_of(name: str) -> str | None:
    return next((why for start, why in REASONS.items() if name.startswith(start)), None)
