"""The tests that the secured suites leave out, each with its reason."""

from __future__ import annotations

_OWN = "makes certificates, users and rules of its own"
_ON_THE_WAY = "reads and changes requests on their way, which TLS is there to prevent"

REASONS = {
    "tests/conformance/test_acl_matrix.py": _OWN,
    "tests/conformance/test_lost_answer_confluent.py": _ON_THE_WAY,
    "tests/conformance/test_sasl_clients.py": _OWN,
    "tests/conformance/test_sasl_with_kafka.py": _OWN,
    "tests/conformance/test_secure_acls.py": _OWN,
    "tests/conformance/test_secure_broker.py": _OWN,
    "tests/conformance/test_tls_clients.py": _OWN,
    "tests/integration/test_client_faults.py": _ON_THE_WAY,
    "tests/integration/test_client_lost_answers.py": _ON_THE_WAY,
    "tests/integration/test_client_positions.py": _ON_THE_WAY,
}
"""By the beginning of a test's name."""


def reason_of(name: str) -> str | None:
    if name.startswith("tests/integration") and "[kafka" in name:
        return "is for a Kafka as it is measured, without security"
    return next((why for start, why in REASONS.items() if name.startswith(start)), None)
