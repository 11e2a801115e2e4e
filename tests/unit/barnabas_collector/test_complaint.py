"""What hinders a collector at its start is logged at once, and then at a bounded rate."""

from __future__ import annotations

import pytest

from barnabas_collector.complaint import Complaint


def test_a_reason_is_logged_at_once_and_again_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 0.0
    complaint = Complaint("files", lambda: now_s)
    refused, unknown = OSError("connection refused"), OSError("name or service not known")
    for error, at_s in ((refused, 0.0), (refused, 59.9), (unknown, 59.9), (unknown, 119.8)):
        now_s = at_s
        complaint.add(error)
    now_s = 119.9
    complaint.add(unknown)
    assert [each.getMessage() for each in caplog.records] == [
        "files: retrying until the brokers can be reached: connection refused",
        "files: retrying until the brokers can be reached: name or service not known",
        "files: retrying until the brokers can be reached: name or service not known",
    ]
    assert {each.levelname for each in caplog.records} == {"ERROR"}
