"""The tests that the secured suites leave out, each with its reason."""

from __future__ import annotations

_OWN = "makes certificates, users and rules of its own"
_CONNECTS = "opens the connections of its client itself, and without TLS"
_ON_THE_WAY = "reads and changes requests on their way, which TLS is there to prevent"
_PLAIN_PEER = "its other side is a server of the test's, which speaks no TLS"

REASONS = {
    "tests/conformance/test_acl_matrix.py": _OWN,
    "tests/conformance/test_acl_trees.py": _OWN,
    "tests/conformance/test_dynamic_secrets_with_kafka.py": _OWN,
    "tests/conformance/test_lost_answer_confluent.py": _ON_THE_WAY,
    "tests/conformance/test_quota_clients.py": _OWN,
    "tests/conformance/test_sasl_clients.py": _OWN,
    "tests/conformance/test_sasl_with_kafka.py": _OWN,
    "tests/conformance/test_secure_acls.py": _OWN,
    "tests/conformance/test_secure_broker.py": _OWN,
    "tests/conformance/test_tls_clients.py": _OWN,
    "tests/integration/test_client_acl_admin.py": _OWN,
    "tests/integration/test_client_failures.py::test_a_lost_answer": _ON_THE_WAY,
    "tests/integration/test_client_failures.py::test_a_mute_server": _PLAIN_PEER,
    "tests/integration/test_client_failures.py::test_a_server_that_hangs_up": _PLAIN_PEER,
    "tests/integration/test_client_faults.py": _ON_THE_WAY,
    "tests/integration/test_client_late_requests.py": _ON_THE_WAY,
    "tests/integration/test_client_lost_answers.py": _ON_THE_WAY,
    "tests/integration/test_client_positions.py": _ON_THE_WAY,
    "tests/integration/test_client_waiting.py::test_a_producer_without_a_producer": _PLAIN_PEER,
    **{
        f"tests/integration/test_nearest_replica.py::test_{name}": _CONNECTS
        for name in (
            "re_2_the_reads_go_to_the_follower[OurReader",
            "re_2_without_a_rack_the_reads_go_to_the_leader[OurReader",
            "re_2_nothing_is_lost_or_read_twice_when_one_of_them_stops[OurReader",
            "re_2_a_follower_that_lags_is_left",
            "re_2_a_follower_that_cannot_be_reached_is_left",
            "co_6_aborted_records_are_left_out_at_the_follower_too",
        )
    },
}
"""By the beginning of a test's name."""


def reason_of(name: str) -> str | None:
    if name.startswith("tests/integration") and "[kafka" in name:
        return "is for a Kafka as it is measured, without security"
    return next((why for start, why in REASONS.items() if name.startswith(start)), None)
